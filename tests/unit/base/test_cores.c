/* Limits of processor time by control groups, versions 1 and 2, on trees of files like the
 * kernel's. */
#include "base/cores.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct file {
    const char *path, *text;
} file;

enum { MOST_FILES = 8 };

typedef struct sample {
    const char *what;
    int cores;
    file files[MOST_FILES];
} sample;

static const sample samples[] = {
    {"no control groups", 0, {{NULL, NULL}}},
    {"version 2 without a limit",
     0,
     {{"proc/self/cgroup", "0::/a\n"}, {"fs/a/cpu.max", "max 100000\n"}}},
    {"version 2, two cores",
     2,
     {{"proc/self/cgroup", "0::/a/b\n"}, {"fs/a/b/cpu.max", "200000 100000\n"}}},
    {"a part of a core counts as one",
     2,
     {{"proc/self/cgroup", "0::/\n"}, {"fs/cpu.max", "100001 100000\n"}}},
    {"less than one core", 1, {{"proc/self/cgroup", "0::/\n"}, {"fs/cpu.max", "1000 100000\n"}}},
    {"the group above is narrower",
     3,
     {{"proc/self/cgroup", "0::/a/b/c\n"},
      {"fs/a/cpu.max", "150000 50000\n"},
      {"fs/a/b/cpu.max", "max 100000\n"},
      {"fs/a/b/c/cpu.max", "800000 100000\n"}}},
    {"a container: the host's path leads nowhere",
     2,
     {{"proc/self/cgroup", "0::/system.slice/docker-1.scope\n"},
      {"fs/cpu.max", "200000 100000\n"}}},
    {"version 1",
     4,
     {{"proc/self/cgroup", "9:name=systemd:/\n4:cpu,cpuacct:/docker/1\n3:cpuset:/\n"},
      {"fs/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "400000\n"},
      {"fs/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n"}}},
    {"version 1 by its other name, and version 2 beside it",
     5,
     {{"proc/self/cgroup", "4:cpuacct,cpu:/x\n0::/y\n"},
      {"fs/cpu/x/cpu.cfs_quota_us", "700000\n"},
      {"fs/cpu/x/cpu.cfs_period_us", "100000\n"},
      {"fs/unified/y/cpu.max", "500000 100000\n"}}},
    {"version 1 without a limit",
     0,
     {{"proc/self/cgroup", "4:cpu:/\n"},
      {"fs/cpu/cpu.cfs_quota_us", "-1\n"},
      {"fs/cpu/cpu.cfs_period_us", "100000\n"}}},
    {"cpuset is not cpu",
     0,
     {{"proc/self/cgroup", "4:cpuset,cpuacct:/\n"},
      {"fs/cpu/cpu.cfs_quota_us", "100000\n"},
      {"fs/cpu/cpu.cfs_period_us", "100000\n"}}},
    {"what can't be read is no limit",
     0,
     {{"proc/self/cgroup", "\n:\n::\n0::/a\n0::"},
      {"fs/a/cpu.max", "many 100000\n"},
      {"fs/cpu.max", "100000 0\n"}}},
};

static void write_file(const char *root, const file *f)
{
    char path[512];
    const int length = snprintf(path, sizeof path, "%s/%s", root, f->path);
    assert_true(length > 0 && length < (int)sizeof path);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(f->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* Removes the sample's files, and its folders from the innermost outwards. */
static void remove_files(const char *root, const sample *s)
{
    for (size_t i = 0; i < MOST_FILES && s->files[i].path; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", root, s->files[i].path);
        unlink(path);
    }
    for (int again = 0; again < MOST_FILES; again++)
        for (size_t i = 0; i < MOST_FILES && s->files[i].path; i++) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s", root, s->files[i].path);
            for (char *end; (end = strrchr(path, '/')) > path + strlen(root);) {
                *end = 0;
                rmdir(path);
            }
        }
    assert_int_equal(rmdir(root), 0);
}

static void limits_of_groups(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    for (size_t n = 0; n < sizeof samples / sizeof *samples; n++) {
        const sample *s = &samples[n];
        char root[256], proc[300], fs[300];
        snprintf(root, sizeof root, "%s/cores-XXXXXX", base && *base ? base : "/tmp");
        assert_non_null(mkdtemp(root));
        for (size_t i = 0; i < MOST_FILES && s->files[i].path; i++)
            write_file(root, &s->files[i]);
        snprintf(proc, sizeof proc, "%s/proc", root);
        snprintf(fs, sizeof fs, "%s/fs", root);
        const int cores = gnomon_cgroup_cores(proc, fs);
        remove_files(root, s);
        if (cores != s->cores) fail_msg("%s: %d cores, not %d", s->what, cores, s->cores);
    }
}

/* Never more than the scheduler allows, and one if it allows one. */
static void cores_of_the_process(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const int cores = gnomon_usable_cores();
    assert_in_range(cores, 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
        if (CPU_ISSET(c, &before)) CPU_SET(c, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(gnomon_usable_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits_of_groups),
                                       cmocka_unit_test(cores_of_the_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
