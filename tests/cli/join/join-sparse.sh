. "$TESTS/lib.sh"
needs npz
# Sparse rows: the bytes of dense ones, whatever the threads and memory; clusters and checkpoints
make_rows 400 11 > few.svm
gnomon convert few.svm few.npz --quiet && gnomon convert few.npz dense.npy --quiet
j() { gnomon join "$@" --quiet --json | grep '"why"' | sed 's/^ *//; s/"why": .*by the model.*/by the model/'; }
for job in 'cosine 0.5' 'l2 9' 'ip 40' 'l1 12'; do
    set -- $job
    j dense.npy --metric $1 --threshold $2 -o dense.csv > /dev/null
    j few.npz --metric $1 --threshold $2 -o one.csv --threads 1
    j few.svm --metric $1 --threshold $2 -o two.csv --threads 2 --memory 65M
    cmp dense.csv one.csv && cmp dense.csv two.csv && echo "$1: the same, $(wc -l < one.csv) lines"
done
j few.npz few.svm --metric cosine --threshold 0.3 -o one.csv
for sides in 'dense.npy few.npz' 'few.svm dense.npy' 'dense.npy dense.npy'; do
    j $sides --metric cosine --threshold 0.3 -o two.csv > /dev/null
    cmp one.csv two.csv && echo same
done
# one side dense, under every metric
for job in 'l2 9' 'ip 40' 'l1 12' 'weighted-jaccard 0.6'; do
    set -- $job
    gnomon join dense.npy dense.npy --metric $1 --threshold $2 -o one.csv --quiet
    for sides in 'dense.npy few.npz' 'few.npz dense.npy' 'few.npz few.npz'; do
        gnomon join $sides --metric $1 --threshold $2 -o two.csv --quiet
        cmp one.csv two.csv && echo "$1: the same, $(wc -l < one.csv) lines"
    done
done
try gnomon join few.npz dense.npy --metric jaccard --threshold 0.5
try gnomon join dense.npy few.npz --metric jaccard --threshold 0.5
try gnomon join dense.npy few.npz --metric hamming --threshold 3
j few.npz --metric cosine --threshold 0.4 --clusters one.csv
j dense.npy --metric cosine --threshold 0.4 --clusters two.csv > /dev/null
cmp one.csv two.csv && echo same
j few.npz --metric cosine --top 25 -o one.csv
j dense.npy --metric cosine --top 25 -o two.csv > /dev/null
cmp one.csv two.csv && echo same
# in parts, and with a checkpoint
gnomon join few.npz --metric cosine --threshold 0.5 -o whole.csv --quiet
try gnomon join few.npz --metric cosine --threshold 0.5 --max-pairs 40 -o parts.csv
try gnomon join few.npz --metric cosine --threshold 0.5 --checkpoint state -o kept.csv
head -n 41 whole.csv | cmp - parts.csv && cmp whole.csv kept.csv && echo same
