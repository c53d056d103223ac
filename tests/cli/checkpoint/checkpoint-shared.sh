# two runs at once on one checkpoint: one has it, the others are told so; the output is right
. "$TESTS/lib.sh"
cp -L base.npy own.npy
gnomon join own.npy --threshold 7 -o want.csv --quiet
# one that has the lock for certain
cp /dev/null cp.pairs
$PYTHON -c '
import fcntl, subprocess
with open("cp.pairs") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    done = subprocess.run("gnomon join own.npy --threshold 7 -o out.csv --checkpoint cp", shell=True, capture_output=True, text=True)
    print(done.stderr, end="")
    print("exit", done.returncode)'
# many at once
for round in 1 2 3 4 5 6; do
    for run in 1 2 3; do
        { gnomon join own.npy --threshold 7 -o out$run.csv --checkpoint cp --quiet > words$run 2>&1; echo $? > code$run; } &
    done
    wait
    good=0
    for run in 1 2 3; do
        if [ "$(cat code$run)" = 0 ]; then
            cmp out$run.csv want.csv && good=1
        else
            grep -q "another run of gnomon join is using this checkpoint" words$run || cat words$run
        fi
        rm -f out$run.csv
    done
    [ $good = 1 ] || echo "round $round: nobody was done"
done
ls cp* 2> /dev/null || echo "no checkpoint left"
