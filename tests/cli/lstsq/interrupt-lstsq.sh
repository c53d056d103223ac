# least squares that are asked to end, in their first pass over the rows: an orderly end
. "$TESTS/lib.sh"
needs_svd
echo old > x.npy
truncate -s 4000000000 endless.raw
"$PYTHON" -c '
head = "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (5000000, 1), }"
head += " " * (-(10 + len(head) + 1) % 64) + "\n"
with open("b.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + b"\1" * 5000000)'
for signal in INT TERM; do
    env --default-signal=INT gnomon lstsq endless.raw b.npy --shape 5000000,800 --dtype i1 --memory 500M -o x.npy --quiet > words 2>&1 &
    process=$!
    # until it catches SIGINT and has begun to read
    for _ in $(seq 200); do
        mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$process/status" 2> /dev/null)
        [ $((16#${mask:-0} & 2)) -ne 0 ] && grep -q endless.raw <(readlink "/proc/$process/fd/"* 2> /dev/null) && break
        sleep 0.05
    done
    sleep 0.2
    kill -$signal $process
    wait $process
    echo "$signal: exit $?"
    cat words
done
rm endless.raw
cat x.npy
