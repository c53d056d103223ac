/* base/view.h: checking the views that callers hand in. */
#ifndef GNOMON_BASE_VIEW_H
#define GNOMON_BASE_VIEW_H

#include <gnomon/matrix.h>

/* Fails with ARGUMENT unless m is a host view whose type is known, whose sizes are not
 * negative, whose data is there and whose extent in bytes fits 63 bits. 'name' is the
 * argument's name in the text. */
gnomon_status gnomon_check_view(gnomon_context *ctx, const gnomon_matrix *m, const char *name);

#endif
