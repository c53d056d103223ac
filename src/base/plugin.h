/* base/plugin.h: finding and opening the CUDA plugin. */
#ifndef GNOMON_BASE_PLUGIN_H
#define GNOMON_BASE_PLUGIN_H

#include "backend.h"

#include <stdbool.h>

typedef struct gnomon_plugin {
    bool searched;
    int device;                       /* its index, -1: the current one; set before looking */
    void *library;                    /* of dlopen */
    const gnomon_device_table *table; /* NULL when there is no usable device */
    void *state;                      /* of table->open */
    char name[128];                   /* of the device, as open gave it; "" when there is none */
    char reason[768];
} gnomon_plugin;

/* Looks for libgnomon_cuda.so: in $GNOMON_PLUGIN_DIR (an absolute path) when that is set,
 * else beside the library this code is in, then in the folder gnomon/ beside it. Never in
 * the current folder. Fills plugin->reason either way. The second call does nothing. */
void gnomon_plugin_find(gnomon_plugin *plugin);

void gnomon_plugin_close(gnomon_plugin *plugin);

/* The device a job on ctx may run on: its table and state, or NULL when the caller asked
 * for the CPU or no device can be had (gnomon_context_cuda_reason tells why). The first
 * call looks for the plugin, so that work on the CPU never pays for it. */
const gnomon_device_table *gnomon_context_plugin(gnomon_context *ctx, void **state);

#endif
