# zstd: several frames, standard input, a folder, globs; cut and broken streams name their file.
. "$TESTS/lib.sh"
needs zstd
command -v zstd >/dev/null || { echo "no zstd"; exit 77; }
for i in 1 2 3 4 5 6 7 8; do echo "{\"text\": \"document number $i of several words\", \"id\": $((i % 4))}"; done > all.jsonl
head -n 3 all.jsonl | zstd -q -c > both.jsonl.zst
tail -n +4 all.jsonl | zstd -q -19 -c >> both.jsonl.zst
gnomon dedup all.jsonl -o kept.jsonl --similarity 0.4 --quiet
gnomon dedup both.jsonl.zst -o - --similarity 0.4 --quiet | cmp - kept.jsonl
gnomon dedup - --text json -o - --similarity 0.4 --quiet < both.jsonl.zst | cmp - kept.jsonl
zstd -q -c both.jsonl.zst > named-wrong.jsonl.gz
gnomon dedup all.jsonl --text lines --exact -o lines.txt --quiet
head -n 4 all.jsonl | zstd -q -c > part-1.txt.zst
tail -n +5 all.jsonl | gzip -c > part-2.txt.gz
gnomon dedup part-*.txt.* --text lines --exact -o - --quiet | cmp - lines.txt
mkdir folder
cp part-1.txt.zst part-2.txt.gz folder
try gnomon dedup folder --ids - --quiet
head -c 40 both.jsonl.zst > cut.jsonl.zst
try gnomon dedup all.jsonl cut.jsonl.zst -o none
{ head -c 60 both.jsonl.zst; printf 'xxxx'; tail -c +65 both.jsonl.zst; } > broken.jsonl.zst
gnomon dedup broken.jsonl.zst -o none 2>&1 | cut -d : -f 1-3
{ cat both.jsonl.zst; echo text; } > behind.jsonl.zst
try gnomon dedup behind.jsonl.zst -o none
ls none 2>/dev/null
true
