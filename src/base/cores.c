#include "base/cores.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Nothing here allocates memory: what a failed allocation would leave unknown would change the
 * number of threads in silence. */

/* A path, and what is read of one of the kernel's files. */
enum { TEXT = 4096 };

/* A kernel that may have more processors than the set has room for refuses the call. */
enum { SETS = 16 }; /* of 1,024 processors */

static int cores_of_scheduler(void)
{
    cpu_set_t sets[SETS];
    if (sched_getaffinity(0, sizeof sets, sets) != 0) return 1;
    const int cores = CPU_COUNT_S(sizeof sets, sets);
    return cores < 1 ? 1 : cores;
}

/* The beginning of a file, as text. */
static bool read_text(const char *path, char *text)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length < TEXT - 1;) {
        got = read(file, text + length, TEXT - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    close(file);
    text[length] = 0;
    return length > 0;
}

static int cores_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return 0;
    const long long cores = (quota - 1) / period + 1;
    return cores < INT_MAX ? (int)cores : 0;
}

/* The limit of one group. Version 2 has "QUOTA PERIOD" or "max PERIOD" in one file, version 1 a
 * file for each, and a quota of -1 if there is no limit. */
static int limit_of(const char *group)
{
    char path[2 * TEXT], text[TEXT];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", group);
    if (read_text(path, text))
        return sscanf(text, "%lld %lld", &quota, &period) == 2 ? cores_of(quota, period) : 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
    if (!read_text(path, text) || sscanf(text, "%lld", &quota) != 1) return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
    if (!read_text(path, text) || sscanf(text, "%lld", &period) != 1) return 0;
    return cores_of(quota, period);
}

static void take_least(int *least, int cores)
{
    if (cores > 0 && (*least == 0 || cores < *least)) *least = cores;
}

/* The least limit of a group and of those it lies in. A container often sees its own group as the
 * root, and a path of the host's that leads nowhere: what isn't there is passed over. */
static void take_groups(const char *fs, const char *mount, const char *name, int *least)
{
    char path[TEXT];
    const int root = snprintf(path, sizeof path, "%s%s", fs, mount);
    const int length = snprintf(path, sizeof path, "%s%s%s", fs, mount, name);
    if (root < 0 || length < root || length >= (int)sizeof path) return;
    for (;;) {
        take_least(least, limit_of(path));
        char *end = strrchr(path, '/');
        if (!end || end < path + root) return;
        *end = 0;
    }
}

/* Whether "cpu" is among names that commas separate. */
static bool names_cpu(const char *names)
{
    for (;;) {
        const size_t length = strcspn(names, ",");
        if (length == 3 && strncmp(names, "cpu", 3) == 0) return true;
        if (names[length] == 0) return false;
        names += length + 1;
    }
}

int gnomon_cgroup_cores(const char *proc, const char *fs)
{
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    if (!read_text(path, text)) return 0;
    int least = 0;
    for (char *line = text, *next; *line != 0; line = next) { /* NUMBER:CONTROLLERS:PATH */
        next = line + strcspn(line, "\n");
        if (*next != 0) *next++ = 0;
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        names++;
        if (*names == 0) { /* version 2, alone or beside version 1 */
            take_groups(fs, "", group, &least);
            take_groups(fs, "/unified", group, &least);
        } else if (names_cpu(names)) { /* "cpu" and "cpu,cpuacct" are both usual names */
            take_groups(fs, "/cpu", group, &least);
            take_groups(fs, "/cpu,cpuacct", group, &least);
        }
    }
    return least;
}

int gnomon_usable_cores(void)
{
    const int cores = cores_of_scheduler(), limit = gnomon_cgroup_cores("/proc", "/sys/fs/cgroup");
    return limit > 0 && limit < cores ? limit : cores;
}
