# what a killed run leaves of a checkpoint that was never complete: the next run begins anew
. "$TESTS/lib.sh"
cp -L base.npy own.npy
left() { ls cp* 2> /dev/null || echo "nothing left"; }
join="gnomon join own.npy --threshold 3 -o pairs.csv --checkpoint cp"
$join --quiet; cp pairs.csv want.csv
: > ./cp.pairs; try $join; left
printf 'gnomon pa' > ./cp.pairs; printf '{"gnomon' > cp.new; try $join; left
(ulimit -f 0; trap '' XFSZ; $join 2>&1); left; try $join; cmp pairs.csv want.csv && left
# a save that was killed after the first one
(ulimit -f 9; trap '' XFSZ; gnomon join own.npy --threshold 7 --checkpoint cp --quiet 2>&1)
printf '{"gnomon join":2' > cp.new
try gnomon join own.npy --threshold 7 --count --checkpoint cp; left
# files that are nobody's to write over
echo mine > ./cp.pairs; try $join; cat cp.pairs; rm cp.pairs
echo mine > cp.new; try $join; cat cp.new; rm cp.new cp.pairs
echo '{"a":1}' > ./cp; try $join; : > ./cp.pairs; try $join; cat cp; rm cp cp.pairs
# and files that are read or written besides
for name in pairs.csv ./pairs.csv own.npy ../checkpoint-begun/pairs.csv; do try $join --checkpoint $name; done
for name in pairs.csv.new pairs.csv.pairs; do try $join --checkpoint pairs.csv -o $name; done
try $join --checkpoint counts.csv --counts ./counts.csv
[ -e counts.csv ] || cmp pairs.csv want.csv
