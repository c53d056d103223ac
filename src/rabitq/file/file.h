/* rabitq/file/file.h: codes in files, as docs/reference/formats.md specifies them. */
#ifndef GNOMON_RABITQ_FILE_H
#define GNOMON_RABITQ_FILE_H

#include "lsh/file/file.h"
#include "rabitq/rabitq.h"

/* The numbers of the section of settings, 8 bytes each. */
typedef enum gnomon_rabitq_number {
    GNOMON_RABITQ_METRIC,
    GNOMON_RABITQ_BITS,
    GNOMON_RABITQ_DIM,
    GNOMON_RABITQ_EXPONENT, /* of the scale */
    GNOMON_RABITQ_SEED,
    GNOMON_RABITQ_NUMBERS
} gnomon_rabitq_number;

/* The index of a mapped file, which becomes its own; on failure too. */
gnomon_status gnomon_rabitq_load(gnomon_context *ctx, const gnomon_layout *layout,
                                 gnomon_rabitq **out);
/* Whether an opened index's bytes fit their checksums. Errors: DATA, CANCELLED. */
gnomon_status gnomon_rabitq_check_bytes(gnomon_context *ctx, const gnomon_rabitq *index);

#endif
