"""Makes the completions of bash, zsh and fish from what --help prints.

usage: generate.py GNOMON FOLDER
"""
import json
import os
import re
import subprocess
import sys

# Options whose words the command itself tells, when given another.
ASKED = {"operator", "inner", "metric"}
# What may stand after other options, by their name or what the help calls their value; else nothing is known.
VALUES = {
    "assume": "nothing incoherent",
    "values": "distance similarity",
    "precision": "fp32 fp16",
    "scaling": "isometric none",
    "family": "p-stable p-stable-l1 simhash cross-polytope bit-sampling minhash icws k-means spherical-k-means",
    "bound": "achlioptas gaussian-exact dasgupta-gupta",
    "device": "auto cpu cuda",
    "comm": "mpi mpich openmpi",
    "progress": "auto always never",
    "order": "C F",
    "delimiter": "tab comma semicolon space",
    "TYPE": "f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8",
}
FILES = {"OUT", "FILE"}
FORMATS = []  # as gnomon info tells of them


class Option:
    def __init__(self, letter, names, value, text, asked):
        self.letter, self.value, self.text = letter, value, text
        self.names = names.replace("--", "").split(", ") if names else []
        name = self.names[0] if names else ""
        # the first words of the help, as far as they explain
        self.short = re.split(r"(?<=\w)[;:] | \(| = ", text)[0].strip()
        if len(self.short) < 12:
            self.short = text
        self.words = asked or VALUES.get(name) or VALUES.get(value, "")
        if value == "FORMAT":
            self.words = " ".join(one["format"] for one in FORMATS if name == "format" or one["writes"])
        self.is_file = value in FILES

    def spellings(self):
        return (["-" + self.letter] if self.letter else []) + ["--" + name for name in self.names]


def help_of(gnomon, *words):
    return subprocess.run([gnomon, *words], capture_output=True, text=True, check=True).stdout


def words_of(gnomon, verb, name):
    told = subprocess.run([gnomon, *verb.split(), f"--{name}", "?"], capture_output=True, text=True).stderr
    return re.search(r"must be one of (.*)", told)[1].replace(",", "")


def options_of(gnomon, verb):
    text = help_of(gnomon, *verb.split(), "--help").split("\nExamples:\n")[0]
    found = re.findall(r"^(?=  -|      --)  (?:-(\w))?(?:, |    )?(--[a-z][a-z-]*(?:, --[a-z][a-z-]*)*)?(?: (\S+))?"
                       r"(?:  +|\n +)(\S.*(?:\n {26}\S.*)*)", text, re.M)
    return [Option(letter, names, value, " ".join(body.split()),
                   words_of(gnomon, verb, names[2:]) if names[2:] in ASKED else "")
            for letter, names, value, body in found]


def first_words(verbs):
    """What may follow 'gnomon', and of verbs of two words what may follow the first."""
    first = list(dict.fromkeys(verb.split()[0] for verb in verbs))
    second = {word: [verb.split()[1] for verb in verbs if verb.startswith(word + " ")] for word in first}
    return first, {word: after for word, after in second.items() if after}


def bash(verbs):
    first, second = first_words(verbs)
    lines = ["# bash completion for gnomon; made by generate.py", "",
             "_gnomon() {",
             "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}",
             "    local options= words=",
             "    COMPREPLY=()",
             "    if [ \"$COMP_CWORD\" -eq 1 ]; then",
             f"        mapfile -t COMPREPLY < <(compgen -W \"{' '.join(first)} help --help --version\" -- \"$current\")",
             "        return",
             "    fi"]
    for word, after in second.items():
        lines += [f"    if [ \"$verb\" = {word} ]; then",
                  "        if [ \"$COMP_CWORD\" -eq 2 ]; then",
                  f"            mapfile -t COMPREPLY < <(compgen -W \"{' '.join(after)} --help\" -- \"$current\")",
                  "            return",
                  "        fi",
                  f"        verb=\"{word} ${{COMP_WORDS[2]}}\"",
                  "    fi"]
    lines += ["    # --name=value comes as three words",
             "    if [ \"$current\" = = ]; then",
             "        current=",
             "    elif [ \"$before\" = = ]; then",
             "        before=${COMP_WORDS[COMP_CWORD - 2]}",
             "    fi",
             "    case $verb in"]
    for verb, (_, options) in verbs.items():
        lines.append(f"    '{verb}')" if " " in verb else f"    {verb})")
        names = [s for option in options for s in option.spellings()]
        lines.append(f"        options=\"{' '.join(names)}\"")
        lines.append("        case $before in")
        for option in options:
            if not option.value:
                continue
            pattern = " | ".join(option.spellings())
            if option.is_file:
                lines.append(f"        {pattern}) words=FILES ;;")
            else:
                lines.append(f"        {pattern}) words=\"{option.words or 'NONE'}\" ;;")
        lines += ["        esac", "        ;;"]
    lines += [f"    help) [ \"$COMP_CWORD\" -eq 2 ] && options=\"{' '.join(first)}\" words=\"{' '.join(first)}\" ;;",
              "    esac",
              "    case $words in",
              "    NONE) ;;",
              "    FILES) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;",
              "    '')",
              "        if [[ $current == -* ]]; then",
              "            mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")",
              "        else",
              "            compopt -o filenames",
              "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")",
              "        fi",
              "        ;;",
              "    *) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\") ;;",
              "    esac",
              "}",
              "complete -F _gnomon gnomon"]
    return "\n".join(lines) + "\n"


