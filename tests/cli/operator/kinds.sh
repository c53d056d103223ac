# the bits of a sketch of each kind: a change of them is a change of everybody's data
. "$TESTS/lib.sh"
check() { gnomon project "$@" --quiet -o y.npy && echo "$(sha256sum < y.npy | cut -c1-16) ${*}"; }
for kind in $kinds; do check points.npy -k 24 --operator $kind --seed 7; done
check points.npy -k 24 --operator gaussian --precision fp16
check points.npy -k 24 --operator gaussian --scaling none
check points.npy -k 24 --operator very-sparse --density 0.2
check points.npy -k 24 --operator sjlt --nonzeros 1
check points.npy -k 24 --operator block --blocks 5 --inner gaussian
check points.npy -k 24 --operator kronecker --zeta 3 --width 32 --inner sjlt
check points-f8.npy -k 24 --operator gaussian
check points-u1.npy -k 24 --operator gaussian
check points.npy -k 24 --operator gaussian --output-dtype f8
check points.npy -k 24 --operator gaussian --output-dtype f2
check points.idx.gz -k 24 --operator very-sparse
check sparse.mtx -k 24 --operator gaussian
check sparse.mtx -k 24 --operator sjlt
