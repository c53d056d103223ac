/* base/cores.h: how many processor cores the process may use. */
#ifndef GNOMON_BASE_CORES_H
#define GNOMON_BASE_CORES_H

/* Cores that the scheduler may run the process on, or fewer if a control group limits its processor
 * time (a container's limit of CPUs); at least 1. */
int gnomon_usable_cores(void);

/* The least number of cores that the time limits of the process's control groups amount to, rounded
 * up; 0 if there is no limit. Reads PROC/self/cgroup and the groups below FS, which are "/proc" and
 * "/sys/fs/cgroup" but in tests. */
int gnomon_cgroup_cores(const char *proc, const char *fs);

#endif
