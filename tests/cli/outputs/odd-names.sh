# names with bytes that are no UTF-8, tabs, line ends, escapes: shown escaped, in JSON valid, never an
# error after the output was written
. "$TESTS/lib.sh"
bad=$'b\x01\xff\e[31m\tc\nd\\e.npy'
cp -L base.npy "$bad"
json() { # the JSON must be read, and its named values are shown
    gnomon "$@" --json --quiet > report || echo "exit $?"
    $PYTHON -c '
import json, sys
report = json.load(open("report", encoding="utf-8"))
print(*[ascii(report[k]) for k in ("input", "p", "base", "file", "original", "right", "index", "output") if k in report])'
}
json info "$bad"
json convert "$bad" "o$bad"
json project "$bad" -k 2 -o "o$bad"
json join "$bad" --threshold 3 -o "o$bad"
json neighbors "$bad" "$bad" -k 2 -o "o$bad"
json distortion "$bad" "$bad"
json index build "$bad" --tables 6 --functions 4 --width 25 -o "i$bad"
json index info "i$bad"
json index query "i$bad" "$bad" -k 2
json operator -k 2 -D 3 -o "o$bad"
if gnomon info --json | grep -q '"svd": true'; then
    json svd "$bad" -k 2
    json lstsq "$bad" "$bad"
    json hosvd "$bad" --ranks 2,2
fi > factors
grep -vF 'b\\x01\\xff\\x1b[31m\\tc\\nd\\\\e.npy' factors
# a name that is UTF-8 stands as it is
cp -L base.npy $'gr\u00fc\u00df\te.npy'
json convert $'gr\u00fc\u00df\te.npy' out.npy
# a checkpoint of such a file
gnomon join "$bad" --threshold 3 --checkpoint "c$bad" -o pairs.csv --quiet; echo "exit $?"
# words and errors
gnomon info "$bad" | head -1
try gnomon info "$bad.missing" 2>&1 | tail -2
gnomon convert "$bad" out.csv 2>&1
gnomon convert small.npy "o$bad" 2>&1
try gnomon join "$bad" --threshold 3 -o "$bad" | tail -3
# texts by name, in records: a line a pair
mkdir texts
printf 'one two three four' | tee texts/plain $'texts/a\tb' $'texts/c\nd' $'texts/e\x1bf' $'texts/g\xffh' > $'texts/i\\j'
gnomon join texts --text files --threshold 0.1 -o out.tsv --clusters clusters.tsv --quiet
cat -v out.tsv clusters.tsv | grep -v '^#'
gnomon join texts --text files --threshold 0.1 --quiet | sed 1d | wc -l
