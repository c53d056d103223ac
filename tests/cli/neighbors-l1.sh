. "$TESTS/lib.sh"
# sums of differences, by hand
printf '0,0\n1,1\n3,0\n-2,2\n' > four.csv
printf '1,0\n' > one.csv
try gnomon neighbors four.csv one.csv -k 4 --metric l1 -o - --output-format csv
try gnomon neighbors four.csv one.csv --radius 2 --metric l1 -o - --output-format csv
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o a.csv --threads 1 --quiet > words
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o b.csv --memory 65M --quiet > words
cmp a.csv b.csv && echo same
# an index verifies by it
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o exact.npy --quiet > words
try gnomon index build base.npy --metric l1 --tables 8 --functions 3 --width 60 --probes 30 -o l1.lsh
try gnomon index query l1.lsh queries.npy -k 6 --ground-truth exact.npy
try gnomon index query l1.lsh queries.npy -k 6 --probes 9999 -o found.npy --ground-truth exact.npy
try gnomon index check l1.lsh
try gnomon index build base.npy --metric l1 --tables 8 --functions 3 -o none.lsh
try gnomon index build base.npy --metric l1 --recall 0.9 -k 3 -o none.lsh
try gnomon neighbors base.npy queries.npy -k 3 --metric l1 --recall 0.9
try gnomon join base.npy -t 3 --metric l1
try gnomon neighbors base-nan.npy queries.npy -k 3 --metric l1
