#include "io/format.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS = 40 };

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static bool holds_members(const char *path)
{
    const gnomon_format *format = gnomon_format_by_ending(path, false);
    return format != NULL && format->member != NULL;
}

gnomon_status gnomon_split_member(gnomon_context *ctx, const char *path, bool for_writing,
                                  char **file, char **member)
{
    *file = *member = NULL;
    gnomon_status status = gnomon_copy_text(ctx, path, file);
    if (status == GNOMON_OK) status = gnomon_copy_text(ctx, "", member);
    if (status != GNOMON_OK || (!for_writing && exists(path))) return status;
    /* from the right, so that a folder or file name with a colon in it wins */
    for (char *end = *file + strlen(*file); end > *file; end--) {
        if (*end != ':') continue;
        *end = '\0';
        if (for_writing ? holds_members(*file) : exists(*file)) {
            char *text = NULL;
            GNOMON_TRY(gnomon_copy_text(ctx, end + 1, &text));
            gnomon_free(ctx, *member);
            *member = text;
            return GNOMON_OK;
        }
        *end = ':';
    }
    return GNOMON_OK;
}

/* A file that is there, by device and inode, or one that would be made: its folder's and its name.
 */
typedef struct place {
    dev_t device;
    ino_t inode;
    char name[NAME_MAX + 1]; /* "" for one that is there */
} place;

/* Where a file of this path would be made. There is no context to allocate in. */
static bool find_new(const char *path, place *p)
{
    char target[PATH_MAX], link[PATH_MAX];
    struct stat st;
    size_t length = strlen(path);
    memcpy(target, path, length + 1);
    /* a link to nothing yet is followed, as the writer does */
    for (int i = 0; i < LINKS; i++) {
        const ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0) break;
        const char *slash = strrchr(target, '/');
        const size_t folder = link[0] == '/' || slash == NULL ? 0 : (size_t)(slash - target) + 1;
        if (folder + (size_t)n >= sizeof target) return false;
        memcpy(target + folder, link, (size_t)n);
        target[folder + (size_t)n] = '\0';
    }
    char *slash = strrchr(target, '/');
    const char *base = slash != NULL ? slash + 1 : target;
    if (base[0] == '\0' || strlen(base) >= sizeof p->name) return false;
    strcpy(p->name, base);
    if (slash != NULL) slash[1] = '\0';
    if (stat(slash != NULL ? target : ".", &st) != 0) return false;
    p->device = st.st_dev;
    p->inode = st.st_ino;
    return true;
}

static bool find(const char *path, place *p)
{
    char part[PATH_MAX];
    struct stat st;
    const size_t length = strlen(path);
    if (strcmp(path, "-") == 0 || length >= sizeof part) return false;
    memcpy(part, path, length + 1);
    bool there = stat(part, &st) == 0;
    /* the file part of file:member; a folder or file name with a colon in it wins */
    for (size_t end = length; end > 0 && !there; end--) {
        if (part[end] != ':') continue;
        part[end] = '\0';
        there = stat(part, &st) == 0;
        if (!there && holds_members(part)) return find_new(part, p);
        part[end] = ':';
    }
    if (!there) return find_new(path, p);
    *p = (place){.device = st.st_dev, .inode = st.st_ino};
    return true;
}

int gnomon_same_file(const char *a, const char *b)
{
    place x, y;
    if (a == NULL || b == NULL || !find(a, &x) || !find(b, &y)) return 0;
    return x.device == y.device && x.inode == y.inode && strcmp(x.name, y.name) == 0;
}
