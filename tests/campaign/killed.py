"""Class 'kill': SIGKILL, SIGINT, SIGTERM, SIGHUP and a limit of the file's size (SIGXFSZ) at a random moment of every verb
that writes. The output is the old file, the whole new one or absent; the next run of the same output removes what a
killed one left, and what it writes is the reference's bytes."""
import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time

import seeds
from kit import Result, contents, digest, stream

OLD = hashlib.sha256(b"old\n").hexdigest()
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ]


def run(campaign, workers):
    source = f"{campaign.work}/kill-inputs"
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(source)
    jobs = seeds.jobs(campaign, source, True)
    shutil.copy(f"{source}/base.lsh", f"{source}/self.lsh")
    before = contents(source)
    reference = {}

    def fresh(place):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for name in before:
            shutil.copy2(f"{source}/{name}", f"{place}/{name}")

    lock = threading.Lock()
    stream("kill", campaign.seed).shuffle(jobs)

    def case(number, place):
        seed = f"kill/{campaign.seed}/{number}"
        rng = stream(seed)
        name, arguments, outputs = jobs[number % len(jobs)]
        with lock:
            known = name in reference
        if not known:
            fresh(place)
            result = campaign.run(arguments, place)
            sound = None  # where this build can't do the job
            if result.code == 0:
                sound = ({output: digest(f"{place}/{output}") for output in outputs}, result.seconds,
                         max(os.path.getsize(f"{place}/{output}") for output in outputs))
            with lock:
                reference[name] = sound
        if reference[name] is None:
            return True
        wanted, seconds, size = reference[name]
        number_of = rng.choice(SIGNALS)
        fresh(place)
        old = rng.random() < 0.5 and name != "index-add-self"
        if old:
            for output in outputs:
                with open(f"{place}/{output}", "w") as file:
                    file.write("old\n")
        campaign.count("kill", f"{name} {number_of.name}")
        if number_of == signal.SIGXFSZ:
            result = campaign.run(arguments, place, file_blocks=max(1, int(rng.random() * size / 512)))
        else:
            process = campaign.start(arguments, place)
            time.sleep(rng.random() * 1.1 * seconds)
            process.send_signal(number_of)
            try:
                out, err = process.communicate(timeout=60)
                result = Result(process.returncode, out, err, 0.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                result = Result(None, b"", b"", 60.0)
        why = None
        # before its handlers stand a process dies by the signal itself
        if result.code is None or (result.code < 0 and result.code != -number_of) or result.code not in (
                0, 4, 130, -number_of) or (number_of == signal.SIGXFSZ and result.code not in (0, 4)):
            why = campaign.verdict(result) or f"exit code {result.code}"

        def targets(after):
            for output in outputs:
                found = after.get(output)
                was = OLD if old else before.get(output)
                if found not in (wanted[output], was) or (found is None and was is not None):
                    return f"{output} is neither the old file nor the whole new one"
                if result.code == 0 and found != wanted[output]:
                    return f"exit code 0, and {output} is not what it must be"
            return None

        after = contents(place)
        why = why or targets(after)
        known = set(before) | set(outputs)
        extra = set(after) - known - seeds.KEPT
        if why is None and extra and result.code != -signal.SIGKILL:
            why = f"leftovers after {number_of.name}: {sorted(extra)}"
        again = None
        if why is None:
            if name == "index-add-self" and after["self.lsh"] != before["self.lsh"]:
                again = None  # done: a second addition would be another index
            else:
                again = campaign.run(arguments, place)
        if again is not None:
            after = contents(place)
            if again.code != 0:
                why = f"the next run ends with {again.code}: {again.words()[:300]}"
            elif any(after.get(output) != wanted[output] for output in outputs):
                why = "the next run's output is not what it must be"
            elif set(after) - known:
                why = f"the next run leaves {sorted(set(after) - known)}"
        if why is not None:
            campaign.violate("kill", f"{name} {number_of.name}", why, arguments, None, seed, again or result)
        return True

    workers(case)
