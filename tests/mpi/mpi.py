"""Jobs on several ranks under mpiexec: the bytes of the plain command, failures, a rank that is killed,
a message that is damaged.

usage: mpi.py GNOMON PLUGINS mpich|openmpi MPIEXEC WORK DAMAGE
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import scipy.sparse

gnomon, plugins, engine, mpiexec, work, damage = sys.argv[1:]
os.makedirs(work, exist_ok=True)
os.chdir(work)
LAUNCH = {"mpich": [mpiexec],
          # a job that fails takes Open MPI's launcher two seconds, unless it kills at once
          "openmpi": [mpiexec, "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "0"] +
                     (["--allow-run-as-root"] if os.getuid() == 0 else [])}[engine]
ENVIRONMENT = {**os.environ, "GNOMON_PLUGIN_DIR": plugins}
seed = int(os.environ.get("GNOMON_TEST_SEED", random.randrange(1 << 30)))
print(f"seed {seed}")
rng = np.random.default_rng(seed)


def launch(ranks, words):
    return [*LAUNCH, "-n", str(ranks), gnomon, *words, "--comm", engine]


def run(words):
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def left_over():
    return [name for name in os.listdir(".") if name.startswith(".got") or name.startswith("got")]


def clear():
    for name in left_over():
        os.remove(name)


def make_files():
    n, d = int(rng.integers(300, 900)), int(rng.integers(20, 70))
    points = np.round(rng.standard_normal((n, d)) * 2).astype("f4")  # many equal distances
    np.save("points.npy", points)
    np.save("doubles.npy", rng.standard_normal((n, d)) * 10.0 ** rng.integers(-9, 9, (n, 1)))
    np.save("columns.npy", np.asfortranarray(points))
    np.save("queries.npy", points[: n // 5] + np.float32(0.25))
    np.save("few.npy", points[:2])
    np.save("none.npy", points[:0])
    many = rng.standard_normal((200000, 6)).astype("f4")  # of several pieces
    np.save("many.npy", many)
    np.save("targets.npy", many[:, :2] - many[:, 2:4] + rng.standard_normal((200000, 2)))
    np.save("one.npy", rng.standard_normal((n, 1)))
    many[160000, 1] = np.inf
    np.save("bad-many.npy", many)
    bad = points.copy()
    bad[n - 1, 3] = np.nan
    np.save("bad.npy", bad)
    bad = bad.astype("f8")
    bad[n - 1, 3] = 1e200
    np.save("huge.npy", bad)
    sparse = scipy.sparse.random(n, 200, 0.05, random_state=seed % 1000, dtype="f4").tocsr()
    scipy.sparse.save_npz("sparse.npz", sparse)
    tensor = rng.integers(-9, 9, (4, 2051, 2051), dtype="i1")  # a slab is a slice
    np.save("tensor.npy", tensor)
    np.save("one-slice.npy", tensor[:1, :5, :7])
    np.save("fortran.npy", np.asfortranarray(rng.integers(-9, 9, (1030, 2039, 5), dtype="i1")))
    bad = np.lib.format.open_memmap("bad-tensor.npy", "w+", "f4", tensor.shape)
    bad[:] = tensor
    bad[3, 1, 5] = np.nan
    with open("bad.jsonl", "w", encoding="utf-8") as file:
        file.write('{"text": "one"}\n{"text": 3}\n')
    large = np.zeros((30000, 1 + d), "i4")  # more than a rank's memory takes
    large[:, 0] = d
    large[29998, 0] = d + 1
    large.tofile("bad.fvecs")
    points[:40].tofile("plain.raw")
    np.savetxt("text.csv", points[:30], delimiter=",")
    words = [f"w{x}" for x in range(30)]
    texts = [" ".join(rng.choice(words, rng.integers(0, 40))) for _ in range(400)]
    with open("texts.jsonl", "w", encoding="utf-8") as file:
        for at in range(2000):
            text = texts[rng.integers(0, len(texts))] + f" w{at % 7} é{at % 3}"
            file.write(json.dumps({"id": f"d{at * 7919 % 2000}", "text": text}) + "\n")
    with open("lines.txt", "w", encoding="utf-8") as file:
        for _ in range(200):
            file.write(" ".join(rng.choice(words, rng.integers(1, 7))) + "\n")
    return n


JOBS = [
    "project points.npy -k 9 -o {}.npy",
    "project points.npy -k 5 --operator gaussian --memory 70M -o {}.fvecs",
    "project doubles.npy -k 6 --operator sjlt -o {}.npy",
    "project columns.npy -k 7 --operator srht -o {}.csv",
    "project sparse.npz -k 8 --operator very-sparse -o {}.npy",
    "project few.npy -k 3 -o {}.npy",
    "project none.npy -k 3 -o {}.npy",
    "project columns.npy -k 4 --operator kronecker -o {}.npy",
    "neighbors points.npy queries.npy -k 6 -o {}.npy --distances {}-distances.npy",
    "neighbors points.npy points.npy -k 3 --metric ip --exclude-self -o {}.npy",
    "neighbors sparse.npz sparse.npz -k 4 --metric jaccard --exclude-self -o {}.npy",
    "neighbors sparse.npz sparse.npz -k 4 --metric cosine -o {}.npy --memory 66M",
    "neighbors doubles.npy doubles.npy --radius 1 --metric cosine -o {}.csv",
    "neighbors few.npy queries.npy -k 2 -o {}.npy",
    "neighbors points.npy none.npy -k 2 -o {}.npy",
    "join points.npy --threshold 9 -o {}.csv --counts {}-counts.npy --clusters {}-clusters.csv",
    "join points.npy queries.npy --threshold 0.5 --metric cosine -o {}.npz",
    "join doubles.npy points.npy --threshold -1 --metric ip -o {}.npy --distances {}-distances.npy --memory 66M",
    "join points.npy --top 50 -o {}.csv",
    "join queries.npy few.npy --threshold 12 --max-pairs 17 -o {}.csv",
    "join none.npy points.npy --threshold 3 -o {}.csv",
    "join points.npy --threshold 6 --recall 0.9 --method lsh -o {}.csv",
    "join text.csv --threshold 9 -o {}.csv --checkpoint {}.checkpoint",
    "join sparse.npz --metric jaccard --threshold 0.9 -o {}.csv",
    "join sparse.npz --metric l2 --threshold 3 -o {}.csv --memory 66M",
    "dedup texts.jsonl -o {}.jsonl --pairs {}-pairs.csv --clusters {}-clusters.csv --id id",
    "dedup texts.jsonl lines.txt --recall 1 --keep longest --ids {}.csv --char-ngram 5 --lower",
    "dedup lines.txt texts.jsonl --exact -o {}.txt",
    "dedup texts.jsonl --against old.signed -o {}.jsonl --sign {}.signed --work . --memory 80M",
    "dedup texts.jsonl --sign {}.signed --id id",
    "dedup texts.jsonl --weighted --containment --similarity 0.9 -o {}.jsonl",
    "join lines.txt --text lines --ngram 1 --similarity 0.5",
    "svd many.npy -k 3 -o {}.npz --measure",
    "svd many.npy --tolerance 0.6 --output-dtype f8 -o {}.npz --memory 70M",
    "svd points.npy -k 4 --power 0 -o {}.npz",
    "svd few.npy -k 2 -o {}.npz",
    "svd sparse.npz -k 5 -o {}.npz",
    "svd sparse.npz -k 4 --standardize --output-dtype f8 -o {}.npz",
    "svd many.npy -k 2 --center -o {}.npz",
    "lstsq many.npy targets.npy -o {}.npy --residual {}-residual.npy",
    "lstsq many.npy targets.npy -o {}.npy --sketch-size 300 --damp 2 --memory 70M",
    "lstsq doubles.npy one.npy -o {}.csv --output-dtype f4",
    "index build points.npy --tables 5 --functions 4 --fine 2 --width 6 --probes 3 -o {}.npy",
    "index build columns.npy --metric cosine --tables 3 --functions 9 --seed 5 -o {}.npy --memory 66M",
    "index build points.npy --family k-means --centres 9 --probes 2 -o {}.npy",
    "lstsq sparse.npz one.npy -o {}.npy --damp 1 --residual {}-residual.npy",
    "hosvd tensor.npy --ranks 2,3,2 --measure -o {}.npz --memory 150M",
    "hosvd fortran.npy --tolerance 0.9 --sequential -o {}.npz",
]


def same_bytes():
    signed = run([gnomon, *"dedup lines.txt --sign old.signed".split()])
    assert signed.returncode == 0, signed.stderr
    for number, job in enumerate(JOBS):
        plain = run([gnomon, *job.format(*["plain"] * 3).split()])
        assert plain.returncode == 0, (job, plain.stderr)
        outputs = [word for word in job.format(*["plain"] * 3).split() if word.startswith("plain")]
        outputs = [word for word in outputs if not word.endswith(".checkpoint")]
        # 3, and another number in turn: a launch takes longer than most jobs, the more so Open MPI's
        some = (1, 2, 4)[(number + seed) % 3]
        for ranks in (3, some) if engine == "mpich" else ((3, some)[(number // 3 + seed) % 2],):
            got = run(launch(ranks, job.format(*["got"] * 3).split()))
            assert got.returncode == 0, (job, ranks, got.stderr)
            assert got.stdout == plain.stdout, (job, ranks)
            for output in outputs:
                assert read(output) == read(output.replace("plain", "got")), (job, ranks, output)
            clear()
    print(f"{len(JOBS)} jobs with 1 to 4 ranks: the bytes of the plain command")


def one_operator():
    """Ranks of other threads would choose other operators."""
    np.save("incoherent.npy", rng.standard_normal((2000, 512)).astype("f4"))
    words = "project incoherent.npy -k 64 --operator auto --assume incoherent -o {}.npy --threads {}"
    for threads in (1, 64):
        plain = run([gnomon, *words.format(f"plain-{threads}", threads).split()])
        assert plain.returncode == 0, plain.stderr
    assert read("plain-1.npy") != read("plain-64.npy")
    for threads in ((1, 64), (64, 1)):
        several = launch(1, words.format("got", threads[0]).split())
        several += [":", "-n", "1", gnomon, *words.format("got", threads[1]).split(), "--comm", engine]
        got = run(several)
        assert got.returncode == 0, got.stderr
        assert read("got.npy") == read(f"plain-{threads[0]}.npy"), threads
        clear()
    print("--operator auto: rank 0's choice is that of all")


def failures(n):
    """(words, exit code, what is said, once); Open MPI, whose launcher is slow, takes some of them in turn."""
    for number, (words, code, said) in enumerate([
            ("project bad.npy -k 4 -o got.npy", 3, f"NaN or infinity in row {n - 1}, column 3"),
            ("neighbors bad.npy queries.npy -k 4 -o got.npy", 3, f"base has NaN or infinity in row {n - 1}, column 3"),
            ("neighbors points.npy bad.npy -k 4 -o got.npy", 3, f"NaN or infinity in row {n - 1}, column 3"),
            ("project missing.npy -k 4 -o got.npy", 4, "missing.npy"),
            ("project points.npy -k 4 -o nowhere/got.npy", 4, "can't open the folder"),
            ("neighbors few.npy queries.npy -k 3 -o got.npy", 2, "few.npy has 2 points"),
            ("project text.csv -k 4 -o got.npy", 2, "text.csv can be read from the beginning alone"),
            ("info points.npy", 2,
             "these run on several: project, neighbors, join, dedup, svd, hosvd, lstsq, index build"),
            ("hosvd bad-tensor.npy --ranks 2,3,2 -o got.npz", 3, "NaN or infinity in element (3, 1, 5)"),
            ("hosvd one-slice.npy --ranks 1,2,2 -o got.npz", 2, "one-slice.npy has one"),
            ("hosvd tensor.npy --ranks 2,3,2 -o nowhere/got.npz", 4, "can't open the folder"),
            ("hosvd tensor.npy --ranks 5,3,2 -o got.npz", 2, "the rank of mode 0 is 5"),
            ("index build bad.npy --tables 3 --functions 4 --width 2 -o got.index", 3,
             f"NaN or infinity in row {n - 1}, column 3"),
            ("index build huge.npy --tables 3 --functions 4 --width 2 -o got.index", 3,
             f"magnitude above 2^500 in row {n - 1}, column 3"),
            ("index build points.npy --tables 3 --functions 4 --width 2 -o nowhere/got.index", 4, "can't open the folder"),
            ("index build points.npy --recall 0.9 -k 3 -o got.index", 2, "with given --tables and --functions"),
            ("index build text.csv --tables 3 --functions 4 --width 2 -o got.index", 2,
             "text.csv can be read from the beginning alone"),
            ("join bad.npy --threshold 1 -o got.csv", 3, f"NaN or infinity in row {n - 1}, column 3"),
            ("join bad.fvecs queries.npy --threshold 1 -o got.csv --memory 66M", 3,
             "gnomon join: bad.fvecs: the point of row 29998 "),
            ("join points.npy missing.npy --threshold 1 -o got.csv", 4, "missing.npy"),
            ("join points.npy --threshold 4 -o nowhere/got.csv", 4, "can't open the folder"),
            ("dedup bad.jsonl -o got.jsonl", 3, "bad.jsonl"),
            ("dedup - -o got.jsonl", 2, "standard input can't be read by all"),
            ("dedup old.signed --merge --ids got.csv", 2, "merging signature files runs in one process"),
            ("dedup texts.jsonl -o nowhere/got.jsonl", 4, "can't open the folder"),
            ("dedup texts.jsonl missing.jsonl --ids got.csv", 4, "missing.jsonl"),
            ("dedup texts.jsonl --sign nowhere/got.signed", 4, "can't open the folder"),
            ("dedup texts.jsonl --against missing.signed --ids got.csv", 4, "missing.signed"),
            ("dedup texts.jsonl --against bad.jsonl -o got.jsonl", 3, "bad.jsonl"),
            ("join - --threshold 4 -o got.csv", 2, "standard input can't be read by all"),
            ("join points.npy --threshold 1e9 -o /dev/full", 4, "/dev/full"),
            ("svd bad-many.npy -k 2 -o got.npz", 3, "NaN or infinity in row 160000, column 1"),
            ("svd many.npy -k 2 -o nowhere/got.npz", 4, "can't open the folder"),
            ("svd missing.npy -k 2 -o got.npz", 4, "missing.npy"),
            ("svd many.npy -k 7 -o got.npz", 2, "it must be at most 6"),
            ("svd text.csv -k 2 -o got.npz", 2, "text.csv can be read from the beginning alone"),
            ("svd points.npy -k 2 --single-pass -o got.npz", 2, "leave out --single-pass"),
            ("svd many.npy --tolerance 1e-9 -k 2", 1, "was not reached"),
            ("lstsq bad-many.npy targets.npy -o got.npy", 3, "NaN or infinity in row 160000, column 1"),
            ("lstsq many.npy bad-many.npy -o got.npy", 3, "bad-many.npy"),
            ("lstsq many.npy one.npy -o got.npy", 3, "they must be the same"),
            ("lstsq few.npy few.npy -o got.npy", 3, "at least as many as columns"),
            ("neighbors points.npy queries.npy -k 4 --recall 0.9 -o got.npy", 2, "leave out --recall")]):
        if engine == "openmpi" and (number + seed) % 3 > 0:
            continue
        got = run(launch(3, words.split()))
        assert got.returncode == code and said in got.stderr, (words, got.returncode, got.stderr)
        once = code != 2 or "few" in words or "text" in words or "-k 7" in words
        assert not once or got.stderr.count(said) == 1 or words.startswith("neighbors points.npy bad"), got.stderr
        assert left_over() == [], (words, left_over())
    print("failures: one exit code, no output")


def refusals():
    """One of three ranks refuses its job before it has met the others, which must not wait for it."""
    join = "join points.npy --threshold 4 -o got.npy"
    svd = "svd {} -k 2 -o got.npz"
    sparse, dense = svd.format("sparse.npz"), svd.format("points.npy")
    for good, bad, plugin_folder, code, said in [
            (join, f"{join} --nonsense", plugins, 2, "rank 1 of 3 ends before it has met the others"),
            (join, join, "/nowhere", 6, "rank 1 of 3 ends before it has met the others"),
            (join, "info points.npy", plugins, 2, "rank 1 of 3 ends before it has met the others"),
            (join, "project points.npy -k 3 -o got.npy", plugins, 2, "rank 1 runs this verb and rank 0 runs join"),
            (sparse, dense, plugins, 3, "points.npy: has dense rows, unlike the file of rank 0"),
            (dense, sparse, plugins, 3, "sparse.npz: has sparse rows, unlike the file of rank 0")]:
        words = launch(1, good.split()) + [":", "-n", "1", "env", f"GNOMON_PLUGIN_DIR={plugin_folder}", gnomon,
                                           *bad.split(), "--comm", engine, ":", "-n", "1", gnomon, *good.split(),
                                           "--comm", engine]
        begin = time.monotonic()
        got = run(words)
        assert got.returncode == code and said in got.stderr, (bad, got.returncode, got.stderr)
        assert time.monotonic() - begin < 30, bad
        assert left_over() == [], (bad, left_over())
    print("a rank that refuses ends all")


# what sends messages of every kind
DAMAGED = ["project points.npy -k 9 -o got.npy",
           "neighbors points.npy queries.npy -k 6 -o got.npy",
           "join points.npy --threshold 9 -o got.csv",
           "dedup texts.jsonl -o got.jsonl",
           "svd many.npy -k 3 -o got.npz --measure",
           "svd sparse.npz -k 4 --standardize -o got.npz",
           "lstsq many.npy targets.npy -o got.npy",
           "lstsq sparse.npz one.npy -o got.npy --damp 1",
           "hosvd tensor.npy --ranks 2,3,2 --measure -o got.npz",
           "index build points.npy --tables 5 --functions 4 --width 6 -o got.npy"]


def damaged_messages():
    """A message that is damaged on its way ends all ranks."""
    tried = 0
    for job in DAMAGED * int(os.environ.get("GNOMON_TEST_ROUNDS", 1)):
        # the first messages are those before the job; some numbers are beyond the last
        rank, number, way = int(rng.integers(0, 3)), int(150 ** rng.random()) - 1, int(rng.integers(0, 2))
        settings = (("LD_PRELOAD", damage), ("GNOMON_TEST_DAMAGE", f"{rank} {number} {way}"))
        words = [x for name, value in settings
                 for x in (["-genv", name, value] if engine == "mpich" else ["-x", f"{name}={value}"])]
        begin = time.monotonic()
        got = run([*LAUNCH, *words, *launch(3, job.split())[len(LAUNCH):]])
        if "is damaged on its way" not in got.stderr:
            assert got.returncode == 0, (job, rank, number, way, got.stderr)
            clear()
            continue
        tried += 1
        assert got.returncode != 0 and time.monotonic() - begin < 30, (job, rank, number, way, got.stderr)
        said = [line for line in got.stderr.splitlines() if "on its way" not in line and f"rank {rank}" in line]
        assert any("gnomon" in line for line in said), (job, rank, number, way, got.stderr)
        # Killed as it writes, rank 0 leaves what it was writing to, which the next run removes; the last messages
        # come when the output is there, as a whole.
        left = left_over()
        assert not left or run([gnomon, *job.replace("got", "plain").split()]).returncode == 0, job
        for name in left:
            assert name.startswith(".") or read(name) == read(name.replace("got", "plain")), (job, rank, number, way)
        clear()
    assert tried > 0
    print(f"{tried} damaged messages: all ranks ended, without an output that lacks anything")


def ranks_of(launcher):
    """{rank: process} of the ranks that a launcher started."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/exe") != os.path.realpath(gnomon):
                continue
            around = dict(x.split(b"=", 1) for x in read(f"/proc/{name}/environ").split(b"\0") if b"=" in x)
        except OSError:
            continue
        if around.get(b"GNOMON_TEST_RUN") == str(launcher).encode():
            found[int(around.get(b"PMI_RANK", around.get(b"OMPI_COMM_WORLD_RANK", b"-1")))] = int(name)
    return found


