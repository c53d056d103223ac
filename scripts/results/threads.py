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

    before = {(r["job"], r["threads"]): r for r in record.get("before", {}).get("cases", []) if "seconds" in r}
    yard, amx = {"products": "SGEMM", "reads": "read of 1 GiB"}, "AMX, int8"
    ceilings = [*yard.values(), amx]
    with_amx = {r["job"] for r in record["cases"] if r.get("amx")} if amx in names else set()

    def gain(times, name, t):
        return times[name, 1]["seconds"] / times[name, t]["seconds"]

    def share(times, name, of=None):
        return gain(times, name, most) / gain(times, of or yard[bound[name]], most)

    rows, short = [], []
    for name in names:
        ceiling = name in ceilings
        row = [name, f"{1e3 * cells[name, 1]['seconds']:.0f}"]
        row += [f"{gain(cells, name, t):.2f}" if (name, t) in cells else "–" for t in threads[1:]]
        row += [f"{cells[name, most]['busy']:.1f}", "–" if ceiling else f"{gain(cells, yard[bound[name]], most):.2f} ({yard[bound[name]]})",
                "–" if ceiling else f"{share(cells, name):.2f}"]
        if with_amx:
            row.append(f"{share(cells, name, amx):.2f}" if name in with_amx else "–")
        if before:
            there = (name, 1) in before and (name, most) in before
            row += [f"{1e3 * before[name, most]['seconds']:.1f}" if there else "–", f"{1e3 * cells[name, most]['seconds']:.1f}",
                    f"{share(before, name):.2f}" if there and not ceiling else "–"]
        rows.append(row)
        if not ceiling and share(cells, name) < ASKED:
            of_amx = f", {share(cells, name, amx):.2f} of AMX's" if name in with_amx else ""
            short.append(f"{name} ({share(cells, name):.2f}{of_amx})")
    note = f" {record['note']}" if "note" in record else ""
    text = (f"# Threads\n\nWhat each job gains from more threads on {record['cores']} cores of one {record['cpu']} "
            f"({record['isa']}; SGEMM by {record['blas']}), commit {record['commit']}: the least of up to {record['rounds']} "
            f"rounds, as many as half a second takes, after one that isn't counted.{note} The ceiling is what the machine itself "
            "gains in the same run: SGEMM (4096 × 4096 × 2048) where products bound the job, a read of 1 GiB where memory does. The share is "
            f"the job's gain from 1 to {most} threads by the ceiling's. 'Busy' is processor seconds by wall seconds with the most threads. "
            "Jobs from file to file are the command, its start and its files in memory included. The program is `bench/cpu/threads.py`.\n\n")
    head = ["job", "1 thread, ms", *[f"{t} threads" for t in threads[1:]], "busy", "ceiling's gain", "share of the ceiling's gain"]
    if with_amx:
        head.append("share of AMX's gain")
        text += ("Where most of a job are products of 8-bit integers by AMX it can't gain more than these do: two hardware threads of a "
                 "core share its unit. 'AMX, int8' are these products alone, on registers, by `bench/cpu/ceilings.c`: 10^12 "
                 "multiply-adds. The last column holds such jobs against their gain.\n\n")
    if before:
        text += (f"The last columns compare with commit {record['before']['commit']} in the same run: milliseconds with {most} "
                 "threads, before and after, and the share before, by the ceiling that was measured beside it; '–' was not measured again.\n\n")
        head += [f"before, {most} threads, ms", f"after, {most} threads, ms", "share before"]
    text += table(head, rows)
    if short:
        text += (f"\nBelow {ASKED} of the ceiling's gain: " + ", ".join(short) + ".\n")
    if "serial" in record:
        text += f"\n{record['serial']}\n"
    curves = [(name, "with linespoints", [(t, gain(cells, name, t)) for t in threads if (name, t) in cells])
              for name in names if name in (*ceilings, "search, 10,000 queries in 200,000 x 128", "join, exact",
                                            "svd 4096 x 4096, rank 256", "index build")]
    text += "\n" + plot("threads-cpu", "Gain from threads", "threads", "times as fast as one thread", curves,
                        more="set logscale xy 2", key="top left")
    pages["threads.md"] = text
