/* base/plugin.h: what a caller says of devices, and finding and opening their plugins. */
#ifndef GNOMON_BASE_PLUGIN_H
#define GNOMON_BASE_PLUGIN_H

#include "backend.h"

#include <stdbool.h>
#include <sys/types.h>

enum { GNOMON_DEVICE_NAME = 32, GNOMON_DEVICES = 4, GNOMON_DEVICES_MOST = 16 };

/* "auto", "cpu", "NAME", "NAME:INDEX", "NAME:INDEX,INDEX...", "NAME:all"; of several devices a job
 * is divided among them. "auto:all" is AUTO with all of every plugin's. */
typedef struct gnomon_device_spec {
    gnomon_device kind; /* AUTO, CPU, or PLUGIN: of that name */
    char name[GNOMON_DEVICE_NAME];
    bool all;
    int count;                      /* of indices; 0: the current device */
    int index[GNOMON_DEVICES_MOST]; /* each once */
} gnomon_device_spec;

/* Reads what a caller gave; NULL is auto. Errors: ARGUMENT, its text in the thread's slot. */
gnomon_status gnomon_device_read(const char *text, gnomon_device_spec *spec);

/* One device in use, or several that the core sees as one. */
typedef struct gnomon_plugin {
    char kind[GNOMON_DEVICE_NAME]; /* NAME of libgnomon_NAME.so */
    void *library;                 /* of dlopen */
    const gnomon_device_table *table;
    void *state;    /* of table->open */
    char name[128]; /* of the device, as open gave it; "2 x NAME" */
} gnomon_plugin;

/* Makes one of several devices of a plugin, which its close closes. False, with the reason in why
 * and nothing closed, when they can't be one. src/devices, which knows the jobs, defines it. */
typedef bool (*gnomon_devices_maker)(const gnomon_device_table *of, const int *index, void **states,
                                     int count, const gnomon_device_table **table, void **state,
                                     char *why, size_t why_size);
extern const gnomon_devices_maker gnomon_devices_make;

/* Those of a context. */
typedef struct gnomon_plugins {
    bool looked_for;
    pid_t process;           /* that looked */
    gnomon_device_spec spec; /* set before looking */
    int count;
    gnomon_plugin open[GNOMON_DEVICES];
    char reason[768]; /* what was found, and what is wrong with it */
} gnomon_plugins;

/* Looks for libgnomon_NAME.so, NAME being the spec's, or under auto for all such files in the order
 * of their names: in $GNOMON_PLUGIN_DIR (an absolute path) when that is set, else beside the
 * library this code is in, else in the folder gnomon/ beside it. Never in the current folder. Fills
 * reason either way. The second call does nothing. */
void gnomon_plugins_find(gnomon_plugins *plugins);

/* The path of libgnomon_NAME.so, where a device's plugin of that name would be looked for; false,
 * with the reason in why, when there is none. For plugins that are no devices: their names begin
 * with comm_, and gnomon_plugins_find passes them by. */
bool gnomon_plugin_path(const char *name, char *path, size_t room, char *why, size_t why_room);

void gnomon_plugins_close(gnomon_plugins *plugins);

/* The i-th device that a job on ctx may run on, or NULL when there are no more, when the caller
 * asked for the CPU or no device can be had (gnomon_context_device_reason tells why). The first
 * call looks for plugins, so that work on the CPU never pays for it. */
const gnomon_plugin *gnomon_context_plugin(gnomon_context *ctx, int i);

#endif
