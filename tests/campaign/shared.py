"""Class 'races': two processes at once on one index, one output, one checkpoint. Nothing is lost, nothing is half a file,
and who can't go on says so."""
import re
import shutil

import seeds
from kit import Result, contents, digest, emptied, stream


def run(campaign, workers):
    source = emptied(f"{campaign.work}/race-inputs")
    seeds.jobs(campaign, source, False)
    whole = emptied(f"{campaign.work}/race-reference")
    for name in ("a.npy", "few.npy", "ids.npy", "base.lsh"):
        shutil.copy(f"{source}/{name}", whole)
    common = ["--quiet", "--threads", "1"]

    def reference(arguments, output):
        result = campaign.run(arguments + common, whole)
        return digest(f"{whole}/{output}") if result.code == 0 else None

    def points(folder, name):
        found = re.search(r"(\d+) points|points\s+(\d+)", campaign.run(["index", "info", name], folder).out.decode())
        return int(found.group(1) or found.group(2)) if found else None

    # the pairs of one checkpoint are those of one input file, by its place and time
    join = ["join", f"{source}/a.npy", "-t", "5"]
    sound = {"join": reference(join + ["-o", "j.csv"], "j.csv"),
             "f": reference(["convert", "a.npy", "f.csv"], "f.csv"), "g": reference(["convert", "few.npy", "g.csv"], "g.csv"),
             "q0": reference(["index", "query", "base.lsh", "few.npy", "-k", "3", "-o", "q.npz"], "q.npz")}
    n = points(whole, "base.lsh")
    campaign.run(["index", "add", "base.lsh", "few.npy", "-o", "more.lsh"] + common, whole)
    sound["q1"] = reference(["index", "query", "more.lsh", "few.npy", "-k", "3", "-o", "q.npz"], "q.npz")

    def pair(folder, rng, first, second):
        both = [first, second]
        rng.shuffle(both)
        processes = [campaign.start(arguments + common, folder) for arguments in both]
        results = {}
        for arguments, process in zip(both, processes):
            try:
                out, err = process.communicate(timeout=120)
                results[id(arguments)] = Result(process.returncode, out, err, 0.0)
            except Exception:
                process.kill()
                process.communicate()
                results[id(arguments)] = Result(None, b"", b"", 0.0)
        return results[id(first)], results[id(second)]

    def case(number, place):
        seed = f"races/{campaign.seed}/{number}"
        rng = stream(seed)
        emptied(place)
        for name in ("a.npy", "few.npy", "ids.npy", "base.lsh"):
            shutil.copy(f"{source}/{name}", place)
        kind = ("add/add", "add/query", "add/remove", "add/compact", "one output", "one checkpoint")[number % 6]
        campaign.count("races", kind)
        add = ["index", "add", "base.lsh", "few.npy"]
        other = {"add/add": list(add), "add/query": ["index", "query", "base.lsh", "few.npy", "-k", "3", "-o", "q.npz"],
                 "add/remove": ["index", "remove", "base.lsh", "ids.npy"], "add/compact": ["index", "compact", "base.lsh"]}
        why = None
        if kind in other:
            first, second = add, other[kind]
            a, b = pair(place, rng, first, second)
            why = campaign.verdict(a) or campaign.verdict(b)
            added = 7 * ((a.code == 0) + (kind == "add/add" and b.code == 0))
            check = campaign.run(["index", "check", "base.lsh"], place)
            info = campaign.run(["index", "info", "base.lsh"], place).out.decode()
            if why is None and check.code != 0:
                why = f"index check ends with {check.code}"
            removed = 5 if kind == "add/remove" and b.code == 0 else 0
            if why is None and points(place, "base.lsh") not in (n + added, n + added - removed):
                why = f"{n} points, {added} added, {removed} removed: {info[:200]}"
            if why is None and kind == "add/query" and b.code == 0 and digest(f"{place}/q.npz") not in (sound["q0"], sound["q1"]):
                why = "the answers are neither those before nor those after"
        elif kind == "one output":
            first, second = ["convert", "a.npy", "out.csv"], ["convert", "few.npy", "out.csv"]
            a, b = pair(place, rng, first, second)
            why = campaign.verdict(a) or campaign.verdict(b)
            if why is None and a.code != 0 and b.code != 0:
                why = "neither of the two came through"
            if why is None and digest(f"{place}/out.csv") not in (sound["f"], sound["g"]):
                why = "out.csv is neither's output"
        else:
            first = join + ["-o", "one.csv", "--checkpoint", "kept"]
            second = join + ["-o", "two.csv", "--checkpoint", "kept"]
            a, b = pair(place, rng, first, second)
            why = campaign.verdict(a) or campaign.verdict(b)
            for result, name in ((a, "one.csv"), (b, "two.csv")):
                if why is None and result.code == 0 and digest(f"{place}/{name}") != sound["join"]:
                    why = f"exit code 0, and {name} is not what it must be"
            if why is None and a.code != 0 and b.code != 0:
                why = "neither of the two came through"
        extra = [name for name in contents(place) if name.startswith(".")]
        if why is None and extra:
            why = f"leftovers: {extra}"
        if why is not None:
            said = Result(a.code, b"", a.err + b"\n---\n" + b.err, 0.0)
            campaign.violate("races", kind, why, [first, second], place, seed, said)
        return True

    workers(case)
