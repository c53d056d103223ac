"""The library's searches, called through ctypes: what the programs beside this one share."""
import ctypes as c
import gzip
import os
import statistics
import time

import numpy as np

FASHION = "/usr/share/datasets/fashion-mnist/"
METRICS = {"l2": 1, "cosine": 2, "ip": 3, "hamming": 4, "jaccard": 5, "l1": 6}
DTYPES = {np.dtype(np.float32): 1, np.dtype(np.float64): 2, np.dtype(np.uint8): 6}


QUIET = 0.05  # of a processor: what others may take of it in a round that counts


def others():
    """Seconds that processors have worked, less this process's own."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = (int(x) for x in file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - time.process_time()


def in_turns(calls, rounds, patience=20):
    """Calls each in its turn, again and again, until each has had so many rounds in which the machine did nothing
    else, or for so many seconds; then the quietest rounds count. For each: the medians of wall and processor seconds,
    the largest share of a processor that others had, and what the last call gave back."""
    taken = [[] for _ in calls]
    results = [None] * len(calls)
    end = time.perf_counter() + patience

    def lacking():
        return any(sum(t[0] < QUIET for t in side) < rounds for side in taken)

    while min(len(t) for t in taken) < rounds or (lacking() and time.perf_counter() < end):
        for i, call in enumerate(calls):
            time.sleep(0.02)  # the other side's threads come to rest
            before, wall, cpu = others(), time.perf_counter(), time.process_time()
            results[i] = call()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            taken[i].append(((others() - before) / wall, wall, cpu))
    out = []
    for side, result in zip(taken, results):
        best = sorted(side)[:rounds]
        wall, cpu = (statistics.median(t[i] for t in best) for i in (1, 2))
        out.append((wall, cpu, max(0.0, best[-1][0]), result))
    return out


class Matrix(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("memory", c.c_int), ("rows", c.c_int64),
                ("cols", c.c_int64), ("row_stride", c.c_int64), ("col_stride", c.c_int64)]


class Csr(c.Structure):
    _fields_ = [("rows", c.c_int64), ("cols", c.c_int64), ("offsets", c.c_void_p),
                ("indices", c.c_void_p), ("values", c.c_void_p), ("dtype", c.c_int)]


class ContextOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p), ("threads", c.c_int),
                ("allocator", c.c_void_p), ("progress", c.c_void_p), ("progress_user", c.c_void_p),
                ("memory_limit", c.c_int64), ("seed", c.c_uint64)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("k", c.c_int64),
                ("radius", c.c_double), ("filter", c.c_void_p), ("filter_bits", c.c_int64),
                ("exclude", c.c_int64)]


class Neighbors(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("queries", c.c_int64), ("k", c.c_int64),
                ("base", c.c_int64), ("offsets", c.POINTER(c.c_int64)),
                ("ids", c.POINTER(c.c_int64)), ("distances", c.POINTER(c.c_double)),
                ("compared", c.c_int64), ("verified", c.c_int64)]


class Guarantee(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("recall", c.c_double),
                ("confidence", c.c_double), ("k", c.c_int64), ("radius", c.c_double),
                ("memory", c.c_int64), ("queries", c.c_int64), ("seed", c.c_uint64),
                ("descriptor", c.c_void_p), ("slower", c.c_int), ("family", c.c_int),
                ("uses", c.c_int64)]


class Trial(c.Structure):
    _fields_ = [("family", c.c_int), ("width", c.c_double), ("sides", c.c_int64),
                ("tables", c.c_int64), ("functions", c.c_int64), ("fine", c.c_int64),
                ("probes", c.c_int64), ("rerank", c.c_int64), ("coarse", c.c_int64),
                ("limit", c.c_int64), ("recall", c.c_double), ("candidates", c.c_double),
                ("cost", c.c_double), ("bytes", c.c_int64), ("chosen", c.c_int), ("centres", c.c_int64)]


class Functions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("family", c.c_int), ("dim", c.c_int64),
                ("count", c.c_int64), ("width", c.c_double), ("sides", c.c_int64),
                ("seed", c.c_uint64), ("descriptor", c.c_void_p), ("centre_count", c.c_int64),
                ("centres", c.c_void_p)]


class SearchParams(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("tables", c.c_int64), ("probes", c.c_int64),
                ("coarse", c.c_int64), ("candidates", c.c_int64), ("rerank", c.c_int64)]


class IndexOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("functions", Functions),
                ("tables", c.c_int64), ("coarse", c.c_int64), ("fine", c.c_int64),
                ("codes", c.c_int64), ("memory", c.c_int64), ("search_params", SearchParams)]


class Work(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("buckets", c.c_int64), ("candidates", c.c_int64),
                ("verified", c.c_int64), ("exact", c.c_int64), ("hash_seconds", c.c_double),
                ("search_seconds", c.c_double)]


class Tuning(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("exact", c.c_int), ("reason", c.c_char_p),
                ("recall", c.c_double), ("bound", c.c_double), ("tested", c.c_int64),
                ("asked", c.c_int64), ("exact_cost", c.c_double), ("trials", c.POINTER(Trial)),
                ("trial_count", c.c_int64)]


class RabitqOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("bits", c.c_int64), ("seed", c.c_uint64),
                ("codes_only", c.c_int)]


class RabitqParams(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("recall", c.c_double), ("rerank", c.c_int64)]


class RabitqInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("options", RabitqOptions), ("points", c.c_int64), ("dim", c.c_int64),
                ("code_bytes", c.c_int64)]


def images(name, count):
    """Fashion-MNIST's, a row each, in bytes."""
    with gzip.open(FASHION + name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:count]


