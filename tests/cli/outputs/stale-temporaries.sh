# what a killed run leaves beside its output is removed by the next run of that output, and nothing
# else is; a limit on the size of files is an error, not the end
. "$TESTS/lib.sh"
hidden() { find . -maxdepth 1 -name '.*tmp' -printf '%f\n' | sed 's/-[0-9]*\.tmp/-N.tmp/' | sort; }
mkfifo pipe
# a conversion that goes on until the pipe is closed, with its temporary file there
begin() {
    gnomon convert pipe big.csv --format csv --quiet &
    run=$!
    exec 3> pipe
    yes 1,2 | head -100000 >&3
    for wait in {1..500}; do
        [ -n "$(hidden)" ] && return
        sleep 0.02
    done
    echo "no temporary file"
}
for number in 1 2 3; do
    begin
    kill -9 $run; wait $run 2> /dev/null
    exec 3>&-
    hidden
done
printf x > .other.csv.gnomon-0.tmp
printf x > .big.csv.notours.tmp
ln -s big.csv .big.csv.gnomon-3.tmp
mkdir .big.csv.gnomon-4.tmp
echo "next run"
gnomon convert small.npy big.csv --quiet
find . -maxdepth 1 -name '.*tmp' -printf '%f\n' | sort
rm -r .big.csv.* .other.csv.*
echo "beside a run that is alive"
begin
gnomon convert small.npy big.csv --quiet && cmp <(gnomon convert small.npy - --output-format csv --quiet) big.csv && hidden
echo 3,4 >&3
exec 3>&-
wait $run; echo "exit $?"
wc -l < big.csv; tail -1 big.csv
hidden
echo "a limit on files"
(ulimit -f 8; gnomon convert points.npy big.csv --quiet 2>&1; echo "exit $?")
(ulimit -f 8; gnomon join base.npy --threshold 7 -o pairs.npy --quiet 2>&1 | head -1; echo "exit ${PIPESTATUS[0]}")
tail -1 big.csv
hidden
