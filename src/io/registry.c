#include "io/format.h"

#include <string.h>
#include <strings.h>

/* In the order of io.h. */
/* clang-format off */
static const gnomon_format *const formats[] = {
    &gnomon_format_npy,
    &gnomon_format_npz,
    &gnomon_format_csv,
    &gnomon_format_tsv,
    &gnomon_format_fvecs,
    &gnomon_format_bvecs,
    &gnomon_format_ivecs,
    &gnomon_format_fbin,
    &gnomon_format_u8bin,
    &gnomon_format_i8bin,
    &gnomon_format_f16bin,
    &gnomon_format_idx,
    &gnomon_format_hdf5,
    &gnomon_format_mtx,
    &gnomon_format_svmlight,
    &gnomon_format_raw,
    NULL,
};
/* clang-format on */

const gnomon_format *gnomon_format_at(int index)
{
    int count = (int)(sizeof formats / sizeof formats[0]) - 1;
    return index >= 0 && index < count ? formats[index] : NULL;
}

const gnomon_format *gnomon_format_find(const char *name)
{
    for (int i = 0; gnomon_format_at(i) != NULL; i++)
        if (strcmp(formats[i]->name, name) == 0) return formats[i];
    return NULL;
}

const gnomon_format *gnomon_format_by_extension(const char *path, bool gzipped)
{
    size_t length = strlen(path);
    if (gzipped && length > 3 && strcasecmp(path + length - 3, ".gz") == 0) length -= 3;
    for (int i = 0; gnomon_format_at(i) != NULL; i++) {
        for (const char *const *e = formats[i]->extensions; *e != NULL; e++) {
            size_t n = strlen(*e);
            if (length > n && strncasecmp(path + length - n, *e, n) == 0) return formats[i];
        }
    }
    return NULL;
}

const char *gnomon_unknown_ending(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || dot[1] == '\0') return NULL;
    return gnomon_format_by_extension(path, false) == NULL ? dot : NULL;
}

const char *gnomon_format_names(void)
{
    return "npy, npz, csv, tsv, fvecs, bvecs, ivecs, fbin, u8bin, i8bin, f16bin, idx, hdf5, mtx, "
           "svmlight, raw";
}

const char *gnomon_format_name(int index, int *can_write)
{
    const gnomon_format *format = gnomon_format_at(index);
    if (format == NULL) return NULL;
    if (can_write != NULL) *can_write = format->writes != 0;
    return format->name;
}

const char *gnomon_format_for(const char *path, const char *format, int *holds)
{
    const gnomon_format *found;
    if (holds != NULL) *holds = 0;
    if (format != NULL) {
        found = gnomon_format_find(format);
    } else {
        size_t length = strlen(path);
        /* the part before the last ':' that has the extension of a format with members */
        found = gnomon_format_by_extension(path, false);
        for (size_t end = length; found == NULL && end > 0; end--) {
            char part[4096];
            if (path[end] != ':' || end >= sizeof part) continue;
            memcpy(part, path, end);
            part[end] = '\0';
            found = gnomon_format_by_extension(part, false);
            if (found != NULL && (found->flags & GNOMON_FORMAT_MEMBERS) == 0) found = NULL;
        }
        if (found == NULL && gnomon_unknown_ending(path) == NULL) found = gnomon_format_find("npy");
    }
    if (found == NULL || found->writes == 0) return NULL;
    if (holds != NULL)
        *holds = ((found->flags & GNOMON_FORMAT_DENSE) != 0 ? GNOMON_HOLDS_DENSE : 0) |
                 ((found->flags & GNOMON_FORMAT_SPARSE) != 0 ? GNOMON_HOLDS_SPARSE : 0);
    return found->name;
}
