/* gnomon/base.h: statuses, the context, and the rules that all calls follow.
 *
 * A context holds the choice of device, the worker threads, the allocator and the last error.
 * Almost every call takes one.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/base.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         gnomon_context *ctx;
 *         const gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status != GNOMON_OK) {
 *             fprintf(stderr, "%s\n", gnomon_last_error(NULL));
 *             return status;
 *         }
 *         printf("%d\n", gnomon_context_threads(ctx) > 0); // 1
 *         gnomon_context_destroy(ctx);
 *         return 0;
 *     }
 *
 * Rules:
 *  - Status: every call that can fail returns a gnomon_status. After a failure nothing that the
 *    caller owns is half-written, unless the call's own text says otherwise, and
 *    gnomon_last_error(ctx) names the argument, its value and what is allowed.
 *  - The library never prints, aborts or exits.
 *  - Sizes are int64_t. A negative size is an argument error. Products of sizes are checked for
 *    overflow before memory is allocated.
 *  - Pointers: NULL is GNOMON_ERROR_ARGUMENT for a context, an object, and every pointer that is
 *    not called optional; the text names the argument. The text for a NULL context is at
 *    gnomon_last_error(NULL). Calls that return no status return an empty value ("", 0, -1, NaN or
 *    NULL) or do nothing. Calls that free accept NULL. An object that a call makes is NULL after a
 *    failure.
 *  - Alignment: memory of elements (data of a view, offsets, indices, values, ids, counts) is
 *    aligned to the element's size. Other addresses are GNOMON_ERROR_ARGUMENT.
 *  - struct_size: a struct that may grow in a later version begins with its own size. Options are
 *    initialised by GNOMON_..._INIT, or from another language by gnomon_..._init. For a result the
 *    caller sets struct_size to its sizeof before the call. A program and a library of different
 *    versions then work together:
 *     - options shorter than the library's: the missing members have their defaults;
 *     - options longer: members that the library does not know must be 0, else ARGUMENT with the
 *       name of the struct;
 *     - a result shorter: only its members are written. Memory of members that do not fit is freed
 *       by the call; gnomon_..._free frees the rest;
 *     - a result longer: members that the library does not know are set to 0;
 *     - a struct_size that no struct can have (below the size of struct_size itself, not a multiple
 *       of its alignment, above 65536) is ARGUMENT; calls that return nothing then do nothing.
 *  - Structs without a struct_size never grow, nor do structs inside other structs or in arrays. */
#ifndef GNOMON_BASE_H
#define GNOMON_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(GNOMON_STATIC) || defined(GNOMON_BUILDING)
#define GNOMON_API __attribute__((visibility("default")))
#else
#define GNOMON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; gnomon_version() is the library's own. */
#define GNOMON_VERSION_MAJOR  0
#define GNOMON_VERSION_MINOR  1
#define GNOMON_VERSION_PATCH  0
#define GNOMON_VERSION_STRING "0.1.0"

/* Returns "major.minor.patch" of the library that is loaded; static storage. */
GNOMON_API const char *gnomon_version(void);

/* The result of a call. The numbers never change their meaning; new ones go in the gaps. */
typedef enum gnomon_status {
    GNOMON_OK = 0,

    /* errors of the caller: an argument is wrong (exit code 2 of the command) */
    GNOMON_ERROR_ARGUMENT = 10, /* a value outside what is allowed */
    GNOMON_ERROR_SHAPE = 11,    /* shapes that do not fit each other */
    GNOMON_ERROR_DTYPE = 12,    /* an element type that the call does not accept */
    GNOMON_ERROR_OVERFLOW = 13, /* a product of sizes does not fit 63 bits */
    GNOMON_ERROR_UNSUPPORTED = 14,
    GNOMON_ERROR_BUSY = 15, /* another call on the same object or file; nothing was changed */

    /* errors in data (exit code 3) */
    GNOMON_ERROR_DATA = 30,      /* a file or descriptor that breaks its format */
    GNOMON_ERROR_NONFINITE = 31, /* NaN or infinity where finite values are required */
    GNOMON_ERROR_TRUNCATED = 32, /* a file that is shorter than its header says */
    GNOMON_ERROR_FORMAT = 33,    /* no reader knows this format */

    /* errors of the file system (exit code 4) */
    GNOMON_ERROR_IO = 50,
    GNOMON_ERROR_NOT_FOUND = 51,

    /* errors of the machine */
    GNOMON_ERROR_MEMORY = 70, /* exit code 5 */
    GNOMON_ERROR_DEVICE = 90, /* exit code 6: no such device, or it failed */
    GNOMON_ERROR_COMM = 91,   /* exit code 6: another rank of a job can't be reached */

    GNOMON_ERROR_CANCELLED = 110, /* by the progress callback; exit code 130 */
    GNOMON_ERROR_INTERNAL = 127   /* a defect of the library: please report it */
} gnomon_status;

