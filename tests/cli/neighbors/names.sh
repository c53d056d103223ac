. "$TESTS/lib.sh"
# csv and tsv of pairs, neighbours, counts and clusters: ids from 0, a line of names, names of points
printf '0,0\n3,4\n0,1\n3,5\n9,9\n' > five.csv
printf '0,0.5\n3,4.5\n' > asked.csv
printf 'zero\nthree, "four"\none\ttab\n\nlast\r\n' > names.txt
printf 'first\n\033[31msecond\n' > asked.txt
try gnomon join five.csv --threshold 1 --names names.txt -o - --output-format csv --counts counts.csv --clusters clusters.tsv
cat counts.csv clusters.tsv
try gnomon join asked.csv five.csv --threshold 1 --names asked.txt --q-names names.txt -o - --output-format tsv
try gnomon join asked.csv five.csv --threshold 1 --q-names names.txt -o pairs.csv
cat pairs.csv
try gnomon neighbors five.csv asked.csv -k 2 --names names.txt --query-names asked.txt --output-format tsv
gnomon index build five.csv --metric l2 --functions 2 --tables 4 --width 8 -o points.lsh --quiet
printf '4\n' > gone.csv
gnomon index remove points.lsh gone.csv --quiet
try gnomon index query points.lsh asked.csv -k 2 --names names.txt
"$PYTHON" -c '
import csv
print(*list(csv.reader(open("counts.csv", newline=""))), sep="\n")'
# lines of text have the numbers of their lines from 0, and themselves for names where they are wanted
printf 'one two three\nother words\nOne, two: three!\n' > lines.txt
try gnomon join lines.txt --text lines --threshold 0.1
try gnomon join lines.txt --text lines --threshold 0.1 --names lines.txt -o - --output-format csv
# similarities: a pair of equal points is no zero
try gnomon join lines.txt --text lines --threshold 0.1 --values similarity -o near.mtx
tail -n 2 near.mtx
try gnomon join five.csv --metric cosine --threshold 0.02 --values similarity -o - --output-format csv | cut -c1-14
try gnomon join five.csv --threshold 1 --values similarity -o - --output-format csv
# names that don't fit
head -n 3 names.txt > few.txt
try gnomon join five.csv --threshold 1 --names few.txt -o a.csv
{ cat names.txt; echo more; } > many.txt
try gnomon neighbors five.csv asked.csv -k 1 --names many.txt
try gnomon neighbors five.csv asked.csv -k 1 --query-names names.txt -o b.tsv
printf 'a\0b\n2\n' > nul.txt
try gnomon neighbors five.csv asked.csv -k 1 --query-names nul.txt
try gnomon neighbors five.csv asked.csv -k 1 --names none.txt
try gnomon neighbors five.csv asked.csv -k 1 --names names.txt -o a.npy
try gnomon join five.csv --threshold 1 --names names.txt -o a.npy
try gnomon join five.csv --threshold 1 --names names.txt -o names.txt --output-format csv
try gnomon join five.csv --threshold 1 --q-names names.txt -o a.csv
for name in a.csv b.tsv; do [ -e "$name" ] || echo "no $name"; done
# a checkpoint keeps pairs: names and values are those of the command that ends it
gnomon join five.csv --threshold 1 --names names.txt --values distance --checkpoint kept -o kept.csv --quiet
cat kept.csv
