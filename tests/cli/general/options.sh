# how options are read
. "$TESTS/lib.sh"
try gnomon operator --operator=gaussian -k2 -D 3 --output-format=csv --cols :1
try gnomon operator --ops gaussian
try gnomon operator --oper gaussian
try gnomon operator --operator gausian -k 2 -D 3
try gnomon operator --operator
try gnomon operator --operator --seed 1
try gnomon operator -operator gaussian
try gnomon operator -x
try gnomon operator -k
try gnomon operator --json=1
try gnomon operator --zzzzzzzzzzzzzzzzzz
for k in 0 -1 1.5 3x '' ' 3' 0x3 4294967297 99999999999999999999; do try gnomon operator -k "$k" -D 5; done
for seed in -1 18446744073709551616 7.0 0x; do try gnomon operator --seed "$seed" -k 1 -D 1; done
try gnomon operator --seed 18446744073709551615 -k 1 -D 1 --describe
try gnomon operator --seed 0xFF -k 1 -D 1 --describe
for density in 0 -0.1 1.1 nan inf 0,5 1e-400; do try gnomon operator --density "$density" --operator very-sparse -k 1 -D 9; done
for eps in 0 1 -0.5 x; do try gnomon dim --points 10 --eps "$eps"; done
for memory in 1K 64M 70 5X 1.5.5G -1G 1e30G; do try gnomon convert small.npy y.npy --memory "$memory"; done
for memory in 65M 65MiB 70MB 0.25G 100000000 100000000B; do try gnomon convert --quiet small.npy y.npy --memory "$memory"; done
for rows in 3 2:1 :9 a:b 1:2:3 -1:2; do try gnomon operator -k 5 -D 5 --rows "$rows" --output-format csv; done
for shape in 5 0 1,0 1,2,3 -1,5 x,5; do try gnomon convert points.raw y.npy --shape "$shape" --dtype f4; done
try gnomon convert points.raw y.npy --shape 100,784 --dtype f3
try gnomon convert points.raw y.npy --delimiter ab
try gnomon convert points.raw y.npy --format xyz
try gnomon info --threads 5000
GNOMON_PLUGIN_DIR=/nonexistent try gnomon info --device gpu
try gnomon dim --points 1 --eps 0.1
# -- ends the options
cp small.npy ./-odd.npy
try gnomon convert --quiet -- -odd.npy out.npy
cmp small.npy out.npy
# the last of two wins
try gnomon operator -k 9 -k 1 -D 2 --output-format csv
for device in cuda: cuda:x cuda:-1 cuda:99999999999 cuda:0,1 cuda:all Cuda cpu:0; do try gnomon info --device "$device"; done
