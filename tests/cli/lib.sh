# Read by the tests: . "$TESTS/lib.sh"

# Runs a command and tells its exit code; words and errors both go to standard output, so
# that they stand beside the command.
try() {
    echo "\$ $*"
    "$@" 2>&1
    local code=$?
    [ $code -eq 0 ] || echo "exit $code"
}
kinds="gaussian rademacher achlioptas very-sparse sjlt srht block kronecker"

# Skips the test in a build without the formats named: npz, hdf5.
needs() {
    local format variable
    for format; do
        variable=WITH_${format^^}
        [ "${!variable:-1}" = 1 ] || { echo "built without $format"; exit 77; }
    done
}

# Skips the test on a machine without OpenBLAS.
needs_svd() {
    gnomon info --json | grep -q '"svd": true' || { echo "no OpenBLAS"; exit 77; }
}

# make_rows ROWS EVERY: as svmlight, rows of 64 columns with about one of EVERY, some equal
make_rows() {
    awk -v rows="$1" -v every="$2" 'BEGIN {
        state = 17
        for (i = 0; i < rows; i++) {
            line = "0"
            for (c = 1; c <= 64; c++) {
                state = (state * 16807) % 2147483647
                if (c == 64 || state % every == 0) line = line " " c ":" (state % 97 + 1) / 8
            }
            if (i % 10 != 9) last = line
            print last
        }
    }'
}
