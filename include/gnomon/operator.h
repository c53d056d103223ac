/* gnomon/operator.h: random linear operators S (k x D), each defined by a small descriptor.
 *
 * An operator is applied by gnomon/project.h without being stored. Entry (i, j) is a pure function
 * of the descriptor, i and j: the same bits on every machine and device.
 * docs/reference/operators.md is the specification.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/operator.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         gnomon_context *ctx;
 *         gnomon_operator *op = NULL;
 *         gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
 *         d.kind = GNOMON_SJLT;
 *         d.k = 16;
 *         d.d = 1000;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_operator_create(ctx, &d, &op);
 *         printf("%g\n", gnomon_operator_fill(op)); // 0.25
 *         gnomon_operator_destroy(op);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     } */
#ifndef GNOMON_OPERATOR_H
#define GNOMON_OPERATOR_H

#include <gnomon/matrix.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of operator; the numbers never change. 0 means the default where there is one. */
typedef enum gnomon_kind {
    GNOMON_GAUSSIAN = 1,
    GNOMON_RADEMACHER = 2,
    GNOMON_ACHLIOPTAS = 3,
    GNOMON_VERY_SPARSE = 4,
    GNOMON_SJLT = 5,
    GNOMON_SRHT = 6,
    GNOMON_BLOCK = 7,
    GNOMON_KRONECKER = 8,
    GNOMON_BLOCKPERM_SJLT = 9
} gnomon_kind;

/* ISOMETRIC: E|Sx|^2 = |x|^2. NONE: the raw entries (section 6 of docs/reference/operators.md). */
typedef enum gnomon_scaling { GNOMON_ISOMETRIC = 1, GNOMON_UNSCALED = 2 } gnomon_scaling;

/* The specification's version that this library implements. */
#define GNOMON_OPERATOR_VERSION 1

/* Everything that defines an operator. Members that a kind does not use must be 0. */
typedef struct gnomon_descriptor {
    size_t struct_size; /* see gnomon/base.h */
    uint32_t version;   /* 0 or GNOMON_OPERATOR_VERSION */
    gnomon_kind kind;
    gnomon_kind inner;      /* block, kronecker; 0: rademacher */
    gnomon_dtype precision; /* gaussian: of its entries, F32 or F16; 0: F32 */
    gnomon_scaling scaling; /* 0: isometric */
    uint64_t seed;
    int64_t k, d;     /* 1 <= k <= d; k <= 2^32, d <= 2^56 */
    double density;   /* very-sparse, in [2^-30, 1]; 0: 1/sqrt(d); in composed kinds d is each
                         factor's */
    int64_t nonzeros; /* sjlt: s in [1, k]; 0: min(4, k).
                       * blockperm-sjlt: s in [1, k / blocks]; 0: min(2, k / blocks) */
    int64_t blocks;   /* block: r in [1, k]; 0: 1. blockperm-sjlt: a power of two in [1, k]; 0: the
                       * largest up to k / 16, at least 1 */
    int64_t zeta;     /* kronecker: >= 2; 0: 2 */
    int64_t width;    /* kronecker: K >= k; 0: k */
    int64_t wiring;   /* blockperm-sjlt: in [1, blocks]; 0: min(4, blocks) */
} gnomon_descriptor;

