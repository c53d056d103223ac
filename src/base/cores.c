#include "base/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One path, or one line of the kernel's; longer ones are passed over. */
enum { TEXT = 4096 };

/* A kernel for more processors than the set has room for refuses the call: then a larger set. */
enum { FIRST_SET = 1024, LAST_SET = 1 << 20 };

static int cores_of_scheduler(void)
{
    for (size_t room = FIRST_SET; room <= LAST_SET; room *= 2) {
        cpu_set_t *set = CPU_ALLOC(room);
        if (!set) return 1;
        const size_t size = CPU_ALLOC_SIZE(room);
        const bool known = sched_getaffinity(0, size, set) == 0;
        const int cores = known ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (known) return cores < 1 ? 1 : cores;
    }
    return 1;
}

/* The first line of a file, without its end. */
static bool first_line(const char *path, char *line)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fgets(line, TEXT, file) != NULL;
    fclose(file);
    if (read) line[strcspn(line, "\n")] = 0;
    return read;
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
    char path[2 * TEXT], line[TEXT];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", group);
    if (first_line(path, line))
        return sscanf(line, "%lld %lld", &quota, &period) == 2 ? cores_of(quota, period) : 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
    if (!first_line(path, line) || sscanf(line, "%lld", &quota) != 1) return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
    if (!first_line(path, line) || sscanf(line, "%lld", &period) != 1) return 0;
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
    char path[TEXT], line[TEXT];
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    int least = 0;
    while (fgets(line, sizeof line, file)) { /* NUMBER:CONTROLLERS:PATH */
        line[strcspn(line, "\n")] = 0;
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
    fclose(file);
    return least;
}

int gnomon_usable_cores(void)
{
    const int cores = cores_of_scheduler(), limit = gnomon_cgroup_cores("/proc", "/sys/fs/cgroup");
    return limit > 0 && limit < cores ? limit : cores;
}
