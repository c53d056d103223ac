# the Achlioptas bound for these is 1855.5, so k is 1856; a text that says 1855 cut it short
gnomon dim --points 256 --eps 0.2 --beta 0.9 --json | "$PYTHON" -c '
import json, math, sys
report = json.load(sys.stdin)
bounds = {b["bound"]: b for b in report["bounds"]}
eps, beta, n = 0.2, 0.9, 256
k0 = (4 + 2 * beta) / (eps**2 / 2 - eps**3 / 3) * math.log(n)
assert abs(bounds["achlioptas"]["real"] - k0) < 1e-9 * k0, bounds
assert bounds["achlioptas"]["k"] == math.ceil(k0) == 1856
assert bounds["dasgupta-gupta"]["k"] == math.ceil(4 * math.log(n) / (eps**2 / 2 - eps**3 / 3))
assert 0 < bounds["gaussian-exact"]["k"] < 1856
assert abs(report["delta"] - n**-beta) < 1e-15 and report["verb"] == "dim" and report["threads"] >= 1
print("good")'
