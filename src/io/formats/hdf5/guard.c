#include "io/format.h"

#if GNOMON_WITH_HDF5

#include "io/arrays/convert.h"
#include "io/formats/hdf5/guard.h"
#include "io/formats/hdf5/hdf5.h"

#include <pthread.h>
#include <stdio.h>

enum { REASON = 320 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

gnomon_status gnomon_hdf5_ready(gnomon_context *ctx, const char *file)
{
    char reason[REASON];
    pthread_mutex_lock(&lock);
    const bool ready = gnomon_hdf5_load(reason, sizeof reason);
    pthread_mutex_unlock(&lock);
    GNOMON_FAIL_IF(!ready, ctx, GNOMON_ERROR_UNSUPPORTED, GNOMON_ARG("%s") ": %s", file, reason);
    return GNOMON_OK;
}

const char *gnomon_hdf5_missing(void)
{
    static _Thread_local char reason[REASON];
    pthread_mutex_lock(&lock);
    const bool ready = gnomon_hdf5_load(reason, sizeof reason);
    pthread_mutex_unlock(&lock);
    return ready ? NULL : reason;
}

void gnomon_hdf5_enter(gnomon_hdf5_guard *guard)
{
    pthread_mutex_lock(&lock);
    guard->print = NULL;
    guard->print_data = NULL;
    if (gnomon_h5.H5open == NULL) return;
    gnomon_h5.H5Eget_auto2(H5E_DEFAULT, &guard->print, &guard->print_data);
    gnomon_h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void gnomon_hdf5_leave(const gnomon_hdf5_guard *guard)
{
    if (gnomon_h5.H5open != NULL)
        gnomon_h5.H5Eset_auto2(H5E_DEFAULT, guard->print, guard->print_data);
    pthread_mutex_unlock(&lock);
}

typedef struct reason {
    char *text;
    size_t size;
} reason;

static herr_t keep(unsigned n, const H5E_error2_t *error, void *data)
{
    const reason *r = data;
    (void)n;
    if (error->desc != NULL && error->desc[0] != '\0')
        snprintf(r->text, r->size, "%s", error->desc);
    return 0;
}

void gnomon_hdf5_reason(char *text, size_t size)
{
    reason r = {text, size};
    snprintf(text, size, "unknown cause");
    gnomon_h5.H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep, &r); /* the last is the innermost */
}

static gnomon_dtype float_of(hid_t type)
{
    size_t sign, exponent, exponent_size, mantissa, mantissa_size;
    if (gnomon_h5.H5Tequal(type, GNOMON_H5T(IEEE_F32LE)) > 0 ||
        gnomon_h5.H5Tequal(type, GNOMON_H5T(IEEE_F32BE)) > 0)
        return GNOMON_F32;
    if (gnomon_h5.H5Tequal(type, GNOMON_H5T(IEEE_F64LE)) > 0 ||
        gnomon_h5.H5Tequal(type, GNOMON_H5T(IEEE_F64BE)) > 0)
        return GNOMON_F64;
    if (gnomon_h5.H5Tget_size(type) == 2 &&
        gnomon_h5.H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa,
                                &mantissa_size) >= 0 &&
        sign == 15 && exponent == 10 && exponent_size == 5 && mantissa == 0 &&
        mantissa_size == 10 && gnomon_h5.H5Tget_ebias(type) == 15)
        return GNOMON_F16;
    return (gnomon_dtype)0;
}

static gnomon_dtype integer_of(hid_t type)
{
    size_t size = gnomon_h5.H5Tget_size(type);
    bool sign = gnomon_h5.H5Tget_sign(type) == H5T_SGN_2;
    if (gnomon_h5.H5Tget_precision(type) != 8 * size || gnomon_h5.H5Tget_offset(type) != 0)
        return (gnomon_dtype)0;
    switch (size) {
    case 1:
        return sign ? GNOMON_I8 : GNOMON_U8;
    case 2:
        return sign ? GNOMON_I16 : GNOMON_U16;
    case 4:
        return sign ? GNOMON_I32 : GNOMON_U32;
    case 8:
        return sign ? GNOMON_I64 : GNOMON_U64;
    default:
        return (gnomon_dtype)0;
    }
}

gnomon_dtype gnomon_hdf5_dtype_of(hid_t type)
{
    H5T_order_t order = gnomon_h5.H5Tget_order(type);
    switch (gnomon_h5.H5Tget_class(type)) {
    case H5T_FLOAT:
        return order == H5T_ORDER_LE || order == H5T_ORDER_BE ? float_of(type) : (gnomon_dtype)0;
    case H5T_INTEGER:
        return integer_of(type);
    case H5T_ENUM: /* how h5py stores bool */
        return gnomon_h5.H5Tget_size(type) == 1 ? GNOMON_U8 : (gnomon_dtype)0;
    default:
        return (gnomon_dtype)0;
    }
}

static hid_t half(void)
{
    hid_t type = gnomon_h5.H5Tcopy(GNOMON_H5T(IEEE_F32LE));
    if (type >= 0 && (gnomon_h5.H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 ||
                      gnomon_h5.H5Tset_size(type, 2) < 0 || gnomon_h5.H5Tset_ebias(type, 15) < 0)) {
        gnomon_h5.H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t gnomon_hdf5_type(gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_F32:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(IEEE_F32LE));
    case GNOMON_F64:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(IEEE_F64LE));
    case GNOMON_F16:
        return half();
    case GNOMON_I8:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_I8LE));
    case GNOMON_U8:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_U8LE));
    case GNOMON_I16:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_I16LE));
    case GNOMON_U16:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_U16LE));
    case GNOMON_I32:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_I32LE));
    case GNOMON_U32:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_U32LE));
    case GNOMON_I64:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_I64LE));
    case GNOMON_U64:
        return gnomon_h5.H5Tcopy(GNOMON_H5T(STD_U64LE));
    default:
        return -1;
    }
}

hid_t gnomon_hdf5_native(hid_t type)
{
    hid_t native = gnomon_h5.H5Tcopy(type);
    if (native >= 0 && gnomon_h5.H5Tget_size(native) > 1 &&
        gnomon_h5.H5Tset_order(native, gnomon_big_endian() ? H5T_ORDER_BE : H5T_ORDER_LE) < 0) {
        gnomon_h5.H5Tclose(native);
        return -1;
    }
    return native;
}

#endif
