# What is factored less its mean over its standard deviation: words, members, what can't be.
. "$TESTS/lib.sh"
needs_svd
needs npz
printf '1,7,1000\n3,7,-3000\n5,7,2000\n8,7,0\n' > x.csv
try gnomon svd x.csv -k 2 --standardize -o f.npz | grep -v 'A - U S Vt\|spectral'
gnomon info f.npz | sed 1d
gnomon convert f.npz:scale - --output-format csv --quiet | "$PYTHON" -c '
print([round(float(x), 6) for x in input().split(",")])'
try gnomon svd x.csv -k 2 --standardize --single-pass
printf '1,2\n-1e308,3\n1e308,9\n1e308,9\n' > far.csv
gnomon svd far.csv -k 2 --standardize --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(round(r["total_variance"], 9), [round(x, 6) for x in r["explained_variance"]], r["centered"], r["standardized"])'
printf '1.7e308\n-1.7e308\n' > beyond.csv
try gnomon svd beyond.csv -k 1 --standardize
# without a mean shares are of the squared norm
gnomon svd x.csv -k 2 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
squares = 1 + 9 + 25 + 64 + 4 * 49 + 1e6 + 9e6 + 4e6
print(all(abs(a - s * s / squares) < 1e-12 for a, s in zip(r["explained_norm_ratio"], r["singular_values"])), "total_variance" in r)'
# new points and those that were factored
gnomon transform f.npz x.csv -o y.csv --quiet
"$PYTHON" - << 'END'
rows = [[float(x) for x in line.split(",")] for line in open("y.csv")]
print([round(sum(r[j] for r in rows), 9) + 0 for j in (0, 1)], round(sum(r[j] ** 2 for r in rows for j in (0, 1)) / 3, 9))
END
