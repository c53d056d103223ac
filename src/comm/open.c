/* Engines that are plugins. */
#include "comm/plugin.h"

#include "base/error.h"
#include "base/options.h"
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The engines that a name stands for, and the variable that their launcher sets. */
typedef struct engine {
    const char *name, *launched;
} engine;

static const engine mpi[] = {{"openmpi", "OMPI_COMM_WORLD_SIZE"}, {"mpich", "PMI_SIZE"}};
enum { ENGINES = sizeof mpi / sizeof mpi[0] };

static gnomon_status load(gnomon_context *ctx, const char *name, const gnomon_comm_plugin **plugin)
{
    char path[PATH_MAX + 64], why[PATH_MAX + 128], file[64];
    gnomon_comm_entry_fn entry;
    snprintf(file, sizeof file, "comm_%.32s", name);
    GNOMON_FAIL_IF(!gnomon_plugin_path(file, path, sizeof path, why, sizeof why), ctx,
                   GNOMON_ERROR_UNSUPPORTED, "no engine %s: %s", name, why);
    /* An engine stays: its library's exit handlers must still be mapped when the process ends. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *error = library == NULL ? dlerror() : NULL;
    GNOMON_FAIL_IF(library == NULL, ctx, GNOMON_ERROR_UNSUPPORTED, "%s can't be loaded: %s", path,
                   error != NULL ? error : "no reason given");
    void *symbol = dlsym(library, GNOMON_COMM_ENTRY);
    GNOMON_FAIL_IF(symbol == NULL, ctx, GNOMON_ERROR_UNSUPPORTED, "%s does not export %s", path,
                   GNOMON_COMM_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function */
    *plugin = entry();
    GNOMON_FAIL_IF(*plugin == NULL || (*plugin)->interface_version != GNOMON_COMM_INTERFACE, ctx,
                   GNOMON_ERROR_UNSUPPORTED, "%s has interface version %d, this library needs %d",
                   path, *plugin != NULL ? (*plugin)->interface_version : 0, GNOMON_COMM_INTERFACE);
    return GNOMON_OK;
}

/* The MPI whose launcher started this process; without one, the first that is there. */
static gnomon_status load_mpi(gnomon_context *ctx, const gnomon_comm_plugin **plugin)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < ENGINES; i++)
        if (getenv(mpi[i].launched) != NULL) return load(ctx, mpi[i].name, plugin);
    for (int i = 0; i < ENGINES; i++) {
        status = load(ctx, mpi[i].name, plugin);
        if (status == GNOMON_OK) break;
    }
    return status;
}

gnomon_status gnomon_comm_open(gnomon_context *ctx, const char *name, gnomon_comm *comm)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, name, "name");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "comm", gnomon_comm, comm));
    const bool any = strcmp(name, "mpi") == 0;
    bool known = any;
    for (int i = 0; i < ENGINES; i++)
        known |= strcmp(name, mpi[i].name) == 0;
    GNOMON_FAIL_IF(!known, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("name") " is \"%.64s\"; it must be mpi, mpich or openmpi", name);
    const gnomon_comm_plugin *plugin = NULL;
    GNOMON_TRY(any ? load_mpi(ctx, &plugin) : load(ctx, name, &plugin));
    char why[GNOMON_COMM_WHY] = "";
    gnomon_comm full = GNOMON_COMM_INIT;
    const gnomon_status status = plugin->open(&full, why);
    GNOMON_FAIL_IF(status != GNOMON_OK, ctx, status, "%s does not start: %s", name, why);
    gnomon_write_result(comm, &full, sizeof full);
    return GNOMON_OK;
}
