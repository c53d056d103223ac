gnomon project small.npy -k 3 --seed 5 -o y.npy --quiet
gnomon project - -k 3 --seed 5 --quiet < small.npy | cmp - y.npy && echo "in and out"
cat small.npy | gnomon project - -k 3 --seed 5 --quiet -o - | cmp - y.npy && echo "through pipes"
cat small.csv | gnomon project - -k 3 --seed 5 --quiet --output-format csv > y.csv
gnomon convert --quiet y.npy z.csv && cmp y.csv z.csv && echo "as text"
gnomon project small.npy -k 3 --output-format fvecs --quiet | gnomon convert - f.npy --format fvecs --quiet && gnomon info f.npy
gnomon operator -k 3 -D 5 --seed 5 --describe | gnomon project small.npy --load-operator - -o w.npy --quiet
cmp w.npy y.npy && echo "the operator from a pipe"
cat points.idx.gz | gnomon info -
