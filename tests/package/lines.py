"""Fails when a line of Markdown prose is longer than 120 characters. Tables, code, headings, pictures and what has no
place to break, such as a long link, are left out; so is CHANGELOG.md, which has a line an entry.

usage: lines.py SOURCE
"""
import pathlib
import re
import sys

WIDTH = 120
source = pathlib.Path(sys.argv[1])
pages = [page for folder in ("docs", "bench", "data", "examples", "bindings", "tests") for page in sorted((source / folder).rglob("*.md"))]
pages += [page for page in sorted(source.glob("*.md")) if page.name != "CHANGELOG.md"]
if len(pages) < 30:
    sys.exit(f"{len(pages)} pages below {source}: is that the source?")
found = 0
for page in pages:
    code = indented = blank = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        words = line.strip()
        indented = line.startswith("    ") and (blank or indented)
        blank = words == ""
        if words.startswith("```"):
            code = not code
        elif code or indented or len(line) <= WIDTH or re.fullmatch(r"\|.*\||#.*|!\[.*", words):
            continue
        elif " " in re.sub(r"^([-*+]|\d+[.)]) ", "", words):
            print(f"{page.relative_to(source)}:{number}: {len(line)} characters, at most {WIDTH}")
            found += 1
sys.exit(1 if found else 0)
