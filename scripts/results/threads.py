"""docs/results/threads.md: what each job gains from more threads, from bench/cpu/threads.py."""
from pages import load, pages, plot, table

ASKED = 0.85  # of what the machine itself gains


def make():
    record = load("threads-cpu.json")
    if not record:
        return
    names = list(dict.fromkeys(r["job"] for r in record["cases"]))
    threads = sorted({r["threads"] for r in record["cases"]})
    cells = {(r["job"], r["threads"]): r for r in record["cases"] if "seconds" in r}
    names = [name for name in names if (name, 1) in cells and (name, threads[-1]) in cells]
    bound = {r["job"]: r["bound"] for r in record["cases"]}
    most = threads[-1]

    def gain(name, t):
        return cells[name, 1]["seconds"] / cells[name, t]["seconds"]

    yard = {"products": "SGEMM", "reads": "read of 1 GiB"}
    rows, short = [], []
    for name in names:
        beside = ""
        if name in yard.values():
            beside = "–"
        else:
            share = gain(name, most) / gain(yard[bound[name]], most)
            beside = f"{share:.2f} ({bound[name]})"
            if share < ASKED:
                short.append(f"{name} ({share:.2f})")
        rows.append([name, f"{1e3 * cells[name, 1]['seconds']:.0f}"] + [f"{gain(name, t):.2f}" if (name, t) in cells else "–" for t in threads[1:]] +
                    [f"{cells[name, most]['busy']:.1f}", beside])
    text = (f"# Threads\n\nWhat each job gains from more threads on {record['cores']} cores of one {record['cpu']} "
            f"({record['isa']}; SGEMM by {record['blas']}), commit {record['commit']}: the least of {record['rounds']} "
            "rounds after one that isn't counted; '–' was not measured. The last column is the gain beside that of the machine itself: of SGEMM "
            "(4096 × 4096 × 2048) where products bound the job, of a read of 1 GiB where memory does. 'Busy' is processor "
            "seconds by wall seconds with the most threads. The program is `bench/cpu/threads.py`.\n\n")
    text += table(["job", "1 thread, ms", *[f"{t} threads" for t in threads[1:]], "busy", "beside the machine's gain"], rows)
    if short:
        text += (f"\nBelow {ASKED} of the machine's gain: " + ", ".join(short) + ".\n")
    curves = [(name, "with linespoints", [(t, gain(name, t)) for t in threads if (name, t) in cells])
              for name in names if name in ("SGEMM", "read of 1 GiB", "search, 10,000 queries", "join, exact",
                                            "svd 4096 x 4096, rank 256", "index build")]
    text += "\n" + plot("threads-cpu", "Gain from threads", "threads", "times as fast as one thread", curves,
                        more="set logscale xy 2", key="top left")
    pages["threads.md"] = text
