"""docs/results/python.md: calls of the Python package, its estimators beside scikit-learn's and its searches beside FAISS
and pynndescent, from the record of bench/cpu/python.py; calls on a GPU from that of tests/cuda/python_gpu.py."""
from pages import load, pages, table

AIM_CALL, AIM_GPU, AIM_IMPORT = 20, 10, 0.15
NAMES = {"gaussian": "`GaussianRandomProjection`", "sparse": "`SparseRandomProjection`", "svd": "`TruncatedSVD`", "pca": "`PCA`",
         "kneighbors": "`KNeighborsTransformer`", "ridge": "`SketchedRidge`, `Ridge`"}


def verdict(figure, aim, unit):
    return f"the aim: below {aim} {unit}; {'met' if figure < aim else 'missed'}"


def calls(record):
    package, c = (record["call_seconds"][name] * 1e6 for name in ("package", "c"))
    mine, theirs, sketch = (record["row_seconds"][name] * 1e6 for name in ("gnomon", "scikit-learn", "sketch"))
    took = record["import_seconds"]
    return (f"## Calls\n\n`gnomon.sketch` of one row of 16 numbers takes {package:.1f} µs, the C function with its arguments ready "
            f"{c:.1f} µs: {package - c:.1f} µs are Python's ({verdict(package - c, AIM_CALL, 'µs')}).\n\n"
            f"A fitted `GaussianRandomProjection` of 64 components takes {mine:.1f} µs for one row of 1,000 numbers, {sketch:.1f} µs of "
            f"them the sketch; scikit-learn's takes {theirs:.1f} µs. It stores the operator's entries; ours makes the 64,000 anew, which is "
            f"most of the time on two cores, and has a kernel that takes 16 rows at a time.\n\n"
            f"`import gnomon` takes {took['gnomon']:.3f} s ({verdict(took['gnomon'], AIM_IMPORT, 's')}): it imports neither NumPy nor "
            f"the library. With its first function, `gnomon.sketch`, it takes {took['first']:.3f} s, where `import numpy` alone takes "
            f"{took['numpy']:.3f} s; where NumPy is imported already it takes {took['beside numpy']:.3f} s.\n")


def estimators(record):
    rows = []
    for name, e in record["cases"].items():
        mine, theirs = e["who"]["gnomon"], e["who"]["scikit-learn"]
        alone = theirs["inside"]["function_seconds"] / mine["inside"]["function_seconds"]
        rows.append([NAMES.get(name, name), e["what"], f"{mine['seconds']:.3f}", f"{theirs['seconds']:.3f}",
                     f"{theirs['seconds'] / mine['seconds']:.1f}", f"{mine['processor_seconds']:.3f}",
                     f"{theirs['processor_seconds']:.3f}", f"{100 * (beyond_functions(mine) - 1):.1f} %",
                     f"{100 * (beyond_functions(theirs) - 1):.1f} %", f"{alone:.2f}", f"{alone * kept(e):.2f}"])
    return ("\n## Estimators\n\n`fit_transform` (ridge: `fit`) of the same data, in turns on the same cores, medians. Scikit-learn's `PCA` "
            "has the randomized solver, its neighbours are by brute force with `n_jobs=-1`, its ridge regression solves by Cholesky; with "
            "the same number of power iterations each. *Beyond C* is what the estimator takes beside its calls of the library, as a share of "
            "these; *beyond theirs* what scikit-learn's takes beside the functions that do the same. *Functions* is how many times as fast the "
            "library's are as those, *estimators* the ratio of the whole in the same runs.\n\n" +
            table(["estimator", "data", "gnomon, s", "scikit-learn, s", "times as fast", "processor s", "scikit-learn's", "beyond C",
                   "beyond theirs", "functions", "estimators"], rows) +
            slower(record) + lost(record))


def slower(record):
    slow = [NAMES[name].split(",")[0] for name, e in record["cases"].items()
            if e["who"]["gnomon"]["seconds"] > e["who"]["scikit-learn"]["seconds"]]
    why = (" It reads the points again and again until the backward error is at its aim, 1e-15, whatever their condition; Cholesky's "
           "reads them once, and squares the condition." if slow == ["`SketchedRidge`"] else "")
    return f"\nSlower than scikit-learn's: {', '.join(slow)}.{why}\n" if slow else ""


def beyond_functions(side):
    return side["inside"]["seconds"] / side["inside"]["function_seconds"]


def kept(e):
    """How much of the functions' ratio the estimators' is."""
    return beyond_functions(e["who"]["scikit-learn"]) / beyond_functions(e["who"]["gnomon"])


