/* A device plugin of no device, for the test of finding one. The build makes it in several
 * forms: see CMakeLists.txt here. */
#include "backend.h"

#include <stdio.h>

const gnomon_device_table *gnomon_plugin_entry(void);

static gnomon_status open_device(int device, void **state, char *why, size_t why_size)
{
    static int opened;
#ifdef PLUGIN_DECLINES
    (void)device;
    (void)state;
    (void)opened;
    snprintf(why, why_size, "the test device is out of order");
    return GNOMON_ERROR_DEVICE;
#else
    *state = &opened;
    snprintf(why, why_size, "test device %d", device);
    return GNOMON_OK;
#endif
}

static void close_device(void *state)
{
    (void)state;
}

static int supports(void *state, const struct gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    (void)state;
    (void)job;
    (void)adjoint;
    snprintf(why, why_size, "the test device does no work");
    return 0;
}

static gnomon_status refuse(void *state, const struct gnomon_sketch_job *job, char *why,
                            size_t why_size)
{
    (void)state;
    (void)job;
    snprintf(why, why_size, "the test device does no work");
    return GNOMON_ERROR_DEVICE;
}

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION GNOMON_DEVICE_INTERFACE
#endif
#ifdef PLUGIN_NO_ENTRY
#define gnomon_plugin_entry gnomon_another_name
const gnomon_device_table *gnomon_another_name(void);
#endif

const gnomon_device_table *gnomon_plugin_entry(void)
{
    static const gnomon_device_table table = {
        PLUGIN_VERSION, "test", open_device, close_device, supports, refuse, refuse,
    };
    return &table;
}
