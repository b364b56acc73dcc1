# SPDX-License-Identifier: Apache-2.0
"""Checks that conditions test pointers as `p` and `!p`: nulls.py FILE...

Where a comparison with NULL is a number (an operand of arithmetic, of another comparison, of
`__builtin_expect`), it stays written out.
"""
import re
import sys

COMPARISON = re.compile(r"\s*[!=]= NULL\b")
OPENING = {")": "(", "]": "["}


def blanked(text):
    """The text without comments and literals, of the same length."""
    literal = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(literal, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def bracket(text, at):
    """Where the bracket begins that text[at] closes."""
    wanted = []
    while at >= 0:
        if text[at] in OPENING:
            wanted.append(OPENING[text[at]])
        elif wanted and text[at] == wanted[-1]:
            wanted.pop()
            if not wanted:
                return at
        at -= 1
    return 0


def operand(text, at):
    """Where the postfix expression begins that ends before `at`."""
    while True:
        closing = text[at - 1]
        if closing in OPENING:
            at = bracket(text, at - 1)
            if closing == ")" and not re.search(r"[\w)\]]$", text[:at]):
                return at
            continue
        word = re.search(r"\w+$", text[:at])
        if not word:
            return at
        at = word.start()
        link = re.search(r"(->|\.)$", text[:at])
        if not link:
            return at - len(re.search(r"\**$", text[:at])[0])
        at = link.start()


def is_condition(before, after):
    grouping = before.endswith("(") and after.startswith(")")
    if before.endswith("__builtin_expect(") or (grouping and not re.search(r"\w\s*$", before[:-1])):
        return False
    begins = before.endswith(("(", "&&", "||", "!")) or re.search(r"(\breturn|[;{])$", before)
    return bool(begins) and after.startswith((")", "&&", "||", "?", ";"))


def main(paths):
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = blanked(file.read())
        for found in COMPARISON.finditer(text):
            start = operand(text, found.start())
            if is_condition(text[:start].rstrip(), text[found.end():].lstrip()):
                line = text.count("\n", 0, found.end()) + 1
                print(f"{path}:{line}: write the pointer itself, or !, instead of a comparison with NULL")
                bad += 1
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
