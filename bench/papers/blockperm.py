"""Distortion of blockperm-sjlt beside sjlt, on coherent points: the mean squared distortion of squared distances, and the
median of the largest one, over 24 seeds. k = 64, 200 points of 2,048 coordinates.

usage: GNOMON_LIBRARY=LIBRARY PYTHONPATH=bindings/python blockperm.py"""
import gnomon
import numpy as np

POINTS, COLS, ROWS, SEEDS = 200, 2048, 64, 24
KINDS = {"sjlt, s = 2": {"kind": "sjlt", "nonzeros": 2}, "sjlt, s = 4": {"kind": "sjlt", "nonzeros": 4},
         "wiring 1, s = 2": {"kind": "blockperm-sjlt", "wiring": 1, "nonzeros": 2},
         "wiring 4, s = 2": {"kind": "blockperm-sjlt", "wiring": 4, "nonzeros": 2},
         "wiring 4, s = 4": {"kind": "blockperm-sjlt", "wiring": 4, "nonzeros": 4}}


def points(rng):
    simplex, adjacent, few = (np.zeros((POINTS, COLS)) for _ in range(3))
    simplex[np.arange(POINTS), rng.permutation(COLS)[:POINTS]] = 1
    for i, begin in enumerate(rng.integers(0, COLS - 40, POINTS)):
        adjacent[i, begin:begin + 32] = rng.standard_normal(32)
    heavy = rng.standard_normal((POINTS, COLS))
    heavy[:, :2] *= 30
    for row in few:
        row[rng.choice(COLS, 50, False)] = rng.random(50)
    return {"simplex": simplex, "32 adjacent coordinates": adjacent, "two heavy coordinates": heavy,
            "50 coordinates": few, "normal": rng.standard_normal((POINTS, COLS))}


def squares(x):
    norms = (x * x).sum(1)
    return (norms[:, None] + norms - 2 * x @ x.T)[np.triu_indices(POINTS, 1)]


def main():
    for name, x in points(np.random.default_rng(1)).items():
        true = squares(x)
        for kind, parameters in KINDS.items():
            errors = [squares(np.asarray(gnomon.sketch(x, ROWS, random_state=seed, **parameters))) / true - 1
                      for seed in range(SEEDS)]
            print(f"{name}, {kind}: variance {np.mean([(e * e).mean() for e in errors]) * ROWS / 2:.2f}, largest "
                  f"{np.median([np.abs(e).max() for e in errors]):.2f}", flush=True)


if __name__ == "__main__":
    main()
