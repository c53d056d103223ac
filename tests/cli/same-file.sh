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
cmp a.npy small.npy && cmp d.json descriptor.json && echo untouched
