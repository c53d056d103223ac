# a sketch is the product of the points and of the operator's entries, for every kind
. "$TESTS/lib.sh"
cat > product.py <<'END'
import math, sys
read = lambda name: [[float(v) for v in line.split(",")] for line in open(name)]
x, s, y = map(read, sys.argv[1:4])
worst = 0
for point, sketch in zip(x, y):
    for row, value in zip(s, sketch):
        size = math.sqrt(sum(a * a for a in point) * sum(b * b for b in row)) + 1e-30
        worst = max(worst, abs(math.fsum(a * b for a, b in zip(point, row)) - value) / size)
assert len(x) == len(y) and len(s) == len(y[0])
print("good" if worst < float(sys.argv[4]) else worst)
END
gnomon convert sparse.mtx x.csv --quiet
for kind in $kinds; do
    gnomon operator --operator $kind -k 6 -D 784 --seed 3 -o s.csv --output-dtype f8
    gnomon project more.csv -k 6 --operator $kind --seed 3 -o y.csv --quiet
    gnomon project more.csv -k 6 --operator $kind --seed 3 -o y8.csv --output-dtype f8 --quiet
    echo "$kind: $("$PYTHON" product.py more.csv s.csv y.csv 1e-6), $("$PYTHON" product.py more.csv s.csv y8.csv 1e-13)"
    gnomon operator --operator $kind -k 6 -D 300 --seed 3 -o s.csv --output-dtype f8
    gnomon project sparse.mtx -k 6 --operator $kind --seed 3 -o y.csv --quiet
    gnomon project sparse.mtx -k 6 --operator $kind --seed 3 -o y8.csv --output-dtype f8 --quiet
    echo "$kind, sparse points: $("$PYTHON" product.py x.csv s.csv y.csv 1e-6), $("$PYTHON" product.py x.csv s.csv y8.csv 1e-13)"
done
