"""Interrupts, threads, fork and spawn."""
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gnomon

X = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
S = gnomon.operator(32, 300, kind="gaussian", random_state=1)


def work(_=None):  # on the CPU: a GPU, which a child of fork can't use, has other last bits
    found = gnomon.neighbors(X[:, :9], n_neighbors=3, device="cpu")
    return gnomon.sketch(X, S, device="cpu").tobytes() + found.indices.tobytes()


LONG = """
import os, signal, sys, threading
import numpy as np
import gnomon
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
S = gnomon.operator(20000, 2000000, kind="gaussian")   # minutes of work
X = np.broadcast_to(np.float32(1), (4000, 2000000))
started = threading.Event()
def kick():
    started.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=kick, daemon=True).start()
def seen(phase, done, total):
    started.set()
with gnomon.config_context(memory_limit=1 << 28):
    if sys.argv[1] == "silent":
        threading.Timer(0.5, started.set).start()
        seen = None
    try:
        gnomon.sketch(X, S, progress=seen, out=np.broadcast_to(np.float32(1), (4000, 20000)).copy())
    except KeyboardInterrupt:
        print("interrupted", gnomon.sketch(X[:2, :50], gnomon.operator(3, 50)).shape)
"""


@pytest.mark.parametrize("how", ["silent", "watched"])
def test_interrupt_ends_the_call_and_nothing_else(how):
    done = subprocess.run([sys.executable, "-c", LONG, how], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted (2, 3)\n" and done.stderr == ""


SEARCH = """
import os, signal, sys, threading, time
import numpy as np
import gnomon
signal.signal(signal.SIGINT, signal.default_int_handler)
random = np.random.default_rng(0)
def sparse(rows, width):  # 100 entries a row
    import scipy.sparse
    columns = width * np.arange(100) + random.integers(0, width, (rows, 100))
    numbers = random.random(rows * 100).astype(np.float32)
    return scipy.sparse.csr_matrix((numbers, columns.ravel(), np.arange(0, 100 * rows + 1, 100)), (rows, 100 * width))
what = sys.argv[1]
X = sparse(80000, 25) if what in ("join", "sparse") else random.normal(size=(120000, 100)).astype(np.float32)
if what == "index":
    index = gnomon.Index.build(X, tables=1, coarse=1, width=500.0, device="cpu")  # one bucket
elif what == "jaccard":
    X = sparse(60000, 4)
calls = {
    "dense": lambda: gnomon.neighbors(X, n_neighbors=10, device="cpu"),
    "l1": lambda: gnomon.neighbors(X, n_neighbors=10, metric="l1", device="cpu"),
    "sparse": lambda: gnomon.neighbors(X, n_neighbors=10, metric="l1", device="cpu"),
    "jaccard": lambda: gnomon.neighbors(X, n_neighbors=10, metric="jaccard", device="cpu"),
    "join": lambda: gnomon.join(X, radius=1.0, metric="l1", device="cpu"),
    "index": lambda: index.kneighbors(X, 10),
}
def kick():
    global kicked
    time.sleep(0.8)
    kicked = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=kick, daemon=True).start()
try:
    calls[what]()
    print("was through")
except KeyboardInterrupt:
    print(time.monotonic() - kicked)
"""


@pytest.mark.parametrize("what", ["dense", "l1", "index", "sparse", "jaccard", "join"])
def test_interrupt_ends_a_search_soon(what):
    if what in ("sparse", "jaccard", "join"):
        pytest.importorskip("scipy")
    done = subprocess.run([sys.executable, "-c", SEARCH, what], capture_output=True, text=True, timeout=120)
    assert done.stderr == "" and float(done.stdout) < 1.5  # some tenths, and twice that on a busy machine


def test_progress_is_told_and_may_end_the_call():
    told = []
    gnomon.sketch(X, S, progress=lambda *what: told.append(what), device="cpu")
    assert told and all(isinstance(phase, str) and done <= total for phase, done, total in told)
    large = np.broadcast_to(np.float32(1), (2000, 50000))  # seconds of work
    with pytest.raises(gnomon.Cancelled):
        gnomon.sketch(large, 2000, kind="gaussian", progress=lambda *what: True, device="cpu")
    with pytest.raises(ZeroDivisionError):
        gnomon.sketch(X, S, progress=lambda *what: 1 / 0, device="cpu")
    with pytest.raises(SystemExit):
        gnomon.sketch(X, S, progress=lambda *what: sys.exit(3), device="cpu")
    assert gnomon.sketch(X, S).shape == (400, 32)


def test_threads():
    expected = work()
    with ThreadPoolExecutor(6) as pool:
        assert all(found == expected for found in pool.map(work, range(24)))


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_processes(how):
    expected = work()  # the parent's threads are at rest, its contexts idle
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert pool.map_async(work, range(4)).get(60) == [expected] * 4


def test_fork_with_an_index():
    index = gnomon.Index.build(X, tables=4, coarse=3, width=20.0)
    before = index.kneighbors(X[:5], 2).indices.tobytes()
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        code = 1
        try:
            same = index.kneighbors(X[:5], 2).indices.tobytes() == before
            index.add(X)  # on the parent's context, whose threads are not here
            same = same and len(index) == 800
            del index
            code = 0 if same else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert len(index) == 400


def test_joblib():
    joblib = pytest.importorskip("joblib")
    try:
        found = joblib.Parallel(2)(joblib.delayed(work)(i) for i in range(4))
    except ImportError as error:  # the workers of an installed joblib don't see this package's folder
        pytest.skip(str(error))
    assert found == [work()] * 4


THREADS = """
import sys
import gnomon
from gnomon._context import lease
from gnomon._library import lib
for n_jobs in (None, -1, 3):
    with lease(n_jobs=n_jobs) as ctx:
        print(lib.gnomon_context_threads(ctx.handle), end=" ")
"""


@pytest.mark.parametrize("given, share", [(None, None), ("1", 1), ("7", 7), ("5,2", 5), ("0", None), ("many", None), ("-1", None)])
def test_threads_of_a_worker(given, share):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    if given is not None:
        environment["OMP_NUM_THREADS"] = given
    done = subprocess.run([sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, timeout=60)
    none, all_cores, three = (int(one) for one in done.stdout.split())
    assert none == (share or all_cores) and all_cores >= 1 and three == 3, done.stderr


def test_objects_that_die_together():
    class Cycle:
        pass

    for _ in range(30):
        cycle = Cycle()
        cycle.self = cycle
        cycle.held = [gnomon.Index.build(X[:50], tables=1, coarse=2, width=9.0), gnomon.neighbors(X[:50]), S]
        cycle.stream = gnomon.Sketcher(S)
        cycle.stream.push(X[:, :100])
    del cycle
    import gc
    gc.collect()
    assert gnomon.sketch(X, S).shape == (400, 32)


def test_import_loads_little():
    script = "import sys, gnomon; print([m for m in ('scipy', 'sklearn', 'torch', 'matplotlib', 'tqdm') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_signals_reach_other_threads_handlers():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *a: seen.append(a))
    try:
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        while not seen:
            gnomon.sketch(X, S)
    finally:
        signal.signal(signal.SIGUSR1, before)
