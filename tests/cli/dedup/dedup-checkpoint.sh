# A full disk, then the same command again, and what is not the same command; kill -9 at random moments.
. "$TESTS/lib.sh"
"$PYTHON" - > lines.txt <<'END'
import random
random.seed(10)
lines = []
for n in range(20000):
    words = [f"w{random.randrange(20000)}" for _ in range(50)]
    if n % 5 == 4:
        words = list(random.choice(lines))
        words[random.randrange(50)] = "other"
    lines.append(words)
print("\n".join(" ".join(words) for words in lines))
END
outputs="-o kept.txt --pairs pairs.tsv --clusters clusters.tsv --ids ids.tsv"
dedup="gnomon dedup lines.txt --memory 64M --bands 30 --rows 4 --similarity 0.7"
sums() { cat kept.txt pairs.tsv clusters.tsv ids.tsv | cksum; }
$dedup $outputs --quiet && want=$(sums)
rm kept.txt pairs.tsv clusters.tsv ids.tsv
# a limit on the size of files stands for a full disk
for kib in 1 1000 5000; do
    (ulimit -f $kib; trap '' XFSZ; $dedup $outputs --checkpoint state 2>&1; echo "exit $?") | sed 's/[0-9]* bytes/N bytes/; s/with [0-9]* doc/with N doc/'
    [ ! -e kept.txt ] || echo "an output is there"
done
try $dedup $outputs --checkpoint state --seed 4
try gnomon dedup LICENSE --bands 30 --rows 4 --similarity 0.7 $outputs --checkpoint state | sed 's/is "{.*/is .../'
# while another has it
(flock 9; try $dedup $outputs --checkpoint state) 9< state.documents
$dedup $outputs --checkpoint state --quiet
[ "$(sums)" = "$want" ] || echo "after a full disk: differs"
ls state* 2> /dev/null || echo "no checkpoint left"

cat > kill.py <<'END'
import os, random, signal, subprocess, sys, time
random.seed(11)
command, kills, on = sys.argv[1:], 0, 0
while kills < 4 or on < 2:
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(random.random() / 4)
    # after two seconds that it stands it keeps what it has at the next chance
    run.send_signal(signal.SIGSTOP)
    time.sleep(2.1)
    run.send_signal(signal.SIGCONT)
    time.sleep(random.random() / 4)
    run.kill()
    text = run.stderr.read()
    kills += run.wait() == -signal.SIGKILL
    on += "goes on with" in text
    assert run.returncode in (0, -signal.SIGKILL), text
    assert kills < 30
END
"$PYTHON" kill.py $dedup $outputs --checkpoint state
$dedup $outputs --checkpoint state --quiet
[ "$(sums)" = "$want" ] || echo "after kills: differs"
rm kept.txt pairs.tsv clusters.tsv ids.tsv

# damaged in any byte or length
cat > interrupt.py <<'END'
import json, os, random, signal, subprocess, time
random.seed(13)
documents = 0
while not documents:
    run = subprocess.Popen(["gnomon", "dedup", "lines.txt", "--ids", "ids.tsv", "--checkpoint", "state", "--threads", "1"], stderr=subprocess.DEVNULL)
    time.sleep(random.random() / 10)
    run.send_signal(signal.SIGINT)
    if run.wait() == 0:
        os.remove("ids.tsv")
    elif os.path.exists("state"):
        documents = json.load(open("state"))["documents"]
END
"$PYTHON" interrupt.py
"$PYTHON" - <<'END'
import os, random, shutil, subprocess
random.seed(12)
names = ["state" + ending for ending in ("", ".documents", ".sets", ".texts", ".names", ".pairs")]
good = {name: open(name, "rb").read() for name in names}
tried = 0
for name in names:
    for at in [0, len(good[name]) - 1] + random.sample(range(max(1, len(good[name]))), min(12, max(1, len(good[name])))):
        for cut in False, True:
            if not good[name]:
                continue
            for other, data in good.items():
                open(other, "wb").write(data)
            bad = good[name][:at] if cut else good[name][:at] + bytes([good[name][at] ^ 1 << random.randrange(8)]) + good[name][at + 1:]
            open(name, "wb").write(bad)
            done = subprocess.run(["gnomon", "dedup", "lines.txt", "--ids", "ids.tsv", "--checkpoint", "state"], capture_output=True, text=True)
            # of FILE itself some bytes are white space or of a count that a checksum does not cover
            assert done.returncode == 3 or (name == "state" and done.returncode == 0), (name, at, cut, done)
            assert done.returncode == 0 or not os.path.exists("ids.tsv")
            assert not done.returncode or not good["state.sets"] or "state" in done.stderr
            if os.path.exists("ids.tsv"):
                os.remove("ids.tsv")
            tried += 1
for name, data in good.items():
    open(name, "wb").write(data)
END
gnomon dedup lines.txt --ids ids.tsv --checkpoint state --quiet && wc -l < ids.tsv
# nothing is written over, and links are not followed
echo mine > other.sets
try gnomon dedup lines.txt --ids ids.tsv --checkpoint other
cat other.sets
ln -s lines.txt link
try gnomon dedup lines.txt --ids ids.tsv --checkpoint link
try gnomon dedup - --ids ids.tsv --checkpoint state < lines.txt
try gnomon dedup lines.txt -o state.texts --checkpoint state
try gnomon dedup lines.txt -o kept.txt --checkpoint none/state
try gnomon dedup lines.txt -o kept.txt --checkpoint .
