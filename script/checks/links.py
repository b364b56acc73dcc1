# SPDX-License-Identifier: Apache-2.0
"""Checks that what Markdown files link to, or name, exists: links.py FILE...

Relative links must name a file or folder of the repository, and a #fragment a heading of the file
that it points into. Links to other sites are left alone: lint needs no network. `src/a.c` in
backticks must exist, and `WEIR_A_MAX` must appear in src/, include/, script/ or bench/. NAME, < and *
stand for something.
"""
import os
import re
import sys

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
PATH = re.compile(r"`((?:src|include|tests|script|bench|examples|packaging|docs)/[^`\s:]*)")
CONSTANT = re.compile(r"`((?:WEIR|REDIS|RULES)_[A-Z0-9_]*[A-Z0-9])`")
SOURCES = ("src", "include", "script", "bench")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(path):
    """As GitHub makes them: lower case, punctuation dropped, spaces to hyphens."""
    names = set()
    for heading in HEADING.findall(FENCE.sub("", read(path))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        names.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return names


def source_words():
    words = set()
    for folder, _, files in (entry for source in SOURCES for entry in os.walk(source)):
        for file in files:
            with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as source:
                words.update(re.findall(r"[A-Z][A-Z0-9_]+", source.read()))
    return words


def misnamed(path, text, words):
    """What a document names in backticks and is not there; environment variables are in src/ too."""
    for name in PATH.findall(FENCE.sub("", text)):
        if not re.search(r"NAME|[<*]", name) and not os.path.exists(name):
            yield f"{path}: `{name}` does not exist"
    for name in CONSTANT.findall(FENCE.sub("", text)):
        if name not in words:
            yield f"{path}: `{name}` is not in {', '.join(SOURCES)}"


def main(paths):
    bad = 0
    words = source_words()
    for path in paths:
        for problem in misnamed(path, read(path), words):
            print(problem)
            bad += 1
        text = CODE.sub("", FENCE.sub("", read(path)))
        for match in LINK.finditer(text):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            name, _, fragment = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(file):
                print(f"{path}: {target} does not exist")
                bad += 1
            elif fragment and file.endswith(".md") and fragment not in anchors(file):
                print(f"{path}: {file} has no heading #{fragment}")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
