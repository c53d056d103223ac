. "$TESTS/lib.sh"
needs npz
# Sparse rows: the bytes of dense ones, whatever the threads, memory, format and order of columns
make_rows 400 11 > few.svm
gnomon convert few.svm few.npz --quiet && gnomon convert few.npz dense.npy --quiet
gnomon convert few.npz few.mtx --quiet
n() { gnomon neighbors "$@" --quiet --json | grep -E '"points_' | sed 's/^ *//'; }
for metric in l2 cosine ip l1; do
    n dense.npy dense.npy -k 6 --exclude-self --metric $metric -o dense.csv
    n few.npz few.npz -k 6 --exclude-self --metric $metric -o one.csv --threads 1
    n few.npz few.npz -k 6 --exclude-self --metric $metric -o two.csv --threads 2 --memory 65M
    n few.svm few.mtx -k 6 --exclude-self --metric $metric -o formats.csv
    n - few.npz -k 6 --exclude-self --metric $metric -o piped.csv < few.svm
    n few.npz dense.npy -k 6 --exclude-self --metric $metric -o mixed.csv
    GNOMON_ISA=portable n few.npz few.npz -k 6 --exclude-self --metric $metric -o portable.csv
    for other in one two formats piped mixed portable; do cmp dense.csv $other.csv; done
    echo "$metric: the same"
done
# rows that are nearly full are compared as dense ones
make_rows 50 1 > full.svm
gnomon convert full.svm full.npz --quiet
n full.npz full.npz -k 3 -o full.csv
# a filter, and a radius
printf '3\n5\n8\n200\n' > ids.csv
n few.npz few.npz -k 2 --metric cosine --filter ids.csv -o one.csv
n dense.npy dense.npy -k 2 --metric cosine --filter ids.csv -o two.csv
cmp one.csv two.csv && echo same
n few.npz few.npz --radius 0.6 --metric cosine -o one.csv
n dense.npy dense.npy --radius 0.6 --metric cosine -o two.csv
cmp one.csv two.csv && echo same
# what is refused names file and row
printf '1 1:2 4:3\n1 2:nan\n' > nan.svm
try gnomon neighbors nan.svm nan.svm -k 1 --metric cosine
printf '%%%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 5\n2 4 1\n' > beyond.mtx
try gnomon neighbors beyond.mtx beyond.mtx -k 1
printf '%%%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 5\n2 3 1\n' > three.mtx
try gnomon neighbors few.npz three.mtx -k 1
printf '1 1:2 4:3\n1 2:1e200\n' > far.svm
try gnomon neighbors far.svm far.svm -k 1