/* Returns the name of a status, such as "GNOMON_ERROR_SHAPE"; static storage; never NULL
 * ("GNOMON_UNKNOWN_STATUS" for a number that is none). */
GNOMON_API const char *gnomon_status_name(gnomon_status status);

/* Where a job ran. */
typedef enum gnomon_device {
    GNOMON_DEVICE_AUTO = 0, /* not known yet */
    GNOMON_DEVICE_CPU = 1,
    GNOMON_DEVICE_PLUGIN = 2 /* on a device, a GPU, by its plugin */
} gnomon_device;

/* Called from the thread that made the call, a few times a second at most.
 * done and total count the phase's own units; total is -1 when unknown.
 * Return nonzero to cancel: the call then stops soon, releases what it holds and
 * returns GNOMON_ERROR_CANCELLED. */
typedef int (*gnomon_progress_fn)(void *user, const char *phase, int64_t done, int64_t total);

/* A caller's allocator. allocate returns size bytes aligned to alignment (a power
 * of two) or NULL; size is never 0. Both may be called from any thread. */
typedef struct gnomon_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *pointer, size_t size);
} gnomon_allocator;

typedef struct gnomon_context_options {
    size_t struct_size;                /* see the rules above */
    const char *device;                /* NULL: "auto" (default); see below */
    int threads;                       /* 0: one per core the process may use, by its
                                          affinity and its control groups (default) */
    const gnomon_allocator *allocator; /* NULL: the C library's; copied */
    gnomon_progress_fn progress;       /* NULL: none */
    void *progress_user;
    int64_t memory_limit; /* bytes of working memory a call may take
                             beside its input and output; 0: 1 GiB */
    uint64_t seed;        /* default seed of samples (not of operators) */
} gnomon_context_options;

#define GNOMON_CONTEXT_OPTIONS_INIT                                     \
    {                                                                   \
        sizeof(gnomon_context_options), NULL, 0, NULL, NULL, NULL, 0, 0 \
    }

/* What options.device says; the text is copied:
 *  - "auto": each job runs on the first device that supports it and where it is expected to be
 *    faster, else on the CPU. Devices are tried in the order of their plugins' names.
 *    A device that fails or is full within a job on the host's data that has handed on no result
 *    leaves it to the CPU (gnomon_context_declined tells why): sketches, adjoints and products, all
 *    of them with beta 0, hash values and keys, exact joins, and dense factorisations that are not
 *    centred.
 *  - "cpu": the CPU; no plugin is loaded.
 *  - "NAME": the device of the plugin libgnomon_NAME.so, such as "cuda". All work runs there or
 *    fails with the reason. It is the calling thread's current device when the context is made: the
 *    first one unless the program chose another.
 *  - "NAME:INDEX": the device with that index, such as "cuda:1"; for cuda among the GPUs that
 *    CUDA_VISIBLE_DEVICES leaves visible.
 *  - "NAME:0,2" and "NAME:all": several devices of one kind, up to 16, or all of them. Sketches,
 *    adjoints, streams, searches, joins, hash values and keys, texts, products of matrices, the
 *    products of an SVD (dense or of sparse rows, in either precision), and what an SVD or HOSVD
 *    reads of the host are divided among them, with the bits of one device; other jobs run on the
 *    first. A device's failure ends the job by an error that names its index. Views may lie in the
 *    memory of any of them; they are copied where another one needs them, and a range of addresses
 *    that spans several is used where it lies. Memory of a CUDA pool (cudaMallocAsync) must be
 *    opened to the others by its owner (cudaMemPoolSetAccess). device_stream of a call is a stream
 *    of the first one.
 *  - "auto:all": as "auto", with all devices of each plugin that can be opened; those that can't be
 *    are left out, and gnomon_context_device_reason tells why. */

