"""What all classes of the campaign stand on: running the command within bounds, and keeping what breaks a promise."""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 130}  # gnomon(1), EXIT STATUS, without 70, which tells of a defect
BOUNDED = 'ulimit -c 0; ulimit -t "$1"; [ "$2" = 0 ] || ulimit -v "$2"; [ "$3" = 0 ] || ulimit -f "$3"; shift 3; exec "$@"'


class Result:
    """How a run of the command ended: code is negative for a signal, None when it was ended for taking too long."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def words(self):
        return self.err.decode(errors="replace")


class Campaign:
    """Settings, counts and violations; safe to use from several threads."""

    def __init__(self, settings):
        self.command = os.path.abspath(settings.command)
        self.faults = os.path.abspath(settings.faults) if settings.faults else None
        self.fuzzers = os.path.abspath(settings.fuzzers) if settings.fuzzers else None
        self.seed, self.jobs = settings.seed, settings.jobs
        self.memory = settings.memory * 1024  # KiB of address space; 0: no limit
        self.work = os.path.abspath(settings.work)
        self.kept = os.path.join(self.work, "violations")
        self.lock = threading.Lock()
        self.tried, self.violations, self.seconds, self.codes = {}, [], {}, {}
        self.cpu = 0.0
        self.stop_at = 0.0

    def over(self):
        return time.monotonic() >= self.stop_at

    def count(self, class_name, what):
        with self.lock:
            self.tried.setdefault(class_name, {}).setdefault(what, 0)
            self.tried[class_name][what] += 1

    def start(self, arguments, folder, environment=None, memory=None, file_blocks=0, cpu_seconds=30):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": folder, "LC_ALL": "C", "TMPDIR": folder,
               # no plugin: the constructors of NVIDIA's runtime in it crash when an allocation fails
               "GNOMON_PLUGIN_DIR": "/nonexistent"}
        for name in ("GNOMON_ISA", "OPENBLAS_CORETYPE", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update(environment or {})
        limit = self.memory if memory is None else memory
        line = ["sh", "-c", BOUNDED, "sh", str(cpu_seconds), str(limit), str(file_blocks)]
        if environment and "LD_PRELOAD" in environment:  # for the command alone, not for the shell
            env.pop("LD_PRELOAD")
            preload = [f"LD_PRELOAD={environment['LD_PRELOAD']}"]
            line += ["env"] + preload
        return subprocess.Popen(line + [self.command] + arguments, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, arguments, folder, timeout=120, **how):
        begin = time.monotonic()
        process = self.start(arguments, folder, **how)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return Result(None, out, err, time.monotonic() - begin)
        return Result(process.returncode, out, err, time.monotonic() - begin)

    def verdict(self, result):
        """What is wrong with how a run ended, whatever it did; None when nothing is."""
        if result.code is None:
            return "did not end in time"
        if result.code < 0:
            return f"died of {signal.Signals(-result.code).name}"
        if result.code not in DOCUMENTED:
            return f"exit code {result.code}"
        if result.code != 0 and not result.err.strip() and not result.out.strip():
            return f"exit code {result.code} without a word"
        return None

    def violate(self, class_name, what, why, arguments, folder=None, seed=None, result=None, environment=None):
        """Keeps the folder, the command line and the seed of a broken promise."""
        with self.lock:
            number = len(self.violations) + 1
            name = f"{number:04d}-{class_name}"
            place = os.path.join(self.kept, name)
            facts = {"class": class_name, "what": what, "why": why, "arguments": arguments, "seed": seed,
                     "environment": environment or {}, "stderr": result.words()[-2000:] if result else "",
                     "code": result.code if result else None, "kept": name}
            self.violations.append(facts)
            if number <= 200:
                os.makedirs(place, exist_ok=True)
                if folder is not None:
                    shutil.copytree(folder, os.path.join(place, "files"), dirs_exist_ok=True,
                                    ignore=shutil.ignore_patterns("endless*"))
                with open(os.path.join(place, "violation.json"), "w") as file:
                    json.dump(facts, file, indent=1)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def contents(folder):
    """Every file under a folder, hidden ones too, with its digest."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path):
                found[os.path.relpath(path, folder)] = digest(path)
    return found


def stream(*parts):
    """A generator of random numbers of its own for each case, so that one case can be had again alone."""
    return random.Random("/".join(str(part) for part in parts))


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder
