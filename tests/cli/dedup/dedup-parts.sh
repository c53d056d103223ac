# Signature files of 1 to 64 parts of a corpus: however it is divided and whatever the order, threads and memory, merging
# them gives the bytes of one run on the documents sorted by name. Files that are damaged are refused.
. "$TESTS/lib.sh"
"$PYTHON" - "$TESTS"/../../LICENSE "$TESTS"/../../docs/reference/*.md <<'END'
import json, random, sys
random.seed(6)
texts = [line.split() for name in sys.argv[1:] for line in open(name, encoding="utf-8")]
texts = [words for words in texts if len(words) >= 10][:300]
out = []
for words in texts:
    changed = list(words)
    changed[random.randrange(len(words))] = "other"
    out += [words, changed] + [words] * (random.random() < 0.1)
out = [json.dumps({"id": f"{random.randrange(10**6)}-{n}", "text": " ".join(words)}) for n, words in enumerate(out)]
random.shuffle(out)
for count in (1, 2, 8, 64):
    for part in range(count):
        open(f"part-{count}-{part}.jsonl", "w").writelines(line + "\n" for line in out[part::count])
out.sort(key=lambda line: json.loads(line)["id"].encode())
open("sorted.jsonl", "w").writelines(line + "\n" for line in out)
END
tables="--pairs pairs.tsv --clusters clusters.tsv --ids ids.tsv --quiet --similarity 0.6"
sums() { cat pairs.tsv clusters.tsv ids.tsv | cksum; }
gnomon dedup sorted.jsonl --id id $tables --keep longest --lower && longest=$(sums)
gnomon dedup sorted.jsonl --id id $tables && one=$(sums)
[ "$(wc -l < pairs.tsv)" -gt 200 ] || echo "few pairs"
for count in 1 2 8 64; do
    for part in $(seq 0 $((count - 1))); do
        gnomon dedup part-$count-$part.jsonl --id id --sign $count-$part.sig --quiet || echo "sign fails"
    done
    for way in "--threads 1 --memory 64M" "--threads 3 --memory 8G"; do
        mapfile -t files < <(printf '%s\n' $count-*.sig | shuf --random-source=sorted.jsonl)
        gnomon dedup "${files[@]}" --merge $tables $way && [ "$(sums)" = "$one" ] ||
            echo "$count parts, $way: differs"
    done
done
# merged files are a file, of the same bytes as that of the whole
gnomon dedup 8-[4-7].sig --merge --sign upper.sig --quiet
gnomon dedup upper.sig 8-[0-3].sig --merge --sign all.sig $tables && [ "$(sums)" = "$one" ] || echo "a merged file differs"
cmp all.sig 1-0.sig
for part in 0 1; do gnomon dedup part-2-$part.jsonl --id id --lower --sign lower-$part.sig --quiet; done
gnomon dedup lower-1.sig lower-0.sig --merge $tables --keep longest && [ "$(sums)" = "$longest" ] || echo "the longest differ"
rm pairs.tsv clusters.tsv ids.tsv

# any byte that is another, and any that is missing
"$PYTHON" - <<'END'
import random, subprocess
random.seed(7)
good = open("8-0.sig", "rb").read()
for at in [*range(0, 80, 3), *random.sample(range(80, len(good)), 25), len(good) - 1]:
    open("bad.sig", "wb").write(good[:at] + bytes([good[at] ^ 1 << random.randrange(8)]) + good[at + 1:])
    done = subprocess.run(["gnomon", "dedup", "8-1.sig", "bad.sig", "--merge", "--ids", "bad.tsv"], capture_output=True, text=True)
    assert done.returncode == (2 if at < 12 else 3) and done.stderr.startswith("gnomon dedup: bad.sig: "), (at, done)
for size in [0, 7, 31, 32, 40, *random.sample(range(len(good)), 15), len(good) - 1]:
    open("bad.sig", "wb").write(good[:size])
    done = subprocess.run(["gnomon", "dedup", "bad.sig", "--merge", "--ids", "bad.tsv"], capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.startswith("gnomon dedup: bad.sig: "), (size, done)
END
printf x | cat 8-0.sig - > longer.sig
try gnomon dedup longer.sig --merge --ids ids.tsv
try gnomon dedup lower-0.sig 8-0.sig --merge --ids ids.tsv
try gnomon dedup sorted.jsonl --merge --ids ids.tsv
try gnomon dedup . --merge --ids ids.tsv
try gnomon dedup none.sig --merge --ids ids.tsv
try gnomon dedup 8-0.sig --merge -o kept
try gnomon dedup 8-0.sig --merge --lower --ids ids.tsv
try gnomon dedup 8-0.sig --merge --sign 8-0.sig
try gnomon dedup sorted.jsonl --exact --sign exact.sig
try gnomon dedup sorted.jsonl --id id --sign none/one.sig
printf 'a line\n\n' > lines.txt
try gnomon dedup lines.txt --skip-bad --sign lines.sig
try gnomon dedup lines.sig --merge --ids -
for none in ids.tsv bad.tsv exact.sig kept; do [ ! -e $none ] || echo "$none is there"; done
