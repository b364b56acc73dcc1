# SPDX-License-Identifier: Apache-2.0
"""Markdown as the documentation writes it, to man(7).

Headings, paragraphs, lists, tables (the first column becomes a tag), code blocks, code, bold and links. Links lose
their address, since a manual page has no other pages beside it.
"""

import re


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    text = text.replace("`", "\\(ga").replace("\u2026", "...").replace("\u2013", "\\-")
    text = text.replace("\u00d7", "x").replace("\u2265", ">=").replace("\u2264", "<=")
    text = text.replace("\u2192", "\\->").replace("\u00b5", "u").replace("\u2245", "~")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return "\\&" + text if text[:1] in (".", "'") else text


def inline(text):
    """One line of prose: code and bold in bold, links by their words, the rest escaped."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"(``[^`]*(?:`[^`]+)*``|`[^`]*`|\*\*[^*]+\*\*)", text)
    out = []
    for part in parts:
        if part.startswith("`") and len(part) > 1:
            out.append("\\fB" + escape(part.strip("`").strip()) + "\\fR")
        elif part.startswith("**"):
            out.append("\\fB" + escape(part[2:-2]) + "\\fR")
        elif part:
            out.append(escape(part))
    line = "".join(out)
    return "\\&" + line if line[:1] in (".", "'") else line


def prose(lines):
    """A paragraph, one sentence a line, as man(7) wants it."""
    text = inline(" ".join(line.strip() for line in lines))
    sentences = re.sub(r"(?<=[a-z0-9)])(\\fR)?([.!?]) (?=[A-Z])", r"\1\2\n", text).split("\n")
    return ["\\&" + line if line[:1] in (".", "'") else line for line in sentences]


def cells(row):
    row = row.strip().strip("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def table(rows):
    """Each row: its first cell as a tag, the others as text; the head's names where there are several."""
    head, out = cells(rows[0]), []
    for row in rows[2:]:
        values = cells(row)
        out += [".TP", inline(values[0]) or "\\&"]
        rest = [(name, value) for name, value in zip(head[1:], values[1:]) if value]
        if not rest:
            out.append("\\&")
        for i, (name, value) in enumerate(rest):
            named = len(head) > 2 and i > 0 and name
            out += ([".br"] if i else []) + prose([f"{name}: {value}" if named else value])
    return out + [".PP"]


def code(lines):
    return [".PP", ".RS 4", ".nf"] + [escape(line) for line in lines] + [".fi", ".RE", ".PP"]


def items(lines):
    out, item = [], []
    for line in lines + ["- "]:
        start = re.match(r"^(?:[-*]|\d+\.) +(.*)", line)
        if not start:
            item.append(line)
            continue
        if item:
            out += [".IP \\(bu 2"] + prose(item)
        item = [start.group(1)]
    return out + [".PP"]


def blocks(lines):
    """(kind, lines) for each block of a document."""
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("```"):
            end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith("```"))
            yield "code", lines[i + 1:end]
            i = end + 1
            continue
        if re.match(r"^#+ ", line):
            yield "heading", [line]
            i += 1
            continue
        if not line.strip() or re.fullmatch("<!--.*-->", line):
            i += 1
            continue
        kind = "table" if line.startswith("|") else \
            "list" if re.match(r"^(?:[-*]|\d+\.) ", line) else "prose"
        end = i
        while end < len(lines) and lines[end].strip() and not lines[end].startswith("```") and \
                (kind == "list" or not re.match(r"^(?:#+|[-*]|\d+\.) ", lines[end]) or end == i):
            end += 1
        yield kind, lines[i:end]
        i = end


def roff(markdown, top):
    """man(7) of a text whose headings of level `top` are sections, and deeper ones subsections."""
    out, fresh = [], True
    for kind, lines in blocks(markdown.splitlines()):
        if kind == "heading":
            marks, title = lines[0].split(" ", 1)
            title = inline(title).replace('"', "\\(dq")
            name = f'.SH "{title.upper()}"' if len(marks) <= top else f'.SS "{title}"'
            if "\\f" in title:
                name = f'.SH "{title}"' if len(marks) <= top else f'.SS "{title}"'
            out.append(name)
            fresh = True
            continue
        if kind == "prose":
            if lines[0].startswith("!["):
                continue
            out += ([] if fresh else [".PP"]) + prose(lines)
        else:
            out += {"code": code, "table": table, "list": items}[kind](lines)
        fresh = False
    return tidy(out)


def tidy(lines):
    """Without .PP before another block or at the end of one, which mandoc takes for mistakes."""
    out = []
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ".SH"
        if line == ".PP" and re.match(r"^\.(PP|SH|SS|TP|IP)", following):
            continue
        if line == ".PP" and (not out or re.match(r"^\.S[HS]", out[-1])):
            continue
        if line != "":
            out.append(line)
    return out


def section(markdown, heading):
    """The text below the heading that begins with these words, up to the next of its level."""
    lines, out, level, in_code = markdown.splitlines(), [], 0, False
    for line in lines:
        in_code ^= line.startswith("```")
        found = None if in_code else re.match(r"^(#+) (.*)", line)
        if found and level and len(found.group(1)) <= level:
            break
        if level:
            out.append(line)
        elif found and re.match(re.escape(heading) + r"\b", found.group(2)):
            level = len(found.group(1))
    if not level:
        raise SystemExit(f"no heading '{heading}'")
    return "\n".join(out), level
