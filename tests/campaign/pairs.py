"""Class 'options': pairs of options of every verb, drawn by the seed (tests/cli/option-pairs.py, which runs a process a
core by itself)."""
import os
import re
import subprocess
import sys

from kit import Result

EACH = 100


def run(campaign, _):
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli", "option-pairs.py")
    number = 0
    while number == 0 or not campaign.over() and (campaign.limit is None or number < campaign.limit):
        seed = campaign.seed * 1000003 + number
        line = [sys.executable, script, campaign.command, "-", f"{campaign.work}/run/options", str(seed), str(EACH)]
        said = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True)
        words = said.stdout.decode(errors="replace")
        tried = re.match(r"(\d+) commands", words)
        with campaign.lock:
            kinds = campaign.tried.setdefault("options", {})
            kinds["commands"] = kinds.get("commands", 0) + (int(tried.group(1)) if tried else 0)
        if said.returncode != 0:
            campaign.violate("options", f"seed {seed}", "a pair at fault", line, None, seed,
                             Result(said.returncode, said.stdout, said.stdout + said.stderr, 0.0))
        number += 1