# jobs that take minutes
LONG = {
    "neighbors": "neighbors large.npy large-queries.npy -k 20 -o got.npy --threads 1",
    "dedup": "dedup large.jsonl --recall 1 --similarity 0.3 -o got.jsonl --threads 1",
    "join": "join large.npy --threshold 9 -o got.npy --threads 1",
    "index": "index build large.npy --tables 2000 --functions 60 --width 4 -o got.npy --threads 1",
    "svd": "svd large.npy -k 40 --power 100 --test-power 100 -o got.npz --threads 1",
    "hosvd": "hosvd large.npy --ranks 40,40 --power 100 -o got.npz --threads 1",
}


def killed(job, victim, names_rank):
    number = random.randrange(1 << 30)
    words = launch(3, LONG[job].split())
    run_of = subprocess.Popen(words, env={**ENVIRONMENT, "GNOMON_TEST_RUN": str(number)}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while len(ranks := ranks_of(number)) < 3:
        assert time.monotonic() < deadline and run_of.poll() is None
        time.sleep(0.01)
    time.sleep(1)  # MPI is up, the search is on
    os.kill(ranks[victim], signal.SIGKILL)
    begin = time.monotonic()
    said, _ = run_of.communicate(timeout=30)
    while ranks_of(number):  # a launcher may leave before its ranks
        assert time.monotonic() - begin < 30, "ranks go on"
        time.sleep(0.05)
    assert run_of.returncode != 0, said
    who = [f"rank {victim}, process {ranks[victim]} on host", f"process rank {victim} with PID"]
    who += [] if names_rank else ["BAD TERMINATION"]  # by the number of a process, not always the first that ended
    assert any(x in said for x in who), said
    assert not os.path.exists("got.npy") and not os.path.exists("got.npz")
    clear()
    print(f"{job}, rank {victim} killed: all ended after {time.monotonic() - begin:.1f} s")


def unequal_ranks():
    """Each has threads and memory of its own."""
    job = "project large.npy -k 9 -o {}.npy"
    assert run([gnomon, *job.format("plain").split()]).returncode == 0
    for words in (["--threads", "16"], ["--memory", "70M"]):
        one = [gnomon, *job.format("got").split(), "--comm", engine]
        got = run([*LAUNCH, "-n", "1", *one, *words, ":", "-n", "1", *one, "--threads", "1"])
        assert got.returncode == 0, (words, got.stderr)
        assert read("got.npy") == read("plain.npy"), words
        clear()
    print("ranks of other threads and memory: the bytes of the plain command")


points = make_files()
clear()
same_bytes()
one_operator()
failures(points)
refusals()
damaged_messages()
large = np.random.default_rng(1).standard_normal((200000, 96)).astype("f4")
np.save("large.npy", large)
np.save("large-queries.npy", large[:20000])
with open("large.jsonl", "w", encoding="utf-8") as large_texts:
    for number in range(40000):
        text = " ".join(map(str, large[number, :60].astype("i4")))
        large_texts.write(json.dumps({"text": text}) + "\n")
unequal_ranks()
for place, name in enumerate(LONG):
    for victim in (0, 2) if engine == "mpich" else ((0, 2)[(place + seed) % 2],):
        killed(name, victim, engine == "openmpi")
