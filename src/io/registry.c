#include "base/options.h"
#include "io/compress/unpack.h"
#include "io/format.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const gnomon_format *const formats[] = {
#define GNOMON_FORMAT(name) &gnomon_format_##name,
#include "io/formats/list.h"
#undef GNOMON_FORMAT
};

enum { COUNT = sizeof formats / sizeof formats[0] };

const gnomon_format *gnomon_format_at(int index)
{
    return index >= 0 && index < COUNT ? formats[index] : NULL;
}

const gnomon_format *gnomon_format_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(formats[i]->name, name) == 0) return formats[i];
    return NULL;
}

/* Whether the first length bytes of path end in one of the format's endings. */
static bool ends_so(const gnomon_format *format, const char *path, size_t length)
{
    for (const char *ending = format->endings; *ending != '\0';) {
        const size_t n = strcspn(ending, " ");
        if (length > n && strncasecmp(path + length - n, ending, n) == 0) return true;
        ending += n + strspn(ending + n, " ");
    }
    return false;
}

const gnomon_format *gnomon_format_by_ending(const char *path, bool packed)
{
    const gnomon_codec *codec;
    const size_t length = packed ? gnomon_codec_ending(path, &codec) : strlen(path);
    for (int i = 0; i < COUNT; i++)
        if (ends_so(formats[i], path, length)) return formats[i];
    return NULL;
}

const char *gnomon_unknown_ending(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || dot[1] == '\0') return NULL;
    return gnomon_format_by_ending(path, false) == NULL ? dot : NULL;
}

static char names[COUNT * 16];

static void join_names(void)
{
    size_t used = 0;
    for (int i = 0; i < COUNT && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 formats[i]->name);
}

const char *gnomon_format_names(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_names);
    return names;
}

const char *gnomon_format_name(int index, int *can_write)
{
    const gnomon_format *format = gnomon_format_at(index);
    if (format == NULL) return NULL;
    if (can_write != NULL) *can_write = format->writes != 0;
    return format->name;
}

gnomon_status gnomon_format_describe(int index, gnomon_format_info *info)
{
    const gnomon_format *format = gnomon_format_at(index);
    GNOMON_TRY(GNOMON_OPEN_RESULT(NULL, "info", gnomon_format_info, info));
    GNOMON_FAIL_IF(format == NULL, NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("index") " is %d; allowed are 0 to %d", index, COUNT - 1);
    const gnomon_format_info known = {.struct_size = sizeof known,
                                      .name = format->name,
                                      .about = format->about,
                                      .endings = format->endings,
                                      .member = format->member != NULL ? format->member : "",
                                      .writes = format->writes,
                                      .holds = format->holds,
                                      .takes = format->takes};
    gnomon_write_result(info, &known, sizeof known);
    return GNOMON_OK;
}

const char *gnomon_format_missing(const char *format)
{
    const gnomon_format *found = format != NULL ? gnomon_format_find(format) : NULL;
    return found != NULL && found->missing != NULL ? found->missing() : NULL;
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
        found = gnomon_format_by_ending(path, false);
        for (size_t end = length; found == NULL && end > 0; end--) {
            char part[4096];
            if (path[end] != ':' || end >= sizeof part) continue;
            memcpy(part, path, end);
            part[end] = '\0';
            found = gnomon_format_by_ending(part, false);
            if (found != NULL && found->member == NULL) found = NULL;
        }
        if (found == NULL && gnomon_unknown_ending(path) == NULL) found = gnomon_format_find("npy");
    }
    if (found == NULL || found->writes == 0) return NULL;
    if (holds != NULL) *holds = found->holds;
    return found->name;
}
