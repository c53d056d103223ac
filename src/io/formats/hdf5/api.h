/* io/formats/hdf5/api.h: the HDF5 library, opened when the first file of HDF5 is: it brings some
 * thirty libraries along, which nothing else needs. Its headers give the types; its functions and
 * the numbers of its types and property classes are reached through gnomon_h5 alone. */
#ifndef GNOMON_IO_HDF5_API_H
#define GNOMON_IO_HDF5_API_H

#include "io/format.h"

#include <stdbool.h>
#include <stddef.h>

#if !GNOMON_WITH_HDF5 /* a machine that has the headers builds what others cannot */
#error "HDF5's headers are included in a build without HDF5"
#endif

#define H5_USE_110_API /* later versions keep these names by it */
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* Constants of the headers (H5F_ACC_RDONLY and its kin) call these first, which is done at the
 * opening of the library. */
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

/* What is used of the library. Names that are macros of its headers stand for what they become. */
#define GNOMON_HDF5_SYMBOLS(X)          \
    X(H5open)                           \
    X(H5get_libversion)                 \
    X(H5Dclose)                         \
    X(H5Dcreate2)                       \
    X(H5Dget_create_plist)              \
    X(H5Dget_offset)                    \
    X(H5Dget_space)                     \
    X(H5Dget_storage_size)              \
    X(H5Dget_type)                      \
    X(H5Dopen2)                         \
    X(H5Dread)                          \
    X(H5Dset_extent)                    \
    X(H5Dwrite)                         \
    X(H5Eget_auto2)                     \
    X(H5Eset_auto2)                     \
    X(H5Ewalk2)                         \
    X(H5FDregister)                     \
    X(H5FDunregister)                   \
    X(H5Fclose)                         \
    X(H5Fcreate)                        \
    X(H5Fopen)                          \
    X(H5Ovisit)                         \
    X(H5Pclose)                         \
    X(H5Pcreate)                        \
    X(H5Pget_chunk)                     \
    X(H5Pget_driver_info)               \
    X(H5Pget_external_count)            \
    X(H5Pget_filter2)                   \
    X(H5Pget_layout)                    \
    X(H5Pget_nfilters)                  \
    X(H5Pset_chunk)                     \
    X(H5Pset_chunk_cache)               \
    X(H5Pset_create_intermediate_group) \
    X(H5Pset_deflate)                   \
    X(H5Pset_driver)                    \
    X(H5Pset_elink_cb)                  \
    X(H5Pset_fclose_degree)             \
    X(H5Pset_obj_track_times)           \
    X(H5Pset_shuffle)                   \
    X(H5Sclose)                         \
    X(H5Screate_simple)                 \
    X(H5Sget_simple_extent_dims)        \
    X(H5Sget_simple_extent_ndims)       \
    X(H5Sget_simple_extent_type)        \
    X(H5Sselect_hyperslab)              \
    X(H5Tclose)                         \
    X(H5Tcopy)                          \
    X(H5Tequal)                         \
    X(H5Tget_class)                     \
    X(H5Tget_ebias)                     \
    X(H5Tget_fields)                    \
    X(H5Tget_offset)                    \
    X(H5Tget_order)                     \
    X(H5Tget_precision)                 \
    X(H5Tget_sign)                      \
    X(H5Tget_size)                      \
    X(H5Tset_ebias)                     \
    X(H5Tset_fields)                    \
    X(H5Tset_order)                     \
    X(H5Tset_size)                      \
    X(H5Zfilter_avail)                  \
    X(H5P_CLS_DATASET_ACCESS_ID_g)      \
    X(H5P_CLS_DATASET_CREATE_ID_g)      \
    X(H5P_CLS_FILE_ACCESS_ID_g)         \
    X(H5P_CLS_LINK_CREATE_ID_g)         \
    X(H5T_IEEE_F32BE_g)                 \
    X(H5T_IEEE_F32LE_g)                 \
    X(H5T_IEEE_F64BE_g)                 \
    X(H5T_IEEE_F64LE_g)                 \
    X(H5T_STD_I8LE_g)                   \
    X(H5T_STD_I16LE_g)                  \
    X(H5T_STD_I32LE_g)                  \
    X(H5T_STD_I64LE_g)                  \
    X(H5T_STD_U8LE_g)                   \
    X(H5T_STD_U16LE_g)                  \
    X(H5T_STD_U32LE_g)                  \
    X(H5T_STD_U64LE_g)

/* A pointer to each, typed by the headers: they are named, never linked. */
typedef struct gnomon_hdf5_api {
#define X(name) __typeof__(&name) name;
    GNOMON_HDF5_SYMBOLS(X)
#undef X
} gnomon_hdf5_api;

/* All there, or all NULL until gnomon_hdf5_load says true. */
extern gnomon_hdf5_api gnomon_h5;

/* What the headers' macros H5T_... and H5P_... stand for. */
#define GNOMON_H5T(name) (*gnomon_h5.H5T_##name##_g)
#define GNOMON_H5P(name) (*gnomon_h5.H5P_CLS_##name##_ID_g)

/* Opens the library unless it is open; one thread at a time. false: reason tells why not, and a
 * later call tries again. */
bool gnomon_hdf5_load(char *reason, size_t size);

#endif
