"""Class 'fuzz': libFuzzer on each reader (preset fuzz), the time shared out equally. New inputs go to a folder of the
campaign's own, beside the tracked corpora, which are read only."""
import os
import subprocess
import time

from kit import Result


def targets(campaign):
    folder = campaign.fuzzers
    if not folder or not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder)
                  if name.startswith("fuzz_") and os.access(f"{folder}/{name}", os.X_OK) and os.path.isfile(f"{folder}/{name}"))


def run(campaign, workers):
    names = targets(campaign)
    corpora = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fuzz", "corpus")
    rounds = -(-len(names) // campaign.jobs)
    share = max(1, int((campaign.stop_at - time.monotonic()) / rounds))

    def case(number, folder):
        if number >= len(names):
            return False
        name = names[number]
        parser = name[len("fuzz_"):]
        found = f"{campaign.work}/corpus/{parser}"
        kept = f"{campaign.kept}/fuzz-{parser}-"
        os.makedirs(found, exist_ok=True)
        os.makedirs(campaign.kept, exist_ok=True)
        line = [f"{campaign.fuzzers}/{name}", f"-max_total_time={share}", "-timeout=25", "-rss_limit_mb=3000",
                "-print_final_stats=1", f"-seed={campaign.seed}", f"-artifact_prefix={kept}", found]
        if os.path.isdir(f"{corpora}/{parser}"):
            line.append(f"{corpora}/{parser}")
        said = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True)
        words = said.stderr.decode(errors="replace")
        runs = [line.split()[-1] for line in words.splitlines() if line.startswith("stat::number_of_executed_units")]
        with campaign.lock:
            campaign.tried.setdefault("fuzz", {})[parser] = int(runs[0]) if runs else 0
        if said.returncode != 0:
            campaign.violate("fuzz", parser, "the target failed", line, None, campaign.seed,
                             Result(said.returncode, b"", said.stderr, 0.0))
        return True

    workers(case)
