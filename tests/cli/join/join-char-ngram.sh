# --char-ngram beside --ngram: against sets made by Python; bytes that are no UTF-8, texts of nothing
. "$TESTS/lib.sh"
"$PYTHON" - "$TESTS"/../../LICENSE <<'END'
import sys
lines = open(sys.argv[1], "rb").read().splitlines()[:60]
lines += ["Größe  des\tKörpers".encode(), "GRößE des Körpers ".encode(), b"\xff\xfe broken \xc3", b"\xff\xfe  BROKEN \xc3",
          "\U0001f600\U0001f601 ok".encode(), "\U0001f600\U0001f601  OK".encode(), b"", b"   ", b"ab", b"AB", b"a", b"\xe4\xb8"]
open("lines.txt", "wb").write(b"\n".join(lines) + b"\n")
END
cat > want.py <<'END'
import re, sys
n, s = int(sys.argv[1]), float(sys.argv[2])

def characters(line):
    line = re.sub(rb"[ \t-\r]+", b" ", line).strip(b" ")
    found = re.findall(rb"[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x00-\xff]", line, re.S)
    return [bytes(c + 32 if 65 <= c <= 90 else c for c in one) for one in found]

def grams(line):
    c = characters(line)
    return {tuple(c[i:i + n]) for i in range(len(c) - n + 1)} or ({tuple(c)} if c else set())

sets = [grams(line) for line in open("lines.txt", "rb").read().split(b"\n")[:-1]]
for i in range(len(sets)):
    for j in range(i + 1, len(sets)):
        both = len(sets[i] | sets[j])
        if (len(sets[i] & sets[j]) / both if both else 1) >= s:
            print(f"{i}\t{j}")
END
for n in 1 2 3 5; do
    for s in 0.3 0.5 1; do
        "$PYTHON" want.py $n $s > want.tsv
        gnomon join lines.txt --text lines --char-ngram $n --similarity $s --quiet | tail -n +2 | cut -f 1,2 > got.tsv
        cmp want.tsv got.tsv && echo "$n $s: $(($(wc -l < got.tsv) > 1))"
    done
done
try gnomon join lines.txt --text lines --char-ngram 3 --similarity 0.9 --count
try gnomon join lines.txt --text lines --char-ngram 3 --ngram 2 --similarity 0.5
try gnomon join points.npy --char-ngram 3 --threshold 1
try gnomon join lines.txt --text lines --char-ngram 65 --similarity 0.5
