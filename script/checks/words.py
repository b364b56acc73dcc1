# SPDX-License-Identifier: Apache-2.0
"""Finds phrases of words.txt: words.py [--src] FILE...

Of Markdown, prose is read (no code blocks, no `code`); of C, comments and string literals. Each
finding is a line `file:line: "phrase": write BETTER`. With --src, only counts are printed, by folder,
and the exit status is 0: for code that is not clean yet.
"""
import collections
import os
import re
import sys

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n)+")
CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)")
C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def phrases():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, better = line.rstrip("\n").split(" => ")
                # A phrase may break over two lines, in a comment with its star.
                pattern = pattern.replace(" ", r"(?:[ ]|[ ]?\n[ *|]*)") if "(?" not in pattern else pattern
                yield re.compile(rf"(?<![\w-])(?:{pattern})(?![\w'])", re.I | re.M), better


def blank(text):
    """The same number of lines, without a word."""
    return re.sub(r"[^\n]", " ", text)


def prose(text):
    for part in FENCE, INDENTED, CODE:
        text = part.sub(lambda match: blank(match.group()), text)
    return text


def comments_and_strings(text):
    """Everything but comments and string literals is blanked."""
    kept, at = [], 0
    for match in C_TEXT.finditer(text):
        kept.append(blank(text[at:match.start()]))
        words = match.group()
        kept.append(blank(words) if words.startswith("'") else words)
        at = match.end()
    return "".join(kept) + blank(text[at:])


def findings(path, listed):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = prose(text) if path.endswith(".md") else comments_and_strings(text)
    for pattern, better in listed:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield line, " ".join(match.group().split()), better


def main(arguments):
    only_count = "--src" in arguments
    listed = list(phrases())
    counts = collections.Counter()
    found = 0
    for path in arguments:
        if path == "--src":
            continue
        for line, phrase, better in sorted(findings(path, listed)):
            found += 1
            counts[os.path.dirname(path)] += 1
            if not only_count:
                print(f'{path}:{line}: "{phrase}": write {better}')
    if only_count:
        for folder, count in sorted(counts.items()):
            print(f"{count:5} {folder}")
        print(f"{found:5} in all")
        return 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
