/* The engine MPI: messages of bytes by MPI_Isend and MPI_Irecv. One source for every implementation
 * of MPI, compiled once for each. */
#include "comm/plugin.h"

#include <mpi.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* MPI counts bytes by an int. */
static const int64_t most_bytes = (int64_t)1 << 30;

/* Another rank of this host: a descriptor that tells when its process has ended. MPI itself waits
 * for ever for a process that is gone; the launcher ends the others, or it does not. */
typedef struct peer {
    int rank;
    long process;
} peer;

typedef struct engine {
    MPI_Comm comm, host;
    int rank, size;
    int started; /* by this plugin */
    int peers;
    peer *peer;
    struct pollfd *watched;
    char host_name[64];
    char reason[256 + MPI_MAX_ERROR_STRING];
} engine;

static engine the; /* a process has one */

static gnomon_status fail(engine *e, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(e->reason, sizeof e->reason, "%s: %s", call, text);
    return GNOMON_ERROR_COMM;
}

/* Whether the process of another rank is gone. */
static int is_lost(engine *e)
{
    if (e->peers == 0 || poll(e->watched, (nfds_t)e->peers, 0) <= 0) return 0;
    for (int i = 0; i < e->peers; i++) {
        if (e->watched[i].revents == 0) continue;
        snprintf(e->reason, sizeof e->reason, "rank %d, process %ld on host %s, has ended",
                 e->peer[i].rank, e->peer[i].process, e->host_name);
        return 1;
    }
    return 0;
}

/* Waits for a request, at first without a pause, then less and less often, so that ranks that wait
 * leave the processor to those that work. */
static gnomon_status wait_for(engine *e, MPI_Request *request, const char *call, MPI_Status *status)
{
    enum { EAGER = 2000, LONGEST = 1000000 };
    struct timespec pause = {0, 20000};
    for (int64_t turn = 0;; turn++) {
        int done = 0;
        const int lost = turn % 64 == 63 && is_lost(e);
        const int code = MPI_Test(request, &done, status);
        if (code != MPI_SUCCESS) return fail(e, call, code);
        if (done) return GNOMON_OK;
        if (lost) return GNOMON_ERROR_COMM;
        if (turn < EAGER) continue;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST) pause.tv_nsec += pause.tv_nsec / 4;
    }
}

/* Moves bytes to another rank, or from it. */
static gnomon_status move(engine *e, bool out, int other, void *data, int64_t bytes)
{
    const char *call = out ? "MPI_Isend" : "MPI_Irecv";
    char *at = data;
    for (int64_t left = bytes; left > 0;) {
        MPI_Request request;
        MPI_Status got;
        const int some = (int)(left < most_bytes ? left : most_bytes);
        int count = some;
        const int code = out ? MPI_Isend(at, some, MPI_BYTE, other, 0, e->comm, &request)
                             : MPI_Irecv(at, some, MPI_BYTE, other, 0, e->comm, &request);
        if (code != MPI_SUCCESS) return fail(e, call, code);
        const gnomon_status status = wait_for(e, &request, call, out ? MPI_STATUS_IGNORE : &got);
        if (status != GNOMON_OK) return status;
        if (!out) MPI_Get_count(&got, MPI_BYTE, &count);
        if (count != some) {
            snprintf(e->reason, sizeof e->reason, "it sent %d bytes where %d are expected", count,
                     some);
            return GNOMON_ERROR_COMM;
        }
        at += some;
        left -= some;
    }
    return GNOMON_OK;
}

static gnomon_status send_bytes(void *user, int to, const void *data, int64_t bytes)
{
    return move(user, true, to, (void *)(uintptr_t)data, bytes);
}

static gnomon_status receive_bytes(void *user, int from, void *data, int64_t bytes)
{
    return move(user, false, from, data, bytes);
}

static const char *reason(void *user)
{
    const engine *e = user;
    return e->reason;
}

static void end_all(void *user, int code)
{
    const engine *e = user;
    MPI_Abort(e->comm, code);
}

