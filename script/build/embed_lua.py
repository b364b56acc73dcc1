# SPDX-License-Identifier: Apache-2.0
"""Puts Lua scripts together and into a C source: embed_lua.py OUTPUT FOLDER NAME:PART,PART...

Each script is the named files of the folder in order, without comments and indentation (Redis keeps
the text, and it is loaded after every restart), with the SHA-1 that EVALSHA calls it by. A part
FUNCTION@KIND/KIND=FILE+FILE makes them the body of a local function. A line "--% include FILE" stands
for the lines of another file, and "--% kinds" for the choice of a function by `kind`, the first byte of
a state: one that names no kind (FUNCTION=FILE) is for all others. KIND_LAST is the largest of all
kinds. A script whose NAME begins with "!" is in no list: its user names it.
"""
import hashlib
import os
import sys

HEAD = """/* Made by script/build/embed_lua.py from src/store/redis/lua/ *.lua. */
#include "store/redis/script/texts.h"

#include "store/redis/script/script.h"

/* Scripts are longer than what C11 asks compilers to take. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

"""


INCLUDE = "--% include "
KINDS = "--% kinds"


def file_lines(folder, name):
    with open(os.path.join(folder, name + ".lua"), encoding="ascii") as source:
        for line in map(str.strip, source):
            if line.startswith(INCLUDE):
                yield from file_lines(folder, line[len(INCLUDE):])
            elif line == KINDS or line and not line.startswith("--"):
                yield line


def choice(functions):
    """Lua that calls the function of a kind; `functions` are (name, kinds), the last without kinds."""
    word = "if"
    for name, kinds in functions[:-1]:
        yield f"{word} " + " or ".join(f"kind == 0x{kind}" for kind in kinds) + " then"
        yield f"{name}()"
        word = "elseif"
    assert functions and not functions[-1][1], "the last function is for all other kinds"
    yield from ("else", f"{functions[-1][0]}()", "end")


def last_kind(scripts):
    """The largest kind that any part of a script names."""
    parts = [part for script in scripts for part in script.split(":")[1].split(",")]
    return max(kind for part in parts if "@" in part for kind in part.partition("@")[2].partition("=")[0].split("/"))


def script_text(folder, parts, last):
    lines, functions = [], []
    for part in parts:
        function, _, files = part.rpartition("=")
        function, _, kinds = function.partition("@")
        if function:
            functions.append((function, kinds.split("/") if kinds else []))
            lines.append(f"local function {function}()")
        for name in files.split("+"):
            for line in file_lines(folder, name):
                lines += choice(functions) if line == KINDS else [line.replace("KIND_LAST", f"0x{last}")]
        if function:
            lines.append("end")
    return "".join(line + "\n" for line in lines)


def c_string(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'    "{line}\\n"' for line in quoted.splitlines())


def main(output, folder, scripts):
    parts, names = [HEAD], []
    last = last_kind(scripts)
    for script in scripts:
        name, made_of = script.lstrip("!").split(":")
        text = script_text(folder, made_of.split(","), last)
        sha = hashlib.sha1(text.encode()).hexdigest()
        if not script.startswith("!"):
            names.append(name)
        parts.append(f"static const char {name}_text[] =\n{c_string(text)};\n"
                     f"const struct redis_script redis_script_{name} = {{\n"
                     f'    "{name}", {name}_text, sizeof {name}_text - 1, "{sha}"}};\n\n')
    listed = "".join(f"    &redis_script_{name},\n" for name in names)
    parts.append(f"const struct redis_script *const redis_scripts[] = {{\n{listed}}};\n"
                 f"const unsigned redis_script_count = {len(names)};\n")
    with open(output, "w", encoding="ascii") as out:
        out.write("".join(parts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
