/* join/device.h: handing a join to a device. */
#ifndef GNOMON_JOIN_DEVICE_H
#define GNOMON_JOIN_DEVICE_H

#include "join/state.h"

/* Offers the join to the context's device, as base/device.h says. */
gnomon_status gnomon_join_on_device(gnomon_join_state *join, bool *done);
/* Refuses a device where the join is not offered to one: it is divided among ranks. */
gnomon_status gnomon_join_refuse_device(const gnomon_join_state *join);

#endif
