# columns that no memory has as dense rows: sparse rows are joined as they are; what needs dense
# copies (bits) is refused with the file's name, hashing by the number of columns
. "$TESTS/lib.sh"
printf '1 9223372036854775807:1\n' > h.svm
printf '1 1152921504606846976:1\n' > h60.svm
printf '1 9223372036854775807:1 7:1\n1 7:1 9223372036854775807:2\n' > two.svm
for file in h.svm h60.svm; do
    for metric in l2 cosine ip hamming; do
        gnomon join $file --threshold 1 --metric $metric > out 2>&1
        echo "$file $metric: exit $?, $(grep -c "$file" out) line names the file"
    done
done
gnomon join h.svm h60.svm --threshold 1 > out 2>&1; echo "exit $?"
gnomon join h.svm --threshold 1 --recall 0.9 > out 2>&1; echo "exit $?"
try gnomon join h.svm --threshold 1 --recall 0.9 --method lsh
gnomon join h.svm --top 3 > out 2>&1; echo "exit $?"
try gnomon join two.svm --metric jaccard --threshold 0.5 -o - --output-format csv
