. "$TESTS/lib.sh"
needs npz
# Sparse rows: the bytes of dense ones, whatever the threads, memory, format and order of columns
make_rows 400 11 > few.svm
gnomon convert few.svm few.npz --quiet && gnomon convert few.npz dense.npy --quiet
gnomon convert few.npz few.mtx --quiet
# of the reason only which it is of: the model's figures are the machine's
n() {
    gnomon neighbors "$@" --quiet --json | grep '"why"' |
        sed 's/^ *//; s/"\(dense\|sparse\) rows.*: .*/"one form: a reason",/'
}
for metric in l2 cosine ip l1; do
    n dense.npy dense.npy -k 6 --exclude-self --metric $metric -o dense.csv
    n few.npz few.npz -k 6 --exclude-self --metric $metric -o one.csv --threads 1
    n few.npz few.npz -k 6 --exclude-self --metric $metric -o two.csv --threads 2 --memory 65M
    n few.svm few.mtx -k 6 --exclude-self --metric $metric -o formats.csv
    n - few.npz -k 6 --exclude-self --metric $metric -o piped.csv < few.svm
    n few.npz dense.npy -k 6 --exclude-self --metric $metric -o mixed.csv
    n dense.npy few.svm -k 6 --exclude-self --metric $metric -o sides.csv --memory 65M
    GNOMON_ISA=portable n few.npz few.npz -k 6 --exclude-self --metric $metric -o portable.csv
    for other in one two formats piped mixed sides portable; do cmp dense.csv $other.csv; done
    echo "$metric: the same"
done
# rows that are nearly full
make_rows 50 1 > full.svm
gnomon convert full.svm full.npz --quiet
n full.npz full.npz -k 3 -o one.csv
gnomon convert full.npz full.npy --quiet
n full.npz full.npy -k 3 -o two.csv
n full.npy full.npy -k 3 -o full.csv
cmp one.csv full.csv && cmp two.csv full.csv && echo same
# one side dense: weights too, but no sets
for sides in 'few.npz few.npz' 'dense.npy few.npz' 'few.npz dense.npy' 'dense.npy dense.npy'; do
    n $sides -k 6 --exclude-self --metric weighted-jaccard -o one.csv
    [ "$sides" != 'few.npz few.npz' ] || cp one.csv weights.csv
    cmp one.csv weights.csv && echo same
done
try gnomon neighbors few.npz dense.npy -k 6 --metric jaccard
try gnomon neighbors dense.npy few.npz -k 6 --metric jaccard
try gnomon neighbors dense.npy few.npz -k 6 --metric hamming
# queries in groups
gnomon neighbors few.npz few.npz -k 399 --exclude-self --metric cosine -o one.npy --quiet
gnomon neighbors few.npz few.svm -k 399 --exclude-self --metric cosine -o two.npy --quiet --memory 68M --json |
    grep query_groups
cmp one.npy two.npy && echo same
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
