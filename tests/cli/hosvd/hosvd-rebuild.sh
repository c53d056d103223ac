# what is written is the tensor again, but for what the report says, by NumPy alone
. "$TESTS/lib.sh"
needs_svd
needs npz
# shellcheck disable=SC2153 # run.py sets it
for candidate in "$PYTHON" /usr/bin/python3 python3; do
    python=$candidate
    "$python" -c "import numpy" 2> /dev/null && break
done
"$python" -c "import numpy" 2> /dev/null || { echo "no Python with NumPy"; exit 77; }
for input in tensor.npy tensor-fortran.npy tensor-f2.npy video.npy; do
    for way in "" --sequential; do
        gnomon hosvd $input --ranks 3,4,5 $way -o parts.npz --json > report.json
        "$python" - $input << 'END'
import json, sys
import numpy as np

x = np.load(sys.argv[1]).astype(np.float64)
with np.load("parts.npz") as parts:
    y = parts["core"].astype(np.float64)
    for n in range(y.ndim):
        y = np.moveaxis(np.tensordot(parts[f"factor_{n}"], y, (1, n)), 0, n)
told = json.load(open("report.json"))["relative_error"]
found = np.linalg.norm(x - y) / np.linalg.norm(x)
assert abs(found - told) <= 1e-3 * told, (found, told)
END
    done
done
echo "the same"
