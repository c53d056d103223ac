#include "base/plugin.h"

#include "base/context.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_FILE "libgnomon_cuda.so"

__attribute__((format(printf, 2, 3))) static void say(gnomon_plugin *plugin, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(plugin->reason, sizeof plugin->reason, format, args);
    va_end(args);
}

/* The folder of the file that holds this code, without the final slash; false when it
 * can't be told as an absolute path. */
static bool own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((void *)&gnomon_version, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    if (map->l_name && map->l_name[0]) {
        if (strlen(map->l_name) >= PATH_MAX) return false;
        strcpy(folder, map->l_name);
    } else { /* the main program, which has no name in the link map */
        const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        if (length <= 0) return false;
        folder[length] = 0;
    }
    char *slash = strrchr(folder, '/');
    if (folder[0] != '/' || !slash) return false;
    *slash = 0;
    return true;
}

/* Checks and opens what the library offers; reason says what is wrong with it. */
static bool acquire(gnomon_plugin *plugin, void *library, const char *path)
{
    gnomon_plugin_entry_fn entry;
    void *symbol = dlsym(library, GNOMON_PLUGIN_ENTRY);
    if (!symbol) {
        say(plugin, "%s does not export %s", path, GNOMON_PLUGIN_ENTRY);
        return false;
    }
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function */
    const gnomon_device_table *table = entry();
    if (!table) {
        say(plugin, "%s offers no device", path);
        return false;
    }
    if (table->interface_version != GNOMON_DEVICE_INTERFACE) {
        say(plugin, "%s has interface version %d, this library needs %d", path,
            table->interface_version, (int)GNOMON_DEVICE_INTERFACE);
        return false;
    }
    char why[384] = "";
    void *state = NULL;
    if (table->open(plugin->device, &state, why, sizeof why) != GNOMON_OK) {
        say(plugin, "%s declined: %s", path, why[0] ? why : "it gave no reason");
        return false;
    }
    plugin->library = library;
    plugin->table = table;
    plugin->state = state;
    snprintf(plugin->name, sizeof plugin->name, "%s", why);
    say(plugin, "%s: %s", path, why[0] ? why : "in use");
    return true;
}

/* True when the search is over: the file is there, whether it could be used or not. */
static bool try_file(gnomon_plugin *plugin, const char *path)
{
    if (access(path, F_OK) != 0) return false;
    /* A GPU runtime's exit handlers must still be mapped when the process ends. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *error = dlerror();
        say(plugin, "%s can't be loaded: %s", path, error ? error : "no reason given");
        return true;
    }
    if (!acquire(plugin, library, path)) dlclose(library);
    return true;
}

void gnomon_plugin_find(gnomon_plugin *plugin)
{
    if (plugin->searched) return;
    plugin->searched = true;
    char path[PATH_MAX + sizeof "/gnomon/" PLUGIN_FILE];

    const char *named = secure_getenv("GNOMON_PLUGIN_DIR");
    if (named && *named) {
        if (named[0] != '/') {
            say(plugin, "GNOMON_PLUGIN_DIR is \"%.256s\", which is not an absolute path", named);
            return;
        }
        if (strlen(named) >= PATH_MAX) {
            say(plugin, "GNOMON_PLUGIN_DIR is longer than a path may be");
            return;
        }
        snprintf(path, sizeof path, "%s/" PLUGIN_FILE, named);
        if (!try_file(plugin, path))
            say(plugin, "no " PLUGIN_FILE " in %.512s (GNOMON_PLUGIN_DIR)", named);
        return;
    }

    char folder[PATH_MAX];
    if (!own_folder(folder)) {
        say(plugin, "the library's own folder is unknown, and GNOMON_PLUGIN_DIR is not set");
        return;
    }
    snprintf(path, sizeof path, "%s/" PLUGIN_FILE, folder);
    if (try_file(plugin, path)) return;
    snprintf(path, sizeof path, "%s/gnomon/" PLUGIN_FILE, folder);
    if (try_file(plugin, path)) return;
    say(plugin, "no " PLUGIN_FILE " in %.256s or %.256s/gnomon", folder, folder);
}

void gnomon_plugin_close(gnomon_plugin *plugin)
{
    if (plugin->table) plugin->table->close(plugin->state);
    if (plugin->library) dlclose(plugin->library);
    plugin->table = NULL;
    plugin->library = NULL;
}

const gnomon_device_table *gnomon_context_plugin(gnomon_context *ctx, void **state)
{
    if (ctx->device == GNOMON_DEVICE_CPU) return NULL;
    gnomon_plugin_find(&ctx->plugin);
    *state = ctx->plugin.state;
    return ctx->plugin.table;
}

const char *gnomon_context_cuda_reason(const gnomon_context *ctx)
{
    if (ctx == NULL) return "";
    if (ctx->device == GNOMON_DEVICE_CPU) return "not looked for: the context's device is the CPU";
    /* Looking is put off until somebody asks; a context is one thread's at a time. */
    gnomon_plugin *plugin = (gnomon_plugin *)&ctx->plugin;
    gnomon_plugin_find(plugin);
    return plugin->reason;
}

const char *gnomon_context_gpu(const gnomon_context *ctx)
{
    if (ctx == NULL) return "";
    return ctx->plugin.name;
}
