. "$TESTS/lib.sh"
try gnomon operator -k 4 -D 5 --output-format csv
try gnomon operator -k 4 -D 5 --seed 1 --output-format csv --rows 1:3 --cols 2:
try gnomon operator --operator sjlt --nonzeros 1 -k 3 -D 6 --sparse
try gnomon operator --operator very-sparse --density 0.01 -k 8 -D 2000000000000 --cols 1000000000000:1000000000100 --sparse
try gnomon operator -k 6 -D 5 --output-format csv
try gnomon operator --operator block --blocks 7 -k 6 -D 50 --output-format csv
try gnomon operator --operator kronecker --inner srht -k 2 -D 4
try gnomon operator --density 0.5 -k 2 -D 4
try gnomon operator --load-operator descriptor.json --output-format csv
try gnomon operator --load-operator descriptor-future.json
try gnomon operator --load-operator descriptor-wrong.json
try gnomon operator --load-operator descriptor-cut.json
try gnomon operator --load-operator nothing.json
try gnomon operator --load-operator small.csv
# a block is a part of the whole
for kind in $kinds; do
    gnomon operator --operator $kind -k 12 -D 40 --output-format csv > whole.csv
    gnomon operator --operator $kind -k 12 -D 40 --rows 3:9 --cols 10:30 --output-format csv > block.csv
    sed -n 4,9p whole.csv | cut -d, -f11-30 | cmp - block.csv && echo "$kind: the block is in the whole"
    gnomon operator --operator $kind -k 12 -D 40 --sparse -o s.mtx && gnomon convert --quiet s.mtx d.npy --dense --output-dtype f4
    gnomon operator --operator $kind -k 12 -D 40 | cmp - d.npy && echo "$kind: sparse is dense"
done
