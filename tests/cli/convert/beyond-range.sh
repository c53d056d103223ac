# finite numbers that the output's type would make infinite are refused with their place; infinity
# itself passes
. "$TESTS/lib.sh"
printf '1,2\n3,65519.9\n' > most.csv
printf '1,2\n3,4\n65520,5\n' > half.csv
printf '1,2\n3,-1e39\n' > single.csv
printf '1,inf\n3,4\n' > infinite.csv
printf '%%%%MatrixMarket matrix coordinate real general\n4 3 3\n1 1 1\n3 2 70000\n4 1 2\n' > large.mtx
try gnomon convert most.csv y.npy --output-dtype f2 --quiet
try gnomon convert half.csv x.npy --output-dtype f2 --quiet
try gnomon convert half.csv y.npy --output-dtype f4 --quiet
try gnomon convert y.npy x.npy --output-dtype f2 --quiet
try gnomon convert single.csv x.npy --output-dtype f4 --quiet
try gnomon convert infinite.csv y.npy --output-dtype f2 --quiet
try gnomon convert large.mtx x.npy --output-dtype f2 --quiet
ls x.npy 2> /dev/null || echo "nothing was written"
# the type that a format can't store is the output's
try gnomon convert points-u1.npy sparse-u1.mtx --sparse
