. "$TESTS/lib.sh"
try gnomon | sed -n 1p
try gnomon operatr
try gnomon --vrsion
try gnomon help sketch
try gnomon help dim more
try gnomon dim --points 10 --eps 0.5 extra
try gnomon project
try gnomon distortion small.npy
try gnomon project small.npy
try gnomon project small.npy -k 3 --eps 0.5
try gnomon project small.npy -k 3 --load-operator descriptor.json
try gnomon project small.npy --seed 3 --load-operator descriptor.json
try gnomon project small.npy -k 3 --delta 0.1
try gnomon project small.npy -k 3 --json
try gnomon project small.npy --eps 0.5 --beta 1 --delta 0.1 -o y.npy
try gnomon project - --load-operator - -o y.npy
try gnomon dim --points 10 --eps 0.5 --beta 1 --delta 0.1
try gnomon dim --points 10
try gnomon operator -k 3
try gnomon operator --load-operator descriptor.json -D 5
try gnomon operator --load-operator descriptor.json --describe --json
try gnomon distortion - -
try gnomon distortion small.npy small.npy --plot x.pdf
try gnomon convert small.npy y.npy --sparse --dense
try gnomon convert small.npy y.npy --dtype f4
try gnomon convert points.raw y.npy --shape 100,784
try gnomon convert points.raw y.npy --format raw
[ ! -e y.npy ] || echo 'y.npy is there'
