"""The n-grams of texts by docs/reference/formats.md, in Python alone, against the library's; normal forms and case
folding are unicodedata's and str.casefold's. Every character that Python's version of Unicode assigns is tried alone and
between letters, and strings of marks, Hangul and ligatures drawn at random. Then a signature file of the command.

usage: check_ngrams.py DUMP GNOMON [plain]      plain: the library was built without utf8proc"""
import functools
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

DUMP, GNOMON = sys.argv[1:3]
PLAIN = "plain" in sys.argv
MASK = (1 << 64) - 1
BASE, WORD = 0x9E3779B97F4A7C17, 0xD6E8FEB86659FD93
SPACE = " \t\n\v\f\r\0"


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


@functools.lru_cache(1 << 16)
def word_hash(word):
    value = 0
    whole = len(word) // 8 * 8
    for at in range(0, whole, 8):
        value = mix(value + int.from_bytes(word[at:at + 8], "big") & MASK) * WORD & MASK
    return mix(value + int.from_bytes(word[whole:], "big") + len(word) * WORD & MASK)


@functools.lru_cache(1 << 16)
def character_hash(character):
    return mix(int.from_bytes(character.encode(), "big") + BASE & MASK)


def normal(text, lower, punctuation, form):
    def one(text):
        return unicodedata.normalize(("", "NFC", "NFKC")[form], text) if form else text
    text = one(text)
    if lower == 2:
        text = one(text.casefold())
    if punctuation == 2:
        text = "".join(" " if c >= "\x80" and (unicodedata.category(c)[0] in "PSZ" or unicodedata.category(c) == "Cc") else c
                       for c in text)
    if lower:
        text = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
    return text


def between(c, punctuation):
    """Whether a character separates words."""
    return c in SPACE or c < "\x80" and punctuation != 1 and not c.isalnum()


def ngrams(text, size, characters, lower, punctuation, form):
    runs, run = [], ""
    for c in normal(text, lower, punctuation, form) + " ":
        if not between(c, punctuation):
            run += c
        elif run:
            runs.append(run)
            run = ""
    tokens = [character_hash(c) for c in " ".join(runs)] if characters else [word_hash(run.encode()) for run in runs]
    made = set()
    for at in range(max(len(tokens) - size + 1, 1 if tokens else 0)):
        value = 0
        for token in tokens[at:at + size]:
            value = (value * BASE + token) & MASK
        made.add(mix(value + (len(tokens) if len(tokens) < size else 0) & MASK))
    return sorted(made)


def compare(what, texts, *options):
    """options: size, characters, lower, punctuation, form"""
    given = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
    out = subprocess.run([DUMP, *map(str, options)], input=given, stdout=subprocess.PIPE, check=True).stdout
    at = wrong = 0
    for text in texts:
        count, = struct.unpack_from("<I", out, at)
        got = list(struct.unpack_from(f"<{count}Q", out, at + 4))
        at += 4 + 8 * count
        if got != ngrams(text, *options):
            wrong += 1
            if wrong <= 5:
                print(what, options, [f"{ord(c):04x}" for c in text[:40]])
    assert at == len(out)
    assert wrong == 0, f"{what} {options}: {wrong} of {len(texts)} texts"


def main():
    draw = random.Random(1)
    alphabet = "abcdefgHIJK  .,-\n\t0129_\u00e9\u0416\u4e2d\0"
    plain = ["".join(draw.choices(alphabet, k=draw.randrange(200))) for _ in range(400)] + ["", " ", "one", "x" * 10000, "a " * 9000]
    for size in (1, 2, 3, 8, 64):
        for characters in (0, 1):
            for lower in (0, 1):
                for punctuation in (0, 1):
                    compare("plain", plain, size, characters, lower, punctuation, 0)
    if PLAIN:
        print("no utf8proc: normal forms are not tried")
        return
    assigned = [chr(c) for c in range(0x80, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    print(len(assigned), "characters of Unicode", unicodedata.unidata_version)
    decomposed = [c for c in assigned if unicodedata.decomposition(c) or c.casefold() != c or unicodedata.combining(c)
                  or unicodedata.category(c)[0] in "MPSZC"]
    # the many letters that nothing happens to are tried by the hundred, all others one by one
    plainer = "".join(sorted(set(assigned) - set(decomposed)))
    for form, lower, punctuation in ((1, 0, 1), (2, 0, 1), (2, 2, 1), (0, 2, 1), (2, 2, 2), (1, 2, 0), (0, 0, 2)):
        compare("alone", decomposed, 64, 1, lower, punctuation, form)
        compare("between", [f"e{c}\u0301a{c}" for c in decomposed], 64, 1, lower, punctuation, form)
        compare("others", [plainer[i:i + 50] for i in range(0, len(plainer), 50)], 64, 1, lower, punctuation, form)
        compare("words", [f"e{c}a{c} b" for c in decomposed], 2, 0, lower, punctuation, form)
    hard = ("\u0301\u0327\u0323\u0308\u0345\u1100\u1161\u11a8\uac00\ufb01\u1e9e\u0130\u03a3\ufdfa\u00bd\u212a\u2126e\u0958\u09c7\u09be"
            "\u0f73\u0f71\u0fb2\u302a\U0001d15e\U0001d165\U0001d16ea b.")
    texts = ["".join(draw.choices(hard, k=draw.randrange(1, 60))) for _ in range(3000)]
    texts += ["".join(draw.choices(hard + "the quick brown fox " * 10, k=20000)) for _ in range(3)]
    for form, lower, punctuation in ((1, 0, 1), (2, 0, 1), (2, 2, 1), (0, 2, 0), (2, 2, 2), (1, 2, 0)):
        compare("hard", texts, 3, 1, lower, punctuation, form)
        compare("hard", texts, 2, 0, lower, punctuation, form)

    with tempfile.TemporaryDirectory() as folder:
        lines = [text.replace("\n", " ").replace("\0", " ") for text in texts if text.strip()]
        with open(f"{folder}/in.txt", "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([GNOMON, "dedup", f"{folder}/in.txt", "--skip-bad", "--quiet", "--normalize", "nfkc", "--fold-case",
                        "--punctuation", "drop-all", "--ngram", "2", "--sign", f"{folder}/sig"], check=True)
        with open(f"{folder}/sig", "rb") as file:
            data = file.read()
    magic, version, flags, size, documents = struct.unpack_from("<8sIIqq", data)
    assert (magic, version, flags, size) == (b"\x89GNMDDS\n", 1, 8 | 16 | 64, 2)
    at = 32
    for _ in range(documents):
        name, text, members = struct.unpack_from("<qqq", data, at)
        line = lines[int(data[at + 24:at + 24 + name].decode().rsplit(":", 1)[1]) - 1]
        at += 24 + name
        assert text == len(line.encode())
        assert list(struct.unpack_from(f"<{members}Q", data, at)) == ngrams(line, 2, 0, 2, 2, 2)
        at += 8 * members
    assert at + 8 == len(data)


main()
