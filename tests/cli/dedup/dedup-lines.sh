# Repeated lines and paragraphs within the texts of JSON lines, against Python: members beside the text stay as they
# were, whatever JSON they are; the same bytes for any threads, memory and division.
. "$TESTS/lib.sh"
"$PYTHON" - "$TESTS"/../../LICENSE "$TESTS"/../../docs/reference/*.md > texts.jsonl <<'END'
import json, random, sys
random.seed(9)
blocks = [b for name in sys.argv[1:] for b in open(name, encoding="utf-8").read().split("\n\n")][:600]
common = ["Home | About", "All rights reserved.", "© nobody\nat all", "x"]
for n in range(500):
    parts = []
    for _ in range(random.randrange(1, 9)):
        parts.append(random.choice(common) if random.random() < 0.4 else random.choice(blocks))
        parts.append(random.choice(["\n", "\n\n", "\r\n \r\n", "\n\n\n"]))
    text = random.choice(["", "\n", "  \n"]) + "".join(parts[:-1] if n % 2 else parts)
    rest = random.choice(['"of": 1e-7', '"t": {"text": "Home | About", "a": [1.50, "}"]}', '"\\u0074": "\\/"', '"big": 123456789012345678901234567890.0'])
    print("{" + rest + ', "id": %d, "text": ' % n + json.dumps(text, ensure_ascii=n % 3 == 0) + (' , "z" :null}' if n % 5 else "}"))
END
cat > check.py <<'END'
import json, re, sys
part, least = sys.argv[1], int(sys.argv[2])
seen, wanted, removed = set(), [], 0
for line in open("texts.jsonl", encoding="utf-8", newline="\n"):
    text = json.loads(line)["text"]
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if part == "paragraphs":
        pieces, blank = [], True
        for one in lines:
            now = not one.strip(" \t\r\n\v\f")
            if not now and blank or not pieces:
                pieces.append("")
            pieces[-1] += one
            blank = now
    else:
        pieces = lines
    left, cut = "", 0
    for piece in pieces:
        key = piece
        if part == "paragraphs":  # without the blank lines behind it
            own = re.findall(r"[^\n]*\n|[^\n]+", piece)
            while own and not own[-1].strip(" \t\r\n\v\f"):
                own.pop()
            key = "".join(own)
        key = re.sub(r"\r?\n$", "", key)
        if key.strip(" \t\r\n\v\f") and len(key.encode()) >= least:
            if key in seen:
                cut += 1
                continue
            seen.add(key)
        left += piece
    removed += cut
    if cut and not left.strip(" \t\r\n\v\f"):
        continue
    wanted.append((left, None if cut else line, dict(json.loads(line), text=None)))
got = list(open("cut.jsonl", encoding="utf-8", newline="\n"))
assert len(got) == len(wanted) < 500 and removed > 100, (len(got), len(wanted), removed)
for line, (text, whole, rest) in zip(got, wanted):
    assert json.loads(line)["text"] == text, (line, text)
    assert whole is None or whole == line
    assert dict(json.loads(line), text=None) == rest
print(part, least, "holds")
END
for part in lines paragraphs; do
    for least in 1 12; do
        gnomon dedup texts.jsonl --exact --parts $part --min-part $least -o cut.jsonl --quiet && "$PYTHON" check.py $part $least || exit
        one=$(cksum < cut.jsonl)
        for way in "--threads 1" "--threads 3 --memory 64M" "--checkpoint kept"; do
            gnomon dedup texts.jsonl --exact --parts $part --min-part $least -o again.jsonl --quiet $way || exit
            [ "$(cksum < again.jsonl)" = "$one" ] || echo "$part $way differs"
        done
        split -l 120 texts.jsonl piece-
        gnomon dedup piece-* --text json --exact --parts $part --min-part $least -o again.jsonl --quiet || exit
        [ "$(cksum < again.jsonl)" = "$one" ] || echo "$part of several files differs"
    done
done
ls kept* 2> /dev/null

printf '%s\n' '{"text": "Home\nabout cats\n"}' '{"n": 1e-3, "text": "Home\nabout d\u006fgs"}' '{"text": "Home"}' > few.jsonl
try gnomon dedup few.jsonl --exact --parts lines -o -
gnomon dedup few.jsonl --exact --parts paragraphs --min-part 3 --json | grep -E '"(parts|parts_are|min_part|distinct|removed|removed_bytes|kept|changed)"'
try gnomon dedup few.jsonl --parts lines -o cut.jsonl
try gnomon dedup few.jsonl --exact --min-part 5 -o cut.jsonl
try gnomon dedup few.jsonl --exact --parts lines --min-part 0 -o cut.jsonl
try gnomon dedup few.jsonl --exact --parts lines --ids ids.tsv -o cut.jsonl
try gnomon dedup few.jsonl --exact --parts lines --text lines -o cut.jsonl
try gnomon dedup check.py --exact --parts lines -o cut.jsonl
