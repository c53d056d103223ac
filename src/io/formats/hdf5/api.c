#include "io/format.h"

#if GNOMON_WITH_HDF5

#include "io/formats/hdf5/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

gnomon_hdf5_api gnomon_h5;

typedef struct symbol {
    const char *name;
    size_t place; /* in gnomon_hdf5_api */
} symbol;

/* a name that is a macro is replaced before it becomes text */
#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)
#define X(name)       {TEXT(name), offsetof(gnomon_hdf5_api, name)},
static const symbol symbols[] = {GNOMON_HDF5_SYMBOLS(X)};
#undef X

static bool find_all(void *library, gnomon_hdf5_api *api, char *reason, size_t size)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            snprintf(reason, size, "%s lacks %s", GNOMON_HDF5_LIBRARY, symbols[i].name);
            return false;
        }
        memcpy((char *)api + symbols[i].place, &found, sizeof found);
    }
    return true;
}

/* Structures that are handed over have the layout of the headers' version. */
static bool same_version(const gnomon_hdf5_api *api, char *reason, size_t size)
{
    unsigned major = 0, minor = 0, release = 0;
    if (api->H5open() < 0 || api->H5get_libversion(&major, &minor, &release) < 0) {
        snprintf(reason, size, "%s does not start", GNOMON_HDF5_LIBRARY);
        return false;
    }
    if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR) return true;
    snprintf(reason, size, "%s is HDF5 %u.%u.%u; this build is for %d.%d", GNOMON_HDF5_LIBRARY,
             major, minor, release, H5_VERS_MAJOR, H5_VERS_MINOR);
    return false;
}

bool gnomon_hdf5_load(char *reason, size_t size)
{
    gnomon_hdf5_api api;
    if (gnomon_h5.H5open != NULL) return true;
    void *library = dlopen(GNOMON_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        snprintf(reason, size, "the HDF5 library (Debian's libhdf5) is not there: %s",
                 why != NULL ? why : GNOMON_HDF5_LIBRARY);
        return false;
    }
    if (!find_all(library, &api, reason, size)) {
        dlclose(library); /* of no use, and not started */
        return false;
    }
    /* started, it is never closed: it has work of its own at the end of the process */
    if (!same_version(&api, reason, size)) return false;
    gnomon_h5 = api;
    return true;
}

#endif