def lost(record):
    less = [f"{NAMES[name].split(',')[0]} ({100 * kept(e):.0f} %)" for name, e in record["cases"].items() if kept(e) < 0.95]
    return ("\nThe aim, the functions' ratio within 5 %: " +
            (f"missed by {', '.join(less)}.\n" if less else "met by every estimator.\n"))


def searches(record):
    s = record.get("searches")
    if not s:
        return ""
    rows = [[name, "exact" if e["exact"] else "index", f"{e['make_seconds']:.2f}" if e["make_seconds"] else "", f"{e['seconds'] * 1e3:.1f}",
             f"{e['processor_seconds'] * 1e3:.1f}", f"{e['recall']:.4f}"] for name, e in s["who"].items()]
    mine, flat = s["who"]["gnomon"], s["who"].get("FAISS, IndexFlatL2")
    indexes = {name: e for name, e in s["who"].items() if not e["exact"]}
    ours = next(e for name, e in indexes.items() if name.startswith("gnomon"))
    told = []
    if flat:
        told.append(f"Exact search takes {mine['seconds'] / flat['seconds']:.2f} times FAISS' time, and its distances are those of double "
                    "precision")
    for name, e in indexes.items():
        if e is not ours:
            told.append(f"our index answers in {ours['seconds'] / e['seconds']:.2f} times the time of {name} "
                        f"({'more' if ours['recall'] > e['recall'] else 'less'} is found)")
    versions = ", ".join(f"{name} {version}" for name, version in s["versions"].items())
    return (f"\n## Searches\n\n{s['what']}; {versions}. All queries in one call. Recall is the share of neighbours that are as near as the "
            "true ones. Our index is tuned to a recall of 0.9 that is guaranteed by a test (`always=True`: also where exact search is "
            "quicker); FAISS' have the least of a few values of their parameter with a recall of 0.9 on these very queries; pynndescent has its "
            "defaults, compiled before. *Made* is training and building; ours also tunes and tests.\n\n" +
            table(["search", "kind", "made, s", "ms", "processor ms", "recall"], rows) + "\n" + "; ".join(told) + ".\n")


def on_gpu(record):
    if record is None:
        return ""
    us = record["call_us"]
    over = {name: f"{us[name] - us['c']:.1f}" for name in us}
    table_rows = [["C, output given", f"{us['c']:.1f}", ""], ["C, output by `torch.empty`", f"{us['c_made']:.1f}", over["c_made"]]]
    for name, library in (("torch", "PyTorch"), ("cupy", "CuPy")):
        if name in us:
            table_rows += [[f"{library}'s array, `out=`", f"{us[name]:.1f}", over[name]],
                           [f"{library}'s array, new output", f"{us[name + '_made']:.1f}", over[name + "_made"]]]
    most = max(us["torch"], us["torch_made"]) - us["c"]
    return (f"\n## Calls on a GPU\n\n{record['device']}, Python {record['python']}, PyTorch {record['torch']}, CuPy {record['cupy']}, commit "
            f"{record['commit']}; `tests/cuda/python_gpu.py`. `gnomon.sketch` of 8 x 1,024 float32 on the GPU to 64 components, "
            "`allow_nonfinite=True`: the call ends when the work is enqueued. The least of nine medians of 400 calls.\n\n" +
            table(["call", "µs", "beyond C, µs"], table_rows) +
            f"\nPyTorch's tensors take at most {most:.1f} µs beyond the C call ({verdict(most, AIM_GPU, 'µs')}). The profiler sees "
            f"{len(record['copies']) or 'no'} copies between host and GPU in a sketch.\n")


def make():
    record = load("python-cpu.json")
    if record is None:
        return
    told = {part: f"Python {f['python']}, NumPy {f['numpy']}, scikit-learn {f['scikit-learn']}, {f['blas'].split(' DYNAMIC')[0]}" +
            (f", commit {f['commit'][:9]}" if f.get("commit") else "") for part, f in record["facts"].items()}
    parts = {}
    for part, words in told.items():
        parts.setdefault(words, []).append({"cases": "estimators"}.get(part, part))
    with_what = "; ".join(f"{', '.join(names)}: {words}" for words, names in parts.items())
    pages["python.md"] = (f"# The Python package\n\n{record['cpu']}, {record['facts']['calls']['threads']} cores; `bench/cpu/python.py`. "
                          f"{with_what[0].upper()}{with_what[1:]}. How it is used: [python.md](../reference/python.md).\n\n" +
                          calls(record) + on_gpu(load("gpu/python.json")) + estimators(record) + searches(record))
