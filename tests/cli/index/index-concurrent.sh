# Indexes that several processes change at once: every addition and removal is there, and nothing else.
. "$TESTS/lib.sh"
"$PYTHON" - <<'P'
import struct
for i in range(30):  # npy, by hand: 3 points of 4 coordinates that tell who wrote them
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
    header += b" " * ((-len(header) - 11) % 64) + b"\n"
    values = struct.pack("<12f", *([float(i + 1)] * 12))
    open(f"part{i}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)
P
gnomon index build part0.npy -o all.lsh --metric l2 --tables 2 --functions 3 --width 1 --quiet
pids=
for i in $(seq 1 29); do
    gnomon index add all.lsh "part$i.npy" --quiet &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || echo "exit code $?"; done
gnomon index info all.lsh | head -n 1
gnomon index check all.lsh --quiet
for i in $(seq 0 9); do
    echo "$i" >"ids$i.csv"
    gnomon index remove all.lsh "ids$i.csv" --quiet &
    [ "$i" = 5 ] && gnomon index compact all.lsh --quiet &
done
wait
gnomon index info all.lsh | head -n 1
gnomon index check all.lsh --quiet
# each addition's points are there: thrice the distance 0 from its own
for i in 4 17 29; do
    gnomon index query all.lsh "part$i.npy" -k 1 -o "near$i.csv" --quiet && sed 1d "near$i.csv" | wc -l
done
find . -name '.*.tmp' | wc -l
# an index that is built over one that another process has locked waits for it: nothing replaces the file before
"$PYTHON" - <<'P'
import fcntl, os, random, struct, subprocess, time
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (600, 8), }"
header += b" " * ((-len(header) - 11) % 64) + b"\n"
draw = random.Random(1)
values = struct.pack("<4800f", *[draw.gauss(0, 1) for _ in range(4800)])
open("many.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)
for how in (["--tables", "2", "--functions", "3", "--width", "1"], ["--recall", "0.5", "-k", "1", "--slower"]):
    with open("all.lsh", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        build = subprocess.Popen(["gnomon", "index", "build", "many.npy", "-o", "all.lsh", "--metric", "l2"] + how,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while build.poll() is None:
            line = build.stderr.readline()
            if "waiting for it" in line or not line:
                break
        time.sleep(0.2)
        same = os.fstat(held.fileno()).st_ino == os.stat("all.lsh").st_ino
        print("waits" if build.poll() is None and same else f"replaced a locked file, exit code {build.poll()}")
        fcntl.flock(held, fcntl.LOCK_UN)
        build.stderr.read()
        print("exit code", build.wait(), "replaced" if os.fstat(held.fileno()).st_ino != os.stat("all.lsh").st_ino else "the same file")
P
gnomon index check all.lsh --quiet
