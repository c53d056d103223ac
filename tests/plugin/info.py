"""gnomon info lists the devices of every plugin that is found, in words and as JSON.

usage: info.py GNOMON PLUGINS
"""
import json
import os
import subprocess
import sys

gnomon, plugins = sys.argv[1:]


def info(folder, *words):
    environment = {**os.environ, "GNOMON_PLUGIN_DIR": f"{plugins}/{folder}"}
    return subprocess.run([gnomon, "info", *words], env=environment, check=True, capture_output=True, text=True).stdout


for folder, kinds in (("two", ["cuda", "second"]), ("good", ["cuda"]), ("declines", []), ("none", [])):
    figures, lines = json.loads(info(folder, "--json")), info(folder).split("\n")
    assert figures["devices"] == ["cpu", *kinds], figures["devices"]
    # the plugins of the test have a device of every index
    assert len(figures["gpus"]) == 64 * len(kinds), len(figures["gpus"])
    assert any(line.split() == ["devices", *", ".join(["cpu", *kinds]).split()] for line in lines), lines
    for kind in kinds:
        assert f"{kind}:3".ljust(16) + " test device 3" in lines, lines
