"""The campaign against the command: hostile files, failing calls, signals, races, pairs of options, fuzzing. scripts/campaign.sh calls it.

Each class gets an equal share of the time. Cases follow from the seed and their number alone. The report tells what was
tried and what broke a promise, by class; what broke one is kept in WORK/violations: files, seed, command line, words.

exit code: 0 no violation, 1 violations, 2 usage"""
import argparse
import collections
import datetime
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import threading
import time

try:
    import numpy  # noqa: F401
    import scipy  # noqa: F401
except ImportError:
    print("the campaign needs NumPy and SciPy")
    sys.exit(77)

import faulty
import fuzzing
import hostile
import killed
import pairs
import shared
from kit import Campaign

CLASSES = {"files": hostile.run, "faults": faulty.run, "kill": killed.run, "races": shared.run,
           "options": pairs.run, "fuzz": fuzzing.run}


def workers(campaign, class_name):
    """Runs case(number, folder) for 0, 1, 2 ... on all jobs until the time is over or a case returns False."""
    def go(case):
        lock, state = threading.Lock(), {"next": 0, "end": False, "error": None}

        def work(folder):
            while not campaign.over() or state["next"] == 0:
                with lock:
                    number = state["next"]
                    state["next"] += 1
                if state["end"] or campaign.limit is not None and number >= campaign.limit:
                    return
                try:
                    if case(number, folder) is False:
                        state["end"] = True
                except BaseException as error:  # a defect of the campaign, not of the command
                    state["error"], state["end"] = error, True

        threads = [threading.Thread(target=work, args=(f"{campaign.work}/run/{class_name}-{i}",)) for i in range(campaign.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if state["error"] is not None:
            raise state["error"]
    return go


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def commit():
    top = os.path.dirname(os.path.abspath(__file__))
    said = subprocess.run(["git", "-C", top, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return said.stdout.strip() or os.environ.get("GNOMON_COMMIT", "unknown")


def report(campaign, settings, seconds, core_hours):
    by_class = collections.Counter(v["class"] for v in campaign.violations)
    print(f"{'class':<10}{'tried':>10}{'violations':>12}{'seconds':>10}")
    for name in campaign.seconds:
        tried = sum(campaign.tried.get(name, {}).values())
        print(f"{name:<10}{tried:>10}{by_class[name]:>12}{campaign.seconds[name]:>10.0f}")
    kinds = collections.Counter((v["class"], v["what"].split(": ")[0] if v["class"] != "faults" else v["what"].split(" call")[0],
                                 v["why"]) for v in campaign.violations)
    for (class_name, what, why), times in kinds.most_common(60):
        print(f"violation  {class_name}: {what}: {why} ({times})")
    if campaign.violations:
        print(f"kept in {campaign.kept}")
    if settings.json:
        write(settings, {
            "date": datetime.date.today().isoformat(), "commit": commit(), "cpu": processor(), "cores": os.cpu_count(),
            "seed": settings.seed, "jobs": settings.jobs, "memory_mib": settings.memory,
            "wall_seconds": round(seconds), "core_hours": round(core_hours, 3),
            "results": [{"class": name, "tried": sum(campaign.tried.get(name, {}).values()), "violations": by_class[name],
                         "seconds": round(campaign.seconds[name]),
                         "by_kind": dict(sorted(campaign.tried.get(name, {}).items()))} for name in campaign.seconds],
            "violations": [{k: v[k] for k in ("class", "what", "why", "seed", "kept")} for v in campaign.violations]})


def write(settings, run):
    """The record of this run or, with --append, of those before it too; beside the runs, their sums by class."""
    runs = []
    if settings.append and os.path.exists(settings.json):
        with open(settings.json) as file:
            runs = json.load(file)["runs"]
    runs.append(run)
    totals = {}
    for result in (result for each in runs for result in each["results"]):
        total = totals.setdefault(result["class"], {"tried": 0, "violations": 0})
        for what in total:
            total[what] += result[what]
    record = {"benchmark": "campaign of hostile files, failing calls, signals, races, pairs of options and fuzzing",
              "core_hours": round(sum(each["core_hours"] for each in runs), 3), "totals": totals, "runs": runs}
    with open(settings.json + ".new", "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    os.replace(settings.json + ".new", settings.json)


def main():
    parser = argparse.ArgumentParser(prog="campaign.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="how long, all classes together (default 120)")
    parser.add_argument("--seed", type=int, default=1, help="which cases (default 1)")
    parser.add_argument("--class", dest="classes", action="append", choices=list(CLASSES), help="only these classes; may be repeated")
    parser.add_argument("--cases", type=int, help="at most so many cases a class")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: one a core)")
    parser.add_argument("--memory", type=int, default=2048, help="MiB of address space for hostile files; 0: no limit, for a command built with sanitizers")
    parser.add_argument("--json", help="write the report to this file too")
    parser.add_argument("--append", action="store_true", help="add the run to those that the file of --json holds")
    parser.add_argument("--command", required=True, help="the command under trial")
    parser.add_argument("--faults", help="the library that makes calls fail")
    parser.add_argument("--fuzzers", help="the folder of the fuzz targets; without it the class fuzz is left out")
    parser.add_argument("--work", required=True, help="a folder of the campaign's own; it is emptied")
    settings = parser.parse_args()
    campaign = Campaign(settings)
    campaign.limit = settings.cases
    for name in ("run", "violations"):
        shutil.rmtree(os.path.join(campaign.work, name), ignore_errors=True)
    os.makedirs(os.path.join(campaign.work, "run"))
    chosen = settings.classes or list(CLASSES)
    if not campaign.faults:
        chosen = [name for name in chosen if name != "faults"]
    if not fuzzing.targets(campaign):
        chosen = [name for name in chosen if name != "fuzz"]
    begin = time.monotonic()
    for i, name in enumerate(chosen):
        start = time.monotonic()
        campaign.stop_at = start + (begin + settings.seconds - start) / (len(chosen) - i)
        CLASSES[name](campaign, workers(campaign, name))
        campaign.seconds[name] = time.monotonic() - start
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    core_hours = sum(u.ru_utime + u.ru_stime for u in usage) / 3600
    report(campaign, settings, time.monotonic() - begin, core_hours)
    shutil.rmtree(os.path.join(campaign.work, "run"), ignore_errors=True)
    return 1 if campaign.violations else 0


sys.exit(main())
