"""What messages between ranks cost: started by ranks.py under mpiexec, with two ranks. Rank 0 prints JSON.

usage: messages.py ENGINE
"""
import ctypes as c
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bindings/python/gnomon"))
import _abi as abi  # noqa: E402  (the declarations alone: no package need be installed)

lib = c.CDLL(os.environ["GNOMON_LIBRARY"])
for name, kinds in abi.FUNCTIONS.items():
    call = getattr(lib, name)
    call.restype, call.argtypes = kinds()


def check(status):
    if status != 0:
        raise SystemExit(lib.gnomon_last_error(ctx))


ctx = c.c_void_p()
options = abi.gnomon_context_options()
lib.gnomon_context_options_init(c.byref(options), c.sizeof(options))
options.threads = 1
check(lib.gnomon_context_create(c.byref(options), c.byref(ctx)))
comm = abi.gnomon_comm()
lib.gnomon_comm_init(c.byref(comm), c.sizeof(comm))
check(lib.gnomon_comm_open(ctx, sys.argv[1].encode(), c.byref(comm)))


def agree():
    code = c.c_int(0)
    check(lib.gnomon_comm_agree(ctx, c.byref(comm), c.byref(code), None))


def latency():
    """Seconds of a message of a few bytes, one way: an agreement is one there and one back."""
    times = []
    for _ in range(2000):
        begin = time.perf_counter()
        agree()
        times.append((time.perf_counter() - begin) / 2)
    return sorted(times)[len(times) // 2]


def bandwidth(size):
    """Bytes a second from rank 1 to rank 0, with checksums on both sides."""
    buffer = c.create_string_buffer(size)
    repeat = max(20, min(200, (1 << 28) // size))

    def make(_user, piece, data, count):
        data[0] = c.addressof(buffer)
        count[0] = size if piece < 2 * repeat else -1
        if comm.rank == 0 and piece < 2 * repeat:
            count[0] = 0
        return 0

    def take(_user, _piece, _data, _count):
        return 0

    kinds = abi.gnomon_comm_make_fn, abi.gnomon_comm_take_fn
    agree()
    begin = time.perf_counter()
    check(lib.gnomon_comm_deal(ctx, c.byref(comm), kinds[0](make), kinds[1](take), None))
    return size * repeat / (time.perf_counter() - begin)


def merging(queries, k):
    """Seconds to move and merge the answer of one query and neighbour."""
    points = (c.c_float * (4 * max(queries, k)))(*[x % 977 for x in range(4 * max(queries, k))])
    kinds = abi.gnomon_matrix

    def rows(count):
        view = kinds()
        view.data, view.dtype, view.rows, view.cols = c.addressof(points), abi.GNOMON_F32, count, 4
        view.row_stride, view.col_stride = 4, 1
        return view

    search = c.c_void_p()
    o = abi.gnomon_search_options()
    lib.gnomon_search_options_init(c.byref(o), c.sizeof(o))
    o.k = k
    check(lib.gnomon_search_create(ctx, c.byref(rows(queries)), c.byref(o), c.byref(search)))
    check(lib.gnomon_search_first_id(search, comm.rank * k))
    check(lib.gnomon_search_add(search, c.byref(rows(k))))
    found = abi.gnomon_neighbors()
    found.struct_size = c.sizeof(found)
    agree()
    begin = time.perf_counter()
    check(lib.gnomon_comm_neighbors(ctx, c.byref(comm), search, c.byref(found)))
    seconds = time.perf_counter() - begin
    lib.gnomon_neighbors_free(ctx, c.byref(found))
    lib.gnomon_search_destroy(search)
    return seconds / (queries * k)


figures = {"latency": latency(),
           "bytes_a_second": {str(size): bandwidth(size) for size in (1 << 16, 1 << 20, 1 << 24)},
           "seconds_an_answer": merging(100000, 10)}
if comm.rank == 0:
    print(json.dumps(figures))
lib.gnomon_comm_close(c.byref(comm))
lib.gnomon_context_destroy(ctx)