class Library:
    """A library, and a context of it on the CPU."""

    def __init__(self, path, threads):
        self.lib = c.CDLL(os.path.abspath(path))
        self.lib.gnomon_last_error.restype = self.lib.gnomon_version.restype = c.c_char_p
        self.lib.gnomon_lsh_family_name.restype = c.c_char_p
        self.ctx = c.c_void_p()
        options = ContextOptions(struct_size=c.sizeof(ContextOptions), device=b"cpu", threads=threads)
        assert self.lib.gnomon_context_create(c.byref(options), c.byref(self.ctx)) == 0
        self.version = self.lib.gnomon_version().decode()

    def close(self):
        self.lib.gnomon_context_destroy(self.ctx)

    def check(self, status):
        if status != 0:
            raise SystemExit(self.lib.gnomon_last_error(self.ctx).decode())

    @staticmethod
    def view(points):
        """Of an array, or of a CSR matrix of SciPy's: its view, and what must live as long."""
        if isinstance(points, np.ndarray):
            view = Matrix(points.ctypes.data, DTYPES[points.dtype], 0, points.shape[0],
                          points.shape[1], points.shape[1], 1)
            return view, points
        arrays = [points.indptr.astype(np.int64), points.indices.astype(np.int64),
                  points.data.astype(np.float32)]
        return Csr(points.shape[0], points.shape[1], *(a.ctypes.data for a in arrays), 1), arrays

    def _call(self, name, view):
        return getattr(self.lib, name + ("_csr" if isinstance(view, Csr) else ""))

    def _options(self, metric, k):
        return Options(struct_size=c.sizeof(Options), metric=METRICS[metric], k=k, exclude=-1)

    def _take(self, found, k):
        shape = (found.queries, k)
        ids = np.ctypeslib.as_array(found.ids, shape).copy()
        distances = np.ctypeslib.as_array(found.distances, shape).copy()
        facts = {"verified": found.verified, "compared": found.compared}
        self.lib.gnomon_neighbors_free(self.ctx, c.byref(found))
        return ids, distances, facts

    def exact(self, metric, base, queries, k):
        """ids, distances and what was done, of views."""
        options = self._options(metric, k)
        found = Neighbors(struct_size=c.sizeof(Neighbors))
        self.check(self._call("gnomon_neighbors_exact", base)(
            self.ctx, c.byref(base), c.byref(queries), c.byref(options), c.byref(found)))
        return self._take(found, k)

    def build(self, metric, family, base, tables, depth, width=0.0, sides=0, codes=0):
        """An index with these parameters."""
        options, index = IndexOptions(struct_size=c.sizeof(IndexOptions)), c.c_void_p()
        options.metric, options.tables, options.coarse, options.codes = METRICS[metric], tables, depth, codes
        options.functions = Functions(struct_size=c.sizeof(Functions), dim=base.cols, width=width, sides=sides,
                                      family=self.lib.gnomon_lsh_family_from_name(family.encode()))
        options.search_params.struct_size = c.sizeof(SearchParams)
        self.check(self.lib.gnomon_lsh_create(self.ctx, c.byref(options), c.byref(index)))
        self.check(self._call("gnomon_lsh_add", base)(index, c.byref(base)))
        return index

    def query(self, index, metric, queries, k, probes=None, rerank=0):
        """With the index's own search parameters unless probes are given."""
        options, work = self._options(metric, k), Work(struct_size=c.sizeof(Work))
        found = Neighbors(struct_size=c.sizeof(Neighbors))
        params = SearchParams(struct_size=c.sizeof(SearchParams), probes=probes or 0, rerank=rerank)
        self.check(self._call("gnomon_lsh_query", queries)(
            self.ctx, index, c.byref(queries), c.byref(options), None if probes is None else c.byref(params),
            c.byref(found), c.byref(work)))
        ids, distances, facts = self._take(found, k)
        facts.update(buckets=work.buckets, candidates=work.candidates, exact=work.exact)
        return ids, distances, facts

    def tune(self, metric, base, queries, k, recall, seed=0, slower=0, tested=1000, family=None, uses=0):
        """An index, None when it is to be exact, and the facts; queries None: the base itself."""
        guarantee = Guarantee(struct_size=c.sizeof(Guarantee), metric=METRICS[metric], recall=recall,
                          confidence=0.95, k=k, queries=tested, seed=seed, slower=slower, uses=uses)
        if family:
            guarantee.family = self.lib.gnomon_lsh_family_from_name(family.encode())
        tuning, index = Tuning(struct_size=c.sizeof(Tuning)), c.c_void_p()
        self.check(self._call("gnomon_lsh_tune", base)(
            self.ctx, c.byref(guarantee), c.byref(base), c.byref(queries) if queries else None,
            c.byref(index), c.byref(tuning)))
        facts = {"exact": bool(tuning.exact), "reason": tuning.reason.decode(),
                 "guaranteed": recall, "tested_recall": tuning.recall, "bound": tuning.bound,
                 "tested": tuning.tested, "asked": tuning.asked, "exact_cost": tuning.exact_cost,
                 "trials": tuning.trial_count}
        for way in tuning.trials[:tuning.trial_count]:
            if way.chosen == 2:
                facts.update({name: getattr(way, name) for name, _ in Trial._fields_
                              if name not in ("chosen", "recall", "bytes", "sides")})
                facts["family"] = self.lib.gnomon_lsh_family_name(way.family).decode()
                facts["index_bytes"] = way.bytes
        self.lib.gnomon_lsh_tuning_free(self.ctx, c.byref(tuning))
        return (None if facts["exact"] else index), facts

    def codes(self, metric, base, bits, seed=0):
        """Codes of points, and their bytes a point."""
        options = RabitqOptions(struct_size=c.sizeof(RabitqOptions), metric=METRICS[metric], bits=bits, seed=seed)
        index, info = c.c_void_p(), RabitqInfo(struct_size=c.sizeof(RabitqInfo))
        self.check(self.lib.gnomon_rabitq_create(self.ctx, c.byref(options), c.byref(base), c.byref(index)))
        self.lib.gnomon_rabitq_describe(index, c.byref(info))
        return index, info.code_bytes / info.points

    def query_codes(self, index, metric, queries, k, recall=1.0, rerank=0):
        options = self._options(metric, k)
        params = RabitqParams(struct_size=c.sizeof(RabitqParams), recall=recall, rerank=rerank)
        found = Neighbors(struct_size=c.sizeof(Neighbors))
        self.check(self.lib.gnomon_rabitq_query(self.ctx, index, c.byref(queries), c.byref(options), c.byref(params),
                                                c.byref(found)))
        return self._take(found, k)

    def drop_codes(self, index):
        self.lib.gnomon_rabitq_destroy(index)

    def drop(self, index):
        self.lib.gnomon_lsh_destroy(index)
