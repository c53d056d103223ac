# Documents and options that are wrong: an error that names file and line, and no output.
. "$TESTS/lib.sh"
printf 'one two three\n\nfour five\n' > empty.txt
printf 'one two three\nf\xffur\n' > latin.txt
printf '{"text": "a b c"}\n{"text": "a b c"\n' > broken.jsonl
printf '{"text": "a b c", "id": 1}\n[1]\n{"body": 1}\n{"text": 5, "id": 1}\n{"text": "a b", "id": 1.5}\n\n{"text": " ", "id": 2}\n{"text": "\\ud800", "id": 2}\n{"text": "a\\u0000b", "id": 2}\n{"text": "last one", "id": "x"}' > bad.jsonl
head -c 3000 /dev/zero | tr '\0' x > long.txt
printf '\nshort one' >> long.txt
for file in empty.txt latin.txt broken.jsonl bad.jsonl none.txt; do
    try gnomon dedup $file -o kept
done
try gnomon dedup long.txt --max-document 1K -o kept
head -c 300000 /dev/zero | tr '\0' x > longer.txt
printf '\nshort one\n' >> longer.txt
try gnomon dedup longer.txt --max-document 100K --memory 65M --skip-bad -o kept
cat kept; rm kept
try gnomon dedup bad.jsonl --id id --skip-bad --ids - --quiet
gnomon dedup bad.jsonl --id id --skip-bad -o kept.jsonl --json | grep -A 30 skipped_documents
cat kept.jsonl
try gnomon dedup empty.txt latin.txt long.txt --skip-bad --max-document 1K -o kept.txt
cat kept.txt
mkdir folder && cp latin.txt folder
try gnomon dedup folder --ids ids.tsv
try gnomon dedup folder -o kept
try gnomon dedup empty.txt
try gnomon dedup empty.txt -o empty.txt
try gnomon dedup empty.txt -o out.txt --pairs out.txt
try gnomon dedup empty.txt --pairs pairs.npy
try gnomon dedup empty.txt --pairs - --json
try gnomon dedup - - -o kept
try gnomon dedup empty.txt -o kept --bands 3
try gnomon dedup empty.txt -o kept --bands 3 --rows 2 --recall 0.9
try gnomon dedup empty.txt -o kept --ngram 2 --char-ngram 3
try gnomon dedup empty.txt -o kept --exact --similarity 0.9
try gnomon dedup empty.txt -o kept --similarity 1.5
try gnomon dedup empty.txt -o kept --recall 2
try gnomon dedup empty.txt -o kept --recall 1 --unverified
try gnomon dedup bad.jsonl -o kept --id text
try gnomon dedup empty.txt --skip-bad -o kept --similarity 0.001
try gnomon dedup empty.txt --skip-bad --work /nowhere -o none/kept
: > nothing.txt
try gnomon dedup nothing.txt -o nothing.out
ls kept* nothing.out
