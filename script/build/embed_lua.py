"""Puts Lua scripts together and into a C source: embed_lua.py OUTPUT FOLDER NAME:FILE,FILE...

Each script is the named files of the folder in order, without comments and indentation (Redis keeps
the text, and it is loaded after every restart), with the SHA-1 that EVALSHA calls it by.
"""
import hashlib
import os
import sys

HEAD = """/* Made by script/build/embed_lua.py from src/store/redis/ *.lua. */
#include "store/redis/script_texts.h"

#include "store/redis/script.h"

/* Scripts are longer than what C11 asks compilers to take. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

"""


def script_text(folder, files):
    lines = []
    for name in files:
        with open(os.path.join(folder, name + ".lua"), encoding="ascii") as source:
            lines += [line.strip() for line in source]
    return "".join(line + "\n" for line in lines if line and not line.startswith("--"))


def c_string(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'    "{line}\\n"' for line in quoted.splitlines())


def main(output, folder, scripts):
    parts, names = [HEAD], []
    for script in scripts:
        name, files = script.split(":")
        text = script_text(folder, files.split(","))
        sha = hashlib.sha1(text.encode()).hexdigest()
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
