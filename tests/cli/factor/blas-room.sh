# Little address space: a result or exit 5, and never a wait that has no end.
. "$TESTS/lib.sh"
needs_svd
needs npz
[ -z "$SANITIZED" ] || { echo "sanitizers map terabytes"; exit 77; }
limited() {
    local kib=$1
    shift
    (ulimit -v "$kib" && timeout 60 "$@" > out 2>&1)
    local code=$?
    case $code in
        0) ;;
        5) grep -qE 'no room for OpenBLAS|memory' out || { echo "$* in $kib KiB:"; cat out; } ;;
        *) echo "exit $code: $* in $kib KiB"; cat out ;;
    esac
}
for kib in 90000 150000 250000 350000 500000; do
    limited $kib gnomon svd small.npy -k 2 --threads 2
    limited $kib gnomon lstsq features.npy targets.npy --threads 1
    limited $kib gnomon hosvd tensor.npy --ranks 4,5,3 --threads 2
done
(ulimit -v 150000; try gnomon lstsq features.npy targets.npy) | sed 's/about.*/.../'
