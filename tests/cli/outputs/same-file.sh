. "$TESTS/lib.sh"
cp small.npy a.npy
ln -s a.npy link.npy
ln a.npy hard.npy
for out in a.npy ./a.npy link.npy hard.npy; do
    try gnomon project a.npy -k 2 -o $out
    try gnomon convert a.npy $out
done
cp descriptor.json d.json
try gnomon project small.npy --load-operator d.json -o d.json
try gnomon project a.npy -k 2 --save-operator a.npy -o y.npy
try gnomon project a.npy -k 2 --save-operator y.npy -o y.npy --quiet
try gnomon distortion a.npy a.npy --plot a.npy
# files that are not there yet, by two names
mkdir sub
ln -s y.npy to-nothing.npy
for other in ./y.npy sub/../y.npy ../same-file/y.npy to-nothing.npy; do
    try gnomon project a.npy -k 2 --save-operator $other -o y.npy
    try gnomon operator -k 2 -D 3 --save-operator $other -o y.npy
    try gnomon join a.npy --threshold 9 -o y.npy --counts $other
    try gnomon join a.npy --threshold 9 -o y.npy --distances $other
    try gnomon neighbors a.npy a.npy -k 2 -o y.npy --distances $other
done
try gnomon join a.npy --threshold 9 -o - --counts -
# all files of a folder are read
mkdir sub/deep
printf 'one two three four' | tee sub/a.txt sub/deep/b.tsv > sub/c
for out in "-o sub/a.txt --output-format tsv" "-o sub/deep/b.tsv" "-o ./sub/deep/../deep/b.tsv" "-o x.tsv --clusters sub/deep/b.tsv"; do
    try gnomon join sub --text files --threshold 0.5 $out
done
cat sub/a.txt sub/deep/b.tsv; echo
try gnomon join sub --text files --threshold 0.5 -o sub/new.tsv
ls y.npy x.tsv 2> /dev/null
cmp a.npy small.npy && cmp d.json descriptor.json && echo untouched
