# A corpus that the memory does not hold: the outputs are those of one that it does, within the limit; what does not fit
# on the disk either ends the run, and names the folder.
. "$TESTS/lib.sh"
cat > run.py <<'END'
import os, subprocess, sys
command = ["gnomon", "dedup", "lines.txt", "--quiet", "-o", "kept.txt", "--ids", "ids.tsv", "--pairs", "pairs.tsv",
           "--clusters", "clusters.tsv", "--work", "."]
outputs = ("kept.txt", "ids.tsv", "pairs.tsv", "clusters.tsv")

def run(*options):
    process = subprocess.Popen(command + list(options))
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, (options, status)
    return [open(name, "rb").read() for name in outputs], used.ru_maxrss >> 10

want, _ = run("--memory", "8G", *sys.argv[1:])
assert want[2].count(b"\n") > 4000
for memory in 64, 96:
    for threads in "1", "2", "5":
        got, most = run("--memory", f"{memory}M", "--threads", threads, *sys.argv[1:])
        assert got == want, (memory, threads)
        assert most <= memory or os.environ["SANITIZED"], (memory, threads, most)
for name in outputs:
    os.remove(name)
END
"$PYTHON" - > lines.txt <<'END'
import random
random.seed(8)
lines = []
for n in range(40000):
    words = [f"w{random.randrange(20000)}" for _ in range(60)]
    if n % 10 == 9:
        words = list(random.choice(lines))
        words[random.randrange(60)] = "other"
    if n % 100 == 8 and n > 8:
        words = lines[7][:-6] + words[:6]
    if n % 50 == 5:
        words = list(random.choice(lines))
    lines.append(words)
print("\n".join(" ".join(words) for words in lines))
END
"$PYTHON" run.py || exit
"$PYTHON" run.py --bands 40 --rows 6 --bucket 16 --similarity 0.6 --keep longest || exit
# lines of one letter take more memory as documents than as text
"$PYTHON" -c 'print("a\n" * 1500000, end="")' > letters.txt
"$PYTHON" - <<'END' || exit
import os, subprocess
for options in (["-o", "kept.txt"], ["--ids", "ids.tsv"], ["--exact", "-o", "kept.txt"]):
    process = subprocess.Popen(["gnomon", "dedup", "letters.txt", "--quiet", "--memory", "64M", "--threads", "2", *options])
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0 and (used.ru_maxrss >> 10 <= 64 or os.environ["SANITIZED"]), used
    if "-o" in options:
        assert open("kept.txt").read() == "a\n"
os.remove("kept.txt")
os.remove("ids.tsv")
END
# standard input is not read again, whatever file has the name "-"
cp lines.txt ./-
gnomon dedup - --memory 64M --quiet -o kept.txt < lines.txt || exit
gnomon dedup lines.txt --memory 64M --quiet -o again.txt || exit
cmp kept.txt again.txt || exit
rm ./- kept.txt again.txt
# a limit on the size of files stands for a full disk
mkdir work
for kib in 100 5000 15000; do
    (ulimit -f $kib; trap '' XFSZ; gnomon dedup lines.txt --memory 64M --work work --ids ids.tsv --quiet 2>&1; echo "exit $?") |
        sed 's/beyond [0-9]* bytes/beyond N bytes/'
done
ls work
[ ! -e ids.tsv ] || echo "ids.tsv is there"
