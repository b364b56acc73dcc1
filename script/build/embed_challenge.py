# SPDX-License-Identifier: Apache-2.0
"""Puts the pages of the challenge into a C source: embed_challenge.py OUTPUT FOLDER

In page.html and refused.html, {{FILE}} becomes the text of that file without comments and
indentation, and other {{words}} stay places that the server fills. The Content-Security-Policy names
the SHA-256 of each script and style.
"""
import base64
import hashlib
import os
import re
import sys

HEAD = """/* Made by script/build/embed_challenge.py from src/server/challenge/. */
#include "server/challenge/page.h"

/* Pages are longer than what C11 asks compilers to take. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

"""
PLACE = re.compile(r"\{\{([a-z.]+)\}\}")


def short_text(folder, name):
    with open(os.path.join(folder, name), encoding="ascii") as source:
        text = re.sub(r"/\*.*?\*/|<!-- .*? -->", "", source.read(), flags=re.DOTALL)
    return "\n".join(filter(None, map(str.strip, text.splitlines())))


def page_text(folder, name, sources):
    def put(match):
        if "." not in match[1]:
            return match[0]
        sources[match[1]] = short_text(folder, match[1])
        return sources[match[1]]
    return PLACE.sub(put, short_text(folder, name))


def c_string(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'     "{line}"' for line in re.sub(r"\n(?=.)", "\\\\n\n", quoted).split("\n"))


def c_parts(name, text):
    parts = []
    for i, part in enumerate(PLACE.split(text)):
        if i % 2:
            parts.append(f"    {{WEIR_PAGE_{part.upper()}, NULL, 0}},\n")
        else:
            parts.append(f"    {{WEIR_PAGE_TEXT,\n{c_string(part)},\n     {len(part)}}},\n")
    return (f"const struct weir_page_part weir_{name}_parts[] = {{\n{''.join(parts)}}};\n"
            f"const unsigned weir_{name}_part_count = {len(parts)};\n\n")


def sha(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(output, folder):
    sources = {}
    page = page_text(folder, "page.html", sources)
    refused = page_text(folder, "refused.html", sources)
    policy = (f"default-src 'none'; script-src {sha(sources['page.js'])}; "
              f"style-src {sha(sources['page.css'])}; worker-src blob:; form-action 'self'; "
              "base-uri 'none'; frame-ancestors 'none'")
    with open(output, "w", encoding="ascii") as out:
        out.write(HEAD + c_parts("challenge", page) + c_parts("refused", refused))
        out.write(f'const char weir_challenge_policy[] =\n    "{policy}";\n')


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
