# asked once: an orderly end; whatever the signal. The output keeps what it held.
. "$TESTS/lib.sh"
echo old > y.npy
for signal in INT TERM HUP; do
    # far more than could be done in a minute
    env --default-signal=INT gnomon operator --operator gaussian -k 100000 -D 200000 --memory 80M -o y.npy 2>&1 &
    process=$!
    for _ in $(seq 200); do compgen -G '.y.npy*' > /dev/null && break; sleep 0.05; done
    kill -$signal $process
    wait $process
    echo "$signal: exit $?"
    compgen -G '.y.npy*'
done
# in the middle of a sketch
truncate -s 400000000000 endless.raw
env --default-signal=INT gnomon project endless.raw --shape '?,10000' --dtype i1 -k 512 -o y.npy --operator gaussian --large --quiet 2>&1 &
process=$!
for _ in $(seq 200); do compgen -G '.y.npy*' > /dev/null && break; sleep 0.05; done
sleep 0.3
kill -INT $process
wait $process
echo "sketch: exit $?"
rm endless.raw
# until process $1 catches SIGINT: a checked build on a busy machine starts slowly
catches() {
    local mask
    for _ in $(seq 200); do
        mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
        [ $((16#${mask:-0} & 2)) -ne 0 ] && break
        sleep 0.05
    done
}
# a pipe that stays silent
mkfifo silent
sleep 60 > silent &
sleeper=$!
env --default-signal=INT gnomon convert silent y.npy --format raw --shape '?,4' --dtype f4 2>&1 &
process=$!
catches $process
sleep 0.1
kill -INT $process
wait $process
echo "silent: exit $?"
env --default-signal=INT gnomon convert silent y.npy --format raw --shape '?,4' --dtype f4 2>&1 &
process=$!
catches $process
sleep 0.1
kill -INT $process
sleep 0.1
kill -INT $process 2> /dev/null
wait $process
echo "twice: exit $?"
kill $sleeper
cat y.npy
