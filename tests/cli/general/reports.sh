# Reports go to standard error and --quiet takes them away; standard output holds data alone.
. "$TESTS/lib.sh"
needs_svd
needs npz
look() {
    "$@" > out 2> err
    local code=$?
    echo "$2 $3: exit $code, $([ -s out ] && echo data || echo nothing) on standard output, $([ -s err ] && echo a report || echo nothing) on standard error"
    "$@" --quiet > quiet.out 2> quiet.err
    cmp out quiet.out
    cat quiet.err
}
look gnomon project base.npy -k 4 -o file.npy
look gnomon project base.npy -k 4 -o -
look gnomon neighbors base.npy queries.npy -k 2 -o file.npy
look gnomon neighbors base.npy queries.npy -k 2 -o - --output-format csv
look gnomon neighbors base.npy queries.npy -k 2 --recall 0.9 -o file.csv --ground-truth file.npy
look gnomon join base.npy --threshold 4 -o file.csv
look gnomon join base.npy --threshold 4 -o - --output-format csv
look gnomon svd small.npy -k 3 -o file.npz
look gnomon svd small.npy -k 3 -o -
look gnomon svd small.npy -k 3 --tolerance 1e-9 -o file.npz
look gnomon transform file.npz small.npy -o file.csv
look gnomon transform file.npz small.npy -o -
look gnomon lstsq features.npy targets.npy -o file.csv
look gnomon lstsq features.npy targets.npy -o - --output-format csv
look gnomon hosvd tensor.npy --ranks 3,3,3 -o file.npz
look gnomon hosvd tensor.npy --ranks 3,3,3 -o -
look gnomon index build base.npy --tables 2 --functions 3 --metric cosine -o a.lsh
look gnomon index build base.npy -k 1 --recall 0.9 -o none.lsh
look gnomon index query a.lsh queries.npy -k 1 -o file.csv
look gnomon neighbors queries.npy --index a.lsh -k 1 -o - --output-format csv
look gnomon index remove a.lsh allowed.csv -o b.lsh
# what a verb was asked to tell is data
look gnomon index info a.lsh
look gnomon index check a.lsh
look gnomon index tune base.npy -k 1
look gnomon dim --points 9 --eps 0.5
