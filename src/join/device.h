/* join/device.h: handing a join to a device. */
#ifndef GNOMON_JOIN_DEVICE_H
#define GNOMON_JOIN_DEVICE_H

#include "join/state.h"

/* Offers the join to the context's device, as base/device.h says. */
gnomon_status gnomon_join_on_device(gnomon_join_state *join, bool *done);

#endif
