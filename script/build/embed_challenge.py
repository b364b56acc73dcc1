# SPDX-License-Identifier: Apache-2.0
"""Puts the pages of the challenge into a C source: embed_challenge.py OUTPUT FOLDER

In page.html and refused.html, {{FILE}} becomes the text of that file without comments and
indentation, and other {{words}} stay places that the server fills; {{words:NAME}} is a text of
texts.json, in the reader's language. The Content-Security-Policy names the SHA-256 of each script
and style.
"""
import base64
import hashlib
import json
import os
import re
import sys

HEAD = """/* Made by script/build/embed_challenge.py from src/feature/challenge/server/. */
#include "feature/challenge/server/page.h"

/* Pages are longer than what C11 asks compilers to take. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

"""
PLACE = re.compile(r"\{\{([a-z_.:]+)\}\}")


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


def c_line(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(byte if byte.isascii() else "".join(f"\\{one:03o}" for one in byte.encode())
                         for byte in quoted) + '"'


def c_string(text):
    lines = re.sub(r"\n(?=.)", "\n\0", text).split("\0")
    return "\n".join("     " + c_line(line).replace("\n", "\\n") for line in lines)


def c_part(part):
    kind, _, name = part.upper().rpartition(":")
    return f"    {{WEIR_PAGE_WORDS, WEIR_WORDS_{name}, NULL, 0}},\n" if kind else \
        f"    {{WEIR_PAGE_{name}, 0, NULL, 0}},\n"


def c_parts(name, text):
    parts = []
    for i, part in enumerate(PLACE.split(text)):
        if i % 2:
            parts.append(c_part(part))
        else:
            parts.append(f"    {{WEIR_PAGE_TEXT, 0,\n{c_string(part)},\n     {len(part)}}},\n")
    return (f"const struct weir_page_part weir_{name}_parts[] = {{\n{''.join(parts)}}};\n"
            f"const unsigned weir_{name}_part_count = {len(parts)};\n\n")


def c_texts(folder):
    """The languages and their texts. Each language must have the texts of the first."""
    with open(os.path.join(folder, "texts.json"), encoding="utf-8") as source:
        languages = json.load(source)
    names = set(next(iter(languages.values())))
    for language, texts in languages.items():
        if set(texts) != names or not all(texts.values()):
            sys.exit(f"texts.json: {language} lacks, or has alone: {sorted(set(texts) ^ names)}")
    tags = ", ".join(map(c_line, languages))
    rows = "".join("    {\n" + "".join(f"     [WEIR_WORDS_{name.upper()}] = {c_line(text)},\n"
                                      for name, text in texts.items()) + "    },\n"
                   for texts in languages.values())
    return (f"const char *const weir_challenge_languages[] = {{{tags}}};\n"
            f"const unsigned weir_challenge_language_count = {len(languages)};\n\n"
            f"const char *const weir_challenge_texts[][WEIR_WORDS_COUNT] = {{\n{rows}}};\n"
            f'_Static_assert(WEIR_WORDS_COUNT == {len(names)}, "enum weir_page_words has the names of texts.json");\n\n')


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
        out.write(HEAD + c_texts(folder) + c_parts("challenge", page) + c_parts("refused", refused))
        out.write(f'const char weir_challenge_policy[] =\n    "{policy}";\n')


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