def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh(verbs, abouts):
    first, second = first_words(verbs)
    lines = ["#compdef gnomon", "# made by generate.py", "",
             "_gnomon() {",
             "    local -a verbs",
             "    verbs=("]
    lines += [f"        '{verb}:{zsh_text(abouts[verb])}'" for verb in first]
    lines += ["        'help:the options and examples of a verb'",
              "    )",
              "    if (( CURRENT == 2 )); then",
              "        _describe verb verbs",
              "        _arguments '--help[all verbs]' '--version[the version]'",
              "        return",
              "    fi",
              "    local verb=$words[2]",
              "    shift words",
              "    (( CURRENT-- ))"]
    for word in second:
        lines += [f"    if [[ $verb == {word} ]]; then",
                  "        local -a own",
                  "        own=("]
        lines += [f"            '{verb.split()[1]}:{zsh_text(verbs[verb][0])}'"
                  for verb in verbs if verb.startswith(word + " ")]
        lines += ["        )",
                  "        if (( CURRENT == 2 )); then",
                  "            _describe verb own",
                  "            return",
                  "        fi",
                  f"        verb=\"{word} $words[2]\"",
                  "        shift words",
                  "        (( CURRENT-- ))",
                  "    fi"]
    lines += ["    case $verb in"]
    for verb, (_, options) in verbs.items():
        lines.append(f"    '{verb}')" if " " in verb else f"    {verb})")
        lines.append("        _arguments \\")
        for option in options:
            action = ""
            if option.value:
                known = "_files" if option.is_file else f"({option.words})" if option.words else " "
                action = f":{option.value.replace(':', ' to ')}:{known}"
            for spelling in option.spellings():
                tail = "=" if action and spelling.startswith("--") else ""
                lines.append(f"            '{spelling}{tail}[{zsh_text(option.short)}]{action}' \\")
        lines += ["            '*:file:_files'", "        ;;"]
    lines += ["    help) _describe verb verbs ;;", "    esac", "}", "", "_gnomon \"$@\""]
    return "\n".join(lines) + "\n"


def fish_text(text):
    """In single quotes."""
    return text.replace("'", "\\'")


def fish(verbs, abouts):
    first, second = first_words(verbs)
    names = " ".join(first)
    lines = ["# fish completion for gnomon; made by generate.py", "",
             f"set -l verbs {names} help",
             "complete -c gnomon -n \"not __fish_seen_subcommand_from $verbs\" -f",
             "complete -c gnomon -n \"not __fish_seen_subcommand_from $verbs\" -l version -d 'the version'",
             "complete -c gnomon -n \"not __fish_seen_subcommand_from $verbs\" -l help -d 'all verbs'",
             f"complete -c gnomon -n '__fish_seen_subcommand_from help' -f -a '{names}'"]
    lines += [f"complete -c gnomon -n \"not __fish_seen_subcommand_from $verbs\" -a {verb} -d '{fish_text(abouts[verb])}'"
              for verb in first]
    for verb, (about, options) in verbs.items():
        seen = f"__fish_seen_subcommand_from {verb}"
        for word, after in second.items():
            if verb in after:
                seen += f"; and not __fish_seen_subcommand_from {word}"
        if " " in verb:
            word, own = verb.split()
            others = " ".join(second[word])
            lines.append(f"complete -c gnomon -n '__fish_seen_subcommand_from {word}; and not "
                         f"__fish_seen_subcommand_from {others}' -f -a {own} -d '{fish_text(about)}'")
            seen = f"__fish_seen_subcommand_from {word}; and __fish_seen_subcommand_from {own}"
        for option in options:
            line = f"complete -c gnomon -n '{seen}'"
            if option.letter:
                line += f" -s {option.letter}"
            line += "".join(f" -l {name}" for name in option.names)
            if option.value:
                line += " -r" if option.is_file else " -x"
                if option.words:
                    line += f" -a '{option.words}'"
            lines.append(f"{line} -d '{fish_text(option.short)}'")
    return "\n".join(lines) + "\n"


def main(gnomon, folder):
    def listed(*words):
        text = help_of(gnomon, *words, "--help").split("Verbs:\n")
        return re.findall(r"^  (\w+)  +(\S.*)$", text[1].split("\n\n")[0], re.M) if len(text) > 1 else []

    FORMATS.extend(json.loads(help_of(gnomon, "info", "--json"))["formats"])
    abouts = dict(listed())
    verbs = {}
    for verb, about in abouts.items():
        for own, text in listed(verb) or [("", about)]:
            name = f"{verb} {own}".strip()
            verbs[name] = (text, options_of(gnomon, name))
    for verb, (_, options) in verbs.items():
        names = [name for option in options for name in option.names]
        assert "help" in names and "json" in names and len(names) > 6, (verb, names)
    os.makedirs(folder, exist_ok=True)
    made = {"gnomon.bash": bash(verbs), "_gnomon": zsh(verbs, abouts), "gnomon.fish": fish(verbs, abouts)}
    for name, text in made.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


main(*sys.argv[1:])
