"""Class 'faults': every allocation, write, read, fsync, rename, close, open and mapping of every verb fails once, or for
ever from some call on. A documented exit code, a word about it, the outputs whole or absent or as before, nothing left
over; success only with the reference's bytes."""
import errno
import hashlib
import math
import re
import shutil
import threading

import seeds
from kit import contents, digest, emptied, stream

PLAN = [("malloc", "ENOMEM", 0), ("malloc", "ENOMEM", 1), ("write", "ENOSPC", 0), ("write", "EIO", 1), ("write", "EINTR", 0),
        ("write", None, 0), ("write", None, 1), ("read", "EIO", 0), ("read", "EINTR", 0), ("read", None, 0), ("read", None, 1),
        ("fsync", "EIO", 0), ("rename", "EIO", 0), ("rename", "ENOSPC", 1), ("close", "EIO", 0), ("open", "EMFILE", 0),
        ("open", "EIO", 1), ("open", "EINTR", 0), ("mmap", "ENOMEM", 0), ("mmap", "ENOMEM", 1), ("truncate", "ENOSPC", 0)]
OLD = hashlib.sha256(b"old\n").hexdigest()


def told(out):
    """What a run printed, but for times and what follows from them."""
    return re.sub(rb'("[a-z_ ]*(?:seconds|per_second|rate)[a-z_ ]*": )[-+.e0-9]+', rb"\1T", out)


def run(campaign, workers):
    source = emptied(f"{campaign.work}/fault-inputs")
    jobs = seeds.jobs(campaign, source, False, tuple(seeds.MANNERS))
    shutil.copy(f"{source}/base.lsh", f"{source}/self.lsh")
    before = contents(source)
    reference, counts, lock = {}, {}, threading.Lock()
    stream("faults", campaign.seed).shuffle(jobs)

    def fresh(place):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)

    def facts(name, arguments, outputs, kind, place):
        """The reference's bytes and how many calls of that kind there are; (None, 0) where this build can't do the job."""
        with lock:
            known = name in reference and (name, kind) in counts
        if not known:
            fresh(place)
            environment = {"LD_PRELOAD": campaign.faults, "FAULT_KIND": kind, "FAULT_AT": "0", "FAULT_COUNT": f"{place}/count"}
            result = campaign.run(arguments, place, memory=0, environment=environment)
            done = result.code == 0
            with open(f"{place}/count") as file:
                many = int(file.read())
            if kind == "malloc" and "hdf5" in name:
                many = 0  # HDF5 1.10 describes a failed allocation in its own error stack, allocates for that, and so on to the end of the stack
            with lock:
                counts[name, kind] = many if done else 0
                reference[name] = ({output: digest(f"{place}/{output}") for output in outputs}, told(result.out)) if done else None
        with lock:
            return reference[name], counts[name, kind]

    def case(number, place):
        # jobs in turn, then ways to fail, then every call: so many rounds as the job with the most calls has
        name, arguments, outputs = jobs[number % len(jobs)]
        kind, error, ever = PLAN[(number // len(jobs) * 5) % len(PLAN)]
        turn = number // (len(jobs) * len(PLAN))
        (sound, many) = facts(name, arguments, outputs, kind, place)
        if sound is None or turn >= many:
            return not (turn > 0 and turn >= max(counts.values()))
        wanted, out = sound
        first = stream("faults", campaign.seed, name, kind, error, ever).randrange(many)
        step = next(s for s in range(max(1, int(many * 0.618)), many + 2) if math.gcd(s, many) == 1)
        at = 1 + (first + turn * step) % many
        fresh(place)
        old = stream("faults", campaign.seed, number).random() < 0.5 and not name.startswith("index-add-self")
        if old:
            for output in outputs:
                with open(f"{place}/{output}", "w") as file:
                    file.write("old\n")
        code = 0 if error is None else getattr(errno, error)
        environment = {"LD_PRELOAD": campaign.faults, "FAULT_KIND": kind, "FAULT_AT": str(at), "FAULT_EVER": str(ever),
                       "FAULT_ERRNO": str(code)}
        result = campaign.run(arguments, place, memory=0, environment=environment)
        campaign.count("faults", f"{kind} {error or 'short'}{' for ever' if ever else ''}")
        why = campaign.verdict(result)
        after = contents(place)
        for output in outputs:
            found = after.pop(output, None)
            was = before.get(output) if not old else OLD
            if why is None and result.code == 0 and found != wanted[output]:
                why = f"exit code 0, and {output} is not what it must be"
            if why is None and found not in (wanted[output], was):
                why = f"{output} is neither the old file nor the whole new one"
            if why is None and found is None and was is not None:
                why = f"{output} was there and is gone"
        if why is None and result.code == 0 and told(result.out) != out:
            why = "exit code 0, and standard output is not what it must be"
        extra = set(after) - set(before) - seeds.KEPT
        if why is None and extra:
            why = f"leftovers: {sorted(extra)}"
        if why is None and any(after.get(path) != was for path, was in before.items() if path not in outputs):
            why = "an input changed"
        if why is not None:
            campaign.violate("faults", f"{name}: {kind} call {at} of {many} {error or 'short'}"
                             f"{' and all later' if ever else ''}", why, arguments, place, f"faults/{campaign.seed}/{number}",
                             result, environment)
        return True

    workers(case)
