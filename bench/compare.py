#!/usr/bin/env python3
"""Times one command with two commits' builds, in turn, and says whether they differ by more than the machine's noise.

usage: compare.py BEFORE AFTER [--rounds 7] [--target NAME]... [--same FILE]... [--folder DIR] -- COMMAND...

COMMAND is run in a folder of its own for each commit; {build} in it is the folder of the commit's build (preset no-cuda),
{source} its sources. AFTER may be '.', the working tree as it is. Processor seconds (user and system) are compared: BEFORE
is run twice a round, and what its two series differ by is the noise. --same names a file that COMMAND writes, whose bytes
must agree. Exit code 1 for a regression: slower by more than the noise and more than 3 %; 3 where results differ.
"""
import argparse
import hashlib
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


class Build:
    """A commit's sources and build; the working tree is built where it lies."""

    def __init__(self, commit, folder, targets):
        self.name = commit if commit == "." else git("rev-parse", "--short", commit + "^{commit}")
        self.source = ROOT if commit == "." else folder / self.name
        if not self.source.exists():
            git("worktree", "add", "--detach", str(self.source), self.name)
        self.folder = self.source / "build-no-cuda"
        for words in (["--preset", "no-cuda"], ["--build", "--preset", "no-cuda"] + [w for t in targets for w in ("--target", t)]):
            subprocess.run(["cmake", *words], cwd=self.source, check=True, stdout=subprocess.DEVNULL)

    def run(self, command, work):
        """Processor seconds, and digests of the files that must be the same."""
        words = [w.replace("{build}", str(self.folder)).replace("{source}", str(self.source)) for w in command.words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, cwd=work, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds, [hashlib.sha256((work / name).read_bytes()).hexdigest() for name in command.same]


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--target", action="append", default=[], help="what to build (default: all)")
    parser.add_argument("--same", action="append", default=[], help="a file COMMAND writes, whose bytes must agree")
    parser.add_argument("--folder", type=pathlib.Path, help="where sources and builds are kept (default: removed at the end)")
    command = parser.parse_args(words[:at])
    command.words = words[at + 1:]
    if not command.words:
        parser.error("no COMMAND behind --")
    if command.rounds < 3:
        parser.error(f"--rounds {command.rounds}: must be at least 3")
    folder = command.folder or pathlib.Path(tempfile.mkdtemp(prefix="compare-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        builds = [Build(commit, folder.resolve(), command.target) for commit in (command.before, command.after)]
        work = [folder.resolve() / f"work-{i}" for i in range(2)]
        for one in work:
            shutil.rmtree(one, ignore_errors=True)
            one.mkdir()
        series, digests = ([], [], []), set()
        for i in range(command.rounds + 1):  # the first round fills caches and is not counted
            for s, which in enumerate((0, 1, 0)):
                seconds, found = builds[which].run(command, work[which])
                digests.add(tuple(found))
                if i > 0:
                    series[s].append(seconds)
    finally:
        if command.folder is None:
            for commit in (command.before, command.after):
                if commit != ".":
                    path = folder / git("rev-parse", "--short", commit + "^{commit}")
                    subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(path)], capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)
    first, after, again = map(statistics.median, series)
    before = statistics.median(series[0] + series[2])
    noise = abs(first - again) / before
    print(f"{builds[0].name:>12}  {before:.4f} s of the processor, median of {2 * command.rounds}")
    print(f"{builds[1].name:>12}  {after:.4f} s, median of {command.rounds}: {after / before:.3f} times; noise {noise:.1%}")
    if before < 0.05:
        print("the command is too short to compare: what starting takes is most of it")
    if len(digests) > 1:
        print("the results differ")
        return 3
    if after > before * (1 + max(0.03, noise)):
        print("slower: a regression")
        return 1
    print("faster" if after < before * (1 - max(0.03, noise)) else "no difference beyond the noise")
    return 0


sys.exit(main())
