/* project/panels.h: what kernels need of a simple operator, made window by window.
 *
 * The rows and columns wanted are cut into panels, numbered chunk by chunk and, in a chunk, by
 * rows. A window is a run of panels that are in memory at once. When one window holds them all
 * it is filled once and serves every batch of points. */
#ifndef GNOMON_PROJECT_PANELS_H
#define GNOMON_PROJECT_PANELS_H

#include "kernels.h"

typedef struct gnomon_panels {
    const gnomon_kind_kernels *kind;
    const gnomon_simple *a;
    int64_t row, rows, col, cols; /* wanted; row a multiple of rows_multiple */
    int64_t chunk;                /* columns */
    int64_t panel_rows;
    int64_t per_chunk; /* panels of a chunk */
    int64_t chunks;
    int64_t total;
    /* the window */
    int64_t first, count;
    int64_t room; /* panels */
    int64_t data_room;
    gnomon_panel *panel;
    int64_t *pieces; /* before panel i, all of those of the window before it; room + 1 */
    unsigned char *data;
} gnomon_panels;

/* How the panels are cut. 'smallest' takes the fewest rows a panel that the kind allows. */
void gnomon_panels_cut(gnomon_panels *p, const gnomon_kind_kernels *kind, const gnomon_simple *a,
                       int64_t row, int64_t rows, int64_t col, int64_t cols, bool smallest);

/* Panel 'number', without data; and the panel filled, on the caller's thread alone. */
gnomon_panel gnomon_panels_at(const gnomon_panels *p, int64_t number);
void gnomon_panel_fill(const gnomon_kind_kernels *kind, const gnomon_panel *panel);

/* Bytes of the largest panel, and of the widest chunk's panels. */
int64_t gnomon_panels_largest(const gnomon_panels *p);
int64_t gnomon_panels_chunk_bytes(const gnomon_panels *p);
/* Bytes of all panels with what is noted about them, or INT64_MAX when that is above limit. */
int64_t gnomon_panels_bytes(const gnomon_panels *p, int64_t limit);

/* Makes room for a window of at most so many bytes, all told; at least the largest panel must fit.
 * Errors: MEMORY. */
gnomon_status gnomon_panels_open(gnomon_context *ctx, gnomon_panels *p, int64_t bytes);
void gnomon_panels_close(gnomon_context *ctx, gnomon_panels *p);

/* Fills the window that begins at panel 'first' (the caller's thread). It ends with a chunk
 * when it can. Does nothing when that window is there. */
void gnomon_panels_load(gnomon_context *ctx, gnomon_panels *p, int64_t first);

#endif