/* Watches the processes of this host's other ranks, as far as their numbers mean the same here. */
static int watch(engine *e, int host_rank, int host_size)
{
    struct stat names = {0};
    int code = MPI_SUCCESS;
    gethostname(e->host_name, sizeof e->host_name - 1);
    stat("/proc/self/ns/pid", &names);
    const int64_t own[3] = {e->rank, (int64_t)getpid(), (int64_t)names.st_ino};
    int64_t *all = calloc((size_t)host_size, sizeof own);
    e->peer = calloc((size_t)host_size, sizeof *e->peer);
    e->watched = calloc((size_t)host_size, sizeof *e->watched);
    if (all == NULL || e->peer == NULL || e->watched == NULL)
        code = MPI_ERR_NO_MEM;
    else
        code = MPI_Allgather(own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, e->host);
    for (int i = 0; i < host_size && code == MPI_SUCCESS; i++) {
        const int64_t *its = all + 3 * (int64_t)i;
        if (i == host_rank || its[2] != own[2]) continue;
#ifdef SYS_pidfd_open
        const int descriptor = (int)syscall(SYS_pidfd_open, (pid_t)its[1], 0);
        if (descriptor < 0) continue;
        e->peer[e->peers] = (peer){(int)its[0], (long)its[1]};
        e->watched[e->peers++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
#endif
    }
    free(all);
    return code;
}

static void close_mpi(void *user)
{
    engine *e = user;
    MPI_Request request;
    /* A rank that ends before all are done would look like one that was lost. */
    if (MPI_Ibarrier(e->comm, &request) == MPI_SUCCESS &&
        wait_for(e, &request, "MPI_Ibarrier", MPI_STATUS_IGNORE) != GNOMON_OK)
        MPI_Abort(e->comm, 1);
    for (int i = 0; i < e->peers; i++)
        close(e->watched[i].fd);
    free(e->peer);
    free(e->watched);
    MPI_Comm_free(&e->host);
    MPI_Comm_free(&e->comm);
    if (e->started) MPI_Finalize();
    memset(e, 0, sizeof *e);
}

static gnomon_status open_mpi(gnomon_comm *comm, char why[GNOMON_COMM_WHY])
{
    engine *e = &the;
    int before = 0, after = 0, level = 0, host_rank = 0, host_size = 1;
    MPI_Initialized(&before);
    MPI_Finalized(&after);
    if (e->size > 0 || after) {
        snprintf(why, GNOMON_COMM_WHY, "%s",
                 after ? "MPI has been finalised in this process"
                       : "it is open already in this process");
        return GNOMON_ERROR_COMM;
    }
    *e = (engine){.started = !before};
    int code = before ? MPI_SUCCESS : MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &e->comm);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(e->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(e->comm, &e->rank);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(e->comm, &e->size);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split_type(e->comm, MPI_COMM_TYPE_SHARED, e->rank, MPI_INFO_NULL, &e->host);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(e->host, &host_rank);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(e->host, &host_size);
    if (code == MPI_SUCCESS) code = watch(e, host_rank, host_size);
    if (code != MPI_SUCCESS) {
        fail(e, "MPI", code);
        snprintf(why, GNOMON_COMM_WHY, "%.200s", e->reason);
        return GNOMON_ERROR_COMM;
    }
    comm->user = e;
    comm->rank = e->rank;
    comm->size = e->size;
    comm->host_rank = host_rank;
    comm->host_size = host_size;
    comm->send = send_bytes;
    comm->receive = receive_bytes;
    comm->reason = reason;
    comm->abort = end_all;
    comm->close = close_mpi;
    return GNOMON_OK;
}

static const gnomon_comm_plugin plugin = {GNOMON_COMM_INTERFACE, open_mpi};

__attribute__((visibility("default"))) const gnomon_comm_plugin *gnomon_comm_entry(void);

const gnomon_comm_plugin *gnomon_comm_entry(void)
{
    return &plugin;
}
