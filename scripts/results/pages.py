"""What the scripts that make docs/results/ share: the records in bench/records/, tables, plots."""
import json
import math
import pathlib
import re
import subprocess
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORDS, PAGES = ROOT / "bench" / "records", ROOT / "docs" / "results"
GNUPLOT = """set terminal svg size 720,440 dynamic font 'sans,12' background '#ffffff'
set output '{svg}'
set title '{title}'
set xlabel '{x}'
set ylabel '{y}'
set key {key}
set grid lc rgb '#dddddd'
{more}
plot {curves}
"""
pages, plots = {}, []


def load(name):
    path = RECORDS / name
    return json.loads(path.read_text()) if path.exists() else None


def records(*keys):
    """All JSON objects below bench/records/ that have these keys, with their paths."""
    found = []
    for path in sorted(RECORDS.rglob("*.json")):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and all(key in content for key in keys):
            found.append((path, content))
    return found


def gpu_records():
    """{GPU: {program: what its --json wrote}}, the programs of bench/gpu/; of two files of one program and GPU the
    last by name."""
    found = {}
    for _, content in records("program", "gpu", "results"):
        found.setdefault(content["gpu"], {})[content["program"]] = content
    return found


def between(text, name, body):
    """text with body between the marks of that name, which a page that is written by hand has."""
    begin, end = f"<!-- {name}: made by make results -->\n", f"<!-- {name}: end -->\n"
    if begin not in text:
        return text
    head, rest = text.split(begin)
    return head + begin + body + end + rest.split(end)[1]


def wrapped(text, width=120):
    """Markdown text whose prose keeps to the width: paragraphs and list items with a longer line are filled anew.
    Tables, headings, pictures and code stay as they are."""
    out, block, code = [], [], False

    def end():
        if any(len(line) > width for line in block):
            first = re.match(r"\s*(?:[-*+] |\d+[.)] )?", block[0]).group()
            # what would begin a list, a heading or a quotation at a line's begin is kept beside the word before it
            words = re.sub(r" (?=(?:[-+*#]|\d+[.)])(?: |$)|[|>])", "\0", " ".join(line.strip() for line in block))
            block[:] = textwrap.fill(words, width, initial_indent=" " * (len(first) - len(first.lstrip())),
                                     subsequent_indent=" " * len(first), break_long_words=False,
                                     break_on_hyphens=False).replace("\0", " ").split("\n")
        out.extend(block)
        block.clear()

    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        row = re.fullmatch(r"\s*\|.*\|\s*", line)
        indented = not block and line.startswith("    ")
        if fence or code or row or indented or not line.strip() or line.lstrip().startswith(("#", "![", "<")):
            end()
            out.append(line)
            code ^= fence
        else:
            if re.match(r"\s*(?:[-*+]|\d+[.)]) ", line):
                end()
            block.append(line)
    end()
    return "\n".join(out)


def slug(name):
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def table(head, rows):
    return ("| " + " | ".join(head) + " |\n|" + "---|" * len(head) + "\n" +
            "".join("| " + " | ".join(map(str, row)) + " |\n" for row in rows))


def ms(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 10 else f"{1e3 * seconds:.0f}"


def power(n):
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 and n >= 1024 else f"{n:,}"


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def plot(name, title, x, y, curves, more="set logscale xy", key="outside right"):
    """curves: (title, style, [(x, y)...])"""
    plots.append((name, title, x, y, [c for c in curves if c[2]], more, key))
    return f"![{title}](figures/{name}.svg)\n"


def draw():
    for name, title, x, y, curves, more, key in plots:
        with tempfile.TemporaryDirectory() as work:
            words = []
            for i, (what, style, data) in enumerate(curves):
                path = f"{work}/{i}"
                pathlib.Path(path).write_text("".join(" ".join(f"{v:.6g}" for v in row) + "\n" for row in data))
                words.append(f"'{path}' {style} title '{what}'")
            subprocess.run(["gnuplot"], check=True, text=True, input=GNUPLOT.format(
                svg=PAGES / "figures" / f"{name}.svg", title=title, x=x, y=y, key=key, more=more, curves=", ".join(words)))