#define GNOMON_DESCRIPTOR_INIT                                                         \
    {                                                                                  \
        sizeof(gnomon_descriptor), 0, (gnomon_kind)0, (gnomon_kind)0, (gnomon_dtype)0, \
            (gnomon_scaling)0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0                             \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_descriptor_init(gnomon_descriptor *options, size_t size);

/* "very-sparse" and so on; "?" for a number that is no kind. Static storage. */
GNOMON_API const char *gnomon_kind_name(gnomon_kind kind);
/* The kind of that name, 0 when there is none. */
GNOMON_API gnomon_kind gnomon_kind_from_name(const char *name);

/* Members of a descriptor that only some kinds use. */
enum {
    GNOMON_USES_INNER = 1,
    GNOMON_USES_PRECISION = 2,
    GNOMON_USES_DENSITY = 4,
    GNOMON_USES_NONZEROS = 8,
    GNOMON_USES_BLOCKS = 16,
    GNOMON_USES_ZETA = 32,
    GNOMON_USES_WIDTH = 64,
    GNOMON_USES_WIRING = 128
};

enum {
    GNOMON_KIND_COMPOSED = 1, /* made of matrices of an inner kind */
    GNOMON_KIND_INNER = 2,    /* may be the inner kind of a composed one */
    /* |Sx|^2 / |x|^2 has no higher moments than with normal entries, whatever x */
    GNOMON_KIND_ANY_POINTS = 4,
    GNOMON_KIND_FAST = 8 /* far fewer multiplications per point than k * d */
};

/* A row of the table of kinds. */
typedef struct gnomon_kind_info {
    gnomon_kind kind;
    const char *name;  /* on the command line and in JSON */
    const char *about; /* a remark of a few words, "" for none */
    unsigned uses;     /* GNOMON_USES_...; a composed kind also uses what its inner kind does */
    unsigned flags;    /* GNOMON_KIND_... */
} gnomon_kind_info;

/* The kinds, simple ones first, from index 0 on; NULL past the last. Static storage. */
GNOMON_API const gnomon_kind_info *gnomon_kind_at(int index);

/* A numeric member of gnomon_descriptor that only some kinds use; 0 stands for its default. */
typedef struct gnomon_parameter_info {
    const char *name;  /* the member's, also on the command line and in JSON */
    unsigned uses;     /* its GNOMON_USES_... */
    int is_real;       /* double, otherwise int64_t */
    size_t offset;     /* in gnomon_descriptor */
    int64_t least;     /* of an integer: the smallest value other than 0 */
    const char *range; /* of a real, in words */
    const char *value; /* what help calls the value */
    const char *unit;  /* what it counts; "" if that follows from its name */
    const char *help;
} gnomon_parameter_info;

enum { GNOMON_PARAMETERS = 6 };
/* Parameter index, from 0 to GNOMON_PARAMETERS - 1; else NULL. Static storage. */
GNOMON_API const gnomon_parameter_info *gnomon_parameter_at(int index);

/* An operator: a checked, completed descriptor and what follows from it. It is
 * read-only after creation: any number of threads may use it at once. */
typedef struct gnomon_operator gnomon_operator;

/* Checks a descriptor, fills in its defaults and creates the operator: a few kilobytes, whatever k
 * and d, allocated by malloc and not by the context's allocator. The caller owns *out.
 * gnomon_operator_destroy and the getters work after ctx is destroyed; calls that take an operator
 * and a context work with any context. On failure *out is NULL.
 * Errors:
 *  - ARGUMENT: a member outside what its comment allows, or set for a kind that does not use it;
 *    the text names it
 *  - OVERFLOW: kronecker: width * zeta^levels above 2^57, or a factor of more than 2^32 rows
 *  - MEMORY */
GNOMON_API gnomon_status gnomon_operator_create(gnomon_context *ctx,
                                                const gnomon_descriptor *descriptor,
                                                gnomon_operator **out);
/* NULL is allowed. */
GNOMON_API void gnomon_operator_destroy(gnomon_operator *op);

/* The descriptor with every default filled in. out->struct_size must be set. In composed
 * kinds density and nonzeros stay 0 when left at their default (each factor has its own). */
GNOMON_API void gnomon_operator_describe(const gnomon_operator *op, gnomon_descriptor *out);

/* Descriptor to and from JSON (docs/reference/operators.md, section 8). *json is NUL-terminated,
 * without a newline at its end, and allocated with the C library's malloc: free() it. The text
 * holds every member that the kind uses and reads back as the same operator. from_json takes length
 * bytes of UTF-8, no terminator needed. Errors of from_json: DATA (not JSON, an unknown, missing
 * or repeated member, a wrong type; the text names it), and those of gnomon_operator_create
 * (a value outside its range is ARGUMENT). On failure *json and *out are NULL. */
GNOMON_API gnomon_status gnomon_operator_to_json(gnomon_context *ctx, const gnomon_operator *op,
                                                 char **json);
GNOMON_API gnomon_status gnomon_operator_from_json(gnomon_context *ctx, const char *json,
                                                   size_t length, gnomon_operator **out);

/* The scale of a row (section 6), by which raw values are multiplied; NaN for a row outside op. */
GNOMON_API double gnomon_operator_row_scale(const gnomon_operator *op, int64_t row);

/* Expected number of nonzeros among the entries, as a fraction of k * d; NaN for NULL. For
 * kronecker it is an estimate: the zeros of its factors are assumed independent, and sums that
 * cancel are not counted as zeros. */
GNOMON_API double gnomon_operator_fill(const gnomon_operator *op);

/* Writes the block of entries [row, row + out->rows) x [col, col + out->cols) to out (F32 or F64,
 * host, any strides but 0): the exact scaled entries, rounded as in section 6, with the same bits
 * for any block that contains them and any number of threads. Only the block is computed, and what
 * the kind needs for it (very-sparse: its chunks; kronecker: its cascade for the block's columns,
 * with 2 * 16 * levels * width doubles per thread).
 * Errors:
 *  - SHAPE: the block leaves the operator
 *  - ARGUMENT, DTYPE, MEMORY
 * out is then untouched. */
GNOMON_API gnomon_status gnomon_operator_block(gnomon_context *ctx, const gnomon_operator *op,
                                               int64_t row, int64_t col, const gnomon_matrix *out);

/* The nonzero entries of a block as CSR (F32 or F64 values), rows and columns counted from the
 * block's corner, columns ascending. One allocation of ctx's allocator holds everything: free it
 * with gnomon_csr_free and the same context. Memory is proportional to the nonzeros and rows;
 * kronecker also needs a dense copy of the block during the call.
 * Errors: as gnomon_operator_block, and OVERFLOW; *out is then cleared. */
GNOMON_API gnomon_status gnomon_operator_block_csr(gnomon_context *ctx, const gnomon_operator *op,
                                                   int64_t row, int64_t col, int64_t rows,
                                                   int64_t cols, gnomon_dtype dtype,
                                                   gnomon_csr *out);
/* Frees what a gnomon call allocated into a gnomon_csr and clears it; NULL is allowed. */
GNOMON_API void gnomon_csr_free(gnomon_context *ctx, gnomon_csr *csr);

#ifdef __cplusplus
}
#endif
#endif
