"""Each entry of scripts/mutants.json stands for a fault that can still be made: its file has its line, and the line
what is changed. scripts/mutate.py finds entries by these words, so that one whose line was changed would be
forgotten.

usage: mutants.py CHECKOUT
"""
import json
import os
import sys


def wrong(root, entry):
    missing = [k for k in ("file", "source", "was", "becomes", "reason") if not entry.get(k)]
    if missing:
        return f"has no {missing[0]}"
    path = os.path.join(root, entry["file"])
    if not os.path.exists(path):
        return "no such file"
    with open(path) as file:
        lines = [line.strip() for line in file]
    if entry["source"] not in lines:
        return "no line is " + entry["source"]
    if entry["was"] not in entry["source"]:
        return f"{entry['was']} is not in {entry['source']}"
    return "nothing is changed" if entry["was"] == entry["becomes"] else ""


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "scripts", "mutants.json")) as file:
        entries = json.load(file)
    faults = [(e.get("file"), w) for e in entries for w in [wrong(root, e)] if w]
    seen = [tuple(e.get(k) for k in ("file", "source", "was", "becomes")) for e in entries]
    faults += [(s[0], "twice: " + s[1]) for s in sorted({s for s in seen if seen.count(s) > 1})]
    for file, why in faults:
        print(f"scripts/mutants.json: {file}: {why}")
    print(f"{len(entries)} entries, {len(faults)} at fault")
    return 1 if faults or not entries else 0


sys.exit(main())
