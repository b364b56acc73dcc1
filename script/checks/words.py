# SPDX-License-Identifier: Apache-2.0
"""Finds phrases of words.txt: words.py [--count] FILE...

Of Markdown, prose is read (no code blocks, no `code`); of everything else, comments and string
literals. Each finding is a line `file:line: "phrase": write BETTER`, and the exit status is 1 if there
is any. With --count, only counts are printed, by folder, and the exit status is 0.
"""
import collections
import os
import re
import sys

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n)+")
CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)")
# Comments and string literals of a language; of a string in single quotes, C has one character.
C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

PYTHON_TEXT = re.compile(r'"""(?:.|\n)*?"""|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
LUA_TEXT = re.compile(r'--[^\n]*|"(?:\\.|[^"\\\n])*"')
HASH_TEXT = re.compile(r'(?:^|(?<=\s))#[^\n]*|"(?:\\.|[^"\\\n])*"', re.M)


def phrases():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, better = line.rstrip("\n").split(" => ")
                # A phrase may break over two lines, in a comment with its star.
                pattern = pattern.replace(" ", r"(?:[ ]|[ ]?\n[ *|#-]*)") if "(?" not in pattern else pattern
                yield rf"(?<![\w-])(?:{pattern})(?![\w'])", better


def blank(text):
    """The same number of lines, without a word; no phrase has two spaces in it."""
    return re.sub(r"[^\n]+", "  ", text)


def prose(text):
    for part in FENCE, INDENTED, CODE:
        text = part.sub(lambda match: blank(match.group()), text)
    return text


def comments_and_strings(text, language):
    """Everything but comments and string literals is blanked."""
    kept, at = [], 0
    for match in language.finditer(text):
        kept.append(blank(text[at:match.start()]))
        words = match.group()
        kept.append(blank(words) if language is C_TEXT and words.startswith("'") else words)
        at = match.end()
    return "".join(kept) + blank(text[at:])


def readable(path, text):
    """What people read of a file; the rest is blanked."""
    name = os.path.basename(path)
    if name.endswith(".md"):
        return prose(text)
    if name.endswith((".c", ".h")):
        return comments_and_strings(text, C_TEXT)
    if name.endswith(".lua"):
        return comments_and_strings(text, LUA_TEXT)
    if name.endswith(".py") or re.match(r"#!.*python", text):
        return comments_and_strings(text, PYTHON_TEXT)
    return comments_and_strings(text, HASH_TEXT)


def findings(path, listed, any_of_them):
    with open(path, encoding="utf-8") as file:
        text = readable(path, file.read())
    if not any_of_them.search(text):
        return
    for pattern, better in listed:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield line, " ".join(match.group().split()), better


def main(arguments):
    only_count = "--count" in arguments
    listed = [(re.compile(pattern, re.I | re.M), better) for pattern, better in phrases()]
    any_of_them = re.compile("|".join(pattern.pattern for pattern, _ in listed), re.I | re.M)
    counts = collections.Counter()
    found = 0
    for path in arguments:
        if path == "--count":
            continue
        for line, phrase, better in sorted(findings(path, listed, any_of_them)):
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
