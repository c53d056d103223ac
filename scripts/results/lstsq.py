"""docs/results/lstsq.md: least squares beside LAPACK's and others', from the record of bench/cpu/lstsq.py."""
from pages import load, pages, plot, table


def seconds(x):
    return f"{x:.2f}" if x >= 0.1 else f"{x:.3f}"


def times(cases):
    text = ""
    for name, case in cases.items():
        who = case["who"]
        mine = who["gnomon"]
        rows = [[peer, seconds(r["seconds"]), f"{r['seconds'] / mine['seconds']:.1f}", seconds(r["cpu_seconds"]),
                 f"{r['cpu_seconds'] / mine['cpu_seconds']:.1f}", f"{r['forward_error']:.1e}", f"{r['suboptimality']:.1e}"]
                for peer, r in who.items()]
        told = mine["told"]
        sketch = f"a sketch of {told['k']:,} rows" if told["sketched"] else "AᵀA in place of a sketch"
        phases = ", ".join(f"{phase[:-8]} {seconds(value)}" for phase, value in told["phases"].items())
        text += f"\n### {name}\n\n" + table(
            ["who", "seconds", "times ours", "seconds of processors", "times ours", "‖x − x*‖ / ‖x*‖", "‖r‖ above the least"], rows)
        text += (f"\nLoad average {case['load_average']:.1f}, {'one turn' if case['rounds'] == 1 else 'medians of ' + str(case['rounds']) + ' turns'}. Ours: {sketch}, "
                 f"{told['iterations']} step{'s' if told['iterations'] != 1 else ''}, {told['refinements']} refinement{'s' if told['refinements'] != 1 else ''}, {told['passes']} passes; seconds by phase, of the last "
                 f"run: {phases}. It reports a condition of {told['condition']:.3g}, at most {told['condition'] * told['high'] / told['low']:.3g}; "
                 f"‖x − x*‖ / ‖x‖ at most {told['forward_bound'] / told['norm_x']:.1e} and rounding, "
                 f"{2 ** -53 * told['sensitivity']:.1e}.\n")
    return text


def errors(conditions):
    text = ""
    for residual in sorted({c["residual"] for c in conditions}):
        mine = [c for c in conditions if c["residual"] == residual]
        peers = list(mine[0]["who"])
        text += f"\n‖r‖ = {residual:g}:\n\n" + table(
            ["condition"] + peers + ["bound reported, of ‖x‖", "rounding reported, of ‖x‖"],
            [[f"{c['condition']:.0e}"] + [f"{c['who'][p]['forward_error']:.1e}" if c["who"][p] else "fails" for p in peers] +
             [f"{c['told']['forward_bound'] / c['told']['norm_x']:.1e}", f"{2 ** -53 * c['told']['sensitivity']:.1e}"] for c in mine])
        text += "\n" + plot(
            f"lstsq-errors-{'large' if residual >= 1 else 'small'}-residual", f"Error of x, 20,000 x 100, |r| = {residual:g}",
            "condition of A", "|x - x*| / |x*|",
            [(p, "with linespoints", [(c["condition"], c["who"][p]["forward_error"]) for c in mine if c["who"][p]]) for p in peers] +
            [("2^{-53} times the sensitivity", "with lines dt 2 lc black",
              [(c["condition"], 2 ** -53 * c["told"]["sensitivity"]) for c in mine])],
            more="set logscale xy\nset format xy '%.0e'")
    return text


def stability(rows):
    peers = list(rows[0]["who"])
    return table(["A"] + peers + ["ours, times Householder QR's"],
                 [[r["name"]] + [f"{r['who'][p]:.1e}" if r["who"][p] is not None else "fails" for p in peers] +
                  [f"{r['who']['gnomon'] / r['who']['Householder QR']:.2g}"] for r in rows])


def make():
    record = load("lstsq-cpu.json")
    if record is None:
        return
    facts = record["facts"]
    # a load average counts what had to wait, too: where our threads got nearly all their time, they had the machine
    shared = any(case["load_average"] > 3 and
                 case["who"]["gnomon"]["cpu_seconds"] < 0.8 * facts["threads"] * case["who"]["gnomon"]["seconds"]
                 for case in record["cases"].values())
    warning = "\nThe machine was shared with much else when this record was taken: go by the ratios, not by the seconds.\n" if shared else ""
    pages["lstsq.md"] = f"""# Least squares beside LAPACK, LSQR and ridge regression

`gnomon_lstsq_dense` and `_csr` with their defaults ([lstsq.md](../reference/lstsq.md)), {facts['threads']} threads on {facts['machine']}, beside
NumPy {facts['numpy']}, SciPy {facts['scipy']} with OpenBLAS and scikit-learn {facts['scikit-learn']}, in one process, turn by turn
(what takes over 8 seconds once). `bench/cpu/lstsq.py` makes the record, [lstsq-cpu.json](../../bench/records/lstsq-cpu.json). A = G diag(s) Vᵀ with G
normal and s falling from 1 to 1/condition; b = A x* + r with r orthogonal to A, so that x* is the solution but for the rounding
of A and b. Seconds of processors are those of all threads: they change less than the others where the machine is not quiet.

## Time
{warning}{times(record["cases"])}
- LAPACK's drivers factor A, 2 n d² flops and more, and NumPy and SciPy first turn it over in memory. Here a step costs 4 n d flops and
  one reading of A; after a sketch some twenty do whatever the condition, after AᵀA one or two.
- scikit-learn's Ridge (alpha 10⁻³⁰, as near to least squares as it gets) factors AᵀA: n d² flops at the rate of a matrix product,
  and wrong by the condition's square.
- LSQR without a preconditioner takes as many steps as A's condition asks for. Normal matrices are so well conditioned that it takes
  few there. Elsewhere it was stopped after 300 steps, and so was the iteration of Ridge.

## Backward errors

The least change of A, relative to ‖A‖_F, for which x is the solution: Karlson and Walden's estimate, in extended precision.
4,000 × 50 with ‖x*‖ = 1 and singular values from 1 to 1/condition, as Epperly, Meier and Nakatsukasa (2024) take it, and
columns of other kinds; sketches of 12 d rows. "A sketch and LSQR once" is what Blendenpik does: a sketch's R preconditions LSQR, which starts
from 0 and is not repeated. LSQR by itself stops after 300 steps.

{stability(record["stability"])}
## Errors against the condition

20,000 × 100, a sketch of 1,600 rows; ‖x − x*‖ / ‖x*‖. What rounding of A and b does to x, which no method can undo, is about the
last column; "bound reported" is our `forward_bound`, which leaves rounding out. Ridge turns to a singular value decomposition by
itself once AᵀA is not positive definite.
{errors(record["conditions"])}"""
