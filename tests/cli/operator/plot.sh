. "$TESTS/lib.sh"
if ! command -v gnuplot > /dev/null; then echo "no gnuplot"; exit 77; fi
gnomon project points.npy -k 64 -o y.npy --quiet
name="a plot'\";!echo \`x\` \$(y).svg"
try gnomon distortion points.npy y.npy --plot "$name" --json > /dev/null
grep -c '</svg>' "$name"
try gnomon distortion points.npy y.npy --plot p.png --quiet > /dev/null
head -c 4 p.png | tail -c 3; echo
try gnomon distortion points.npy y.npy --plot nowhere/p.png | grep -v '%'
# without gnuplot
mkdir bin && ln -s "$(command -v gnomon)" bin/gnomon
PATH=bin gnomon distortion points.npy y.npy --plot q.svg
echo "exit $?"