/* For bindings, which have no macros: fills *options, 'size' bytes, with the defaults of the loaded
 * library, as the macro does. 'size' is the size of the struct as the binding declares it, and
 * becomes its struct_size: further members of a newer library are not written, and members that an
 * older library does not know become 0. There is one such function for each GNOMON_..._INIT, named
 * after its struct: gnomon_svd_options has gnomon_svd_options_init.
 * Errors: ARGUMENT (NULL; a size below that of struct_size itself). */
GNOMON_API gnomon_status gnomon_context_options_init(gnomon_context_options *options, size_t size);

/* A context holds the device choice, the worker threads and the last error.
 * One thread at a time may use a context; different contexts are independent.
 * Results never depend on the number of threads. */
typedef struct gnomon_context gnomon_context;

/* Creates a context. options may be NULL (defaults). On success the caller owns *out and frees it
 * with gnomon_context_destroy.
 * Errors:
 *  - ARGUMENT: threads < 0 or > 4096, memory_limit < 0, a device name that is not valid or that
 *    names a device twice
 *  - DEVICE: a named device is not available
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_context_create(const gnomon_context_options *options,
                                               gnomon_context **out);

/* Frees a context; NULL is allowed. Objects made with it must be gone by then. */
GNOMON_API void gnomon_context_destroy(gnomon_context *ctx);

/* The text of the context's last failed call, "" when none; valid until the next
 * call on ctx. Never NULL. With ctx NULL: the text of this thread's last failed call
 * that had no context: gnomon_context_create, gnomon_..._init, or one that was given
 * NULL for it. */
GNOMON_API const char *gnomon_last_error(const gnomon_context *ctx);

/* What that text is about: the name of an argument or of one of its members ("k", "queries",
 * "options.alpha"), or the file that a call was given; "" when it is about neither. A text that
 * names it begins with it. Never NULL; as long valid as the text. */
GNOMON_API const char *gnomon_last_error_argument(const gnomon_context *ctx);

/* The position in that argument, counted from 0. *row and *col, either of which may be NULL, become
 * -1 if the text names none. */
GNOMON_API void gnomon_last_error_place(const gnomon_context *ctx, int64_t *row, int64_t *col);

/* The number of threads that calls on ctx use. */
GNOMON_API int gnomon_context_threads(const gnomon_context *ctx);

/* The instruction set level chosen at run time: "portable", "avx2", "avx512",
 * "avx512_vnni", "amx" or "neon". The environment variable GNOMON_ISA forces a lower one; a name
 * that is unknown or not available makes gnomon_context_create fail with ARGUMENT. "amx" needs the
 * permission of Linux's kernel, which gnomon_context_create asks for on behalf of the process. */
GNOMON_API const char *gnomon_context_isa(const gnomon_context *ctx);

/* One line about the device plugins: which were loaded, and the reason for each that was not. Valid
 * until ctx is destroyed; never NULL. */
GNOMON_API const char *gnomon_context_device_reason(const gnomon_context *ctx);

/* The device in use: its description (a GPU's name, compute capability and memory; of several "2 x
 * " before it), and the NAME of its plugin, such as "cuda". It is the device of the last job that
 * did not run on the CPU, or else the first that was found; "" if there is none yet (devices are
 * opened when a job first needs one). Valid until ctx is destroyed; never NULL. */
GNOMON_API const char *gnomon_context_device_name(const gnomon_context *ctx);
GNOMON_API const char *gnomon_context_device_kind(const gnomon_context *ctx);
/* The NAMEs of the plugins with a device that jobs on ctx may use, from index 0 on, in the order in
 * which they are tried; NULL past the last. Loads the plugins. Valid until ctx is destroyed. */
GNOMON_API const char *gnomon_context_device_found(const gnomon_context *ctx, int index);

/* Where the context's last job ran: CPU or PLUGIN; AUTO before the first. */
GNOMON_API gnomon_device gnomon_context_worked_on(const gnomon_context *ctx);

/* Why the context's last job ran on the CPU though its device is AUTO: the reason of the device
 * that declined it or failed in it, or that it would gain nothing there. "" if it ran on a device,
 * or where there is nothing to tell. Valid until the next job; never NULL. */
GNOMON_API const char *gnomon_context_declined(const gnomon_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
