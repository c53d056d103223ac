/* join/device.h: handing a join to a device. */
#ifndef GNOMON_JOIN_DEVICE_H
#define GNOMON_JOIN_DEVICE_H

#include "join/join.h"

/* Lets the context's device do the join if it can: *done tells whether it did. Under AUTO a device
 * that declines leaves the join to the CPU; under CUDA that is an error. */
gnomon_status gnomon_join_on_device(gnomon_join_state *join, bool *done);

#endif
