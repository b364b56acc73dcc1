# SPDX-License-Identifier: Apache-2.0
"""Makes the files of pages that a build needs.

embed_pages.py module WASM OUTPUT                a JavaScript module whose default export is the WebAssembly
                                                 module, gzipped, in base64: the page fetches nothing
embed_pages.py script FILE OUTPUT                a script without the lines that only comment, which browsers
                                                 would fetch for nothing; the first line stays. It fails
                                                 where such a line may be in a template literal
embed_pages.py server HEADER OUTPUT [FILE...]    a C source with the files, for the admin listener: the
                                                 table weir_NAME_files, where HEADER is …/NAME.h
"""
import base64
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# Array members a line.
LINE = 24


def write_module(wasm, output):
    with open(wasm, "rb") as source:
        text = base64.b64encode(gzip.compress(source.read(), 9, mtime=0)).decode("ascii")
    with open(output, "w", encoding="ascii") as out:
        out.write("// SPDX-License-Identifier: Apache-2.0\n"
                  f"// {os.path.basename(wasm)}: C of src and playground for wasm32, made by the build.\n"
                  f'export default "{text}";\n')


def write_script(source, output):
    with open(source, encoding="utf-8") as file:
        lines = file.readlines()
    kept, backticks = lines[:1], lines[0].count("`")
    for number, line in enumerate(lines[1:], 2):
        if not line.lstrip().startswith("//"):
            kept.append(line)
            backticks += line.count("`")
        elif backticks % 2 == 1:  # within a template literal it is text and no comment
            sys.exit(f"{source}:{number}: begins with // behind an odd number of backticks")
    with open(output, "w", encoding="utf-8") as out:
        out.writelines(kept)


def c_bytes(data):
    lines = (data[i:i + LINE] for i in range(0, len(data), LINE))
    return ",\n".join("    " + ", ".join((str(byte - 256 * (byte > 127)) for byte in line)) for line in lines)


def write_server(header, output, files):
    parts, rows = [], []
    for i, path in enumerate(files):
        with open(path, "rb") as source:
            data = source.read()
        name = os.path.basename(path)
        packed = gzip.compress(data, 9, mtime=0)
        shorter = len(packed) < len(data)
        parts.append(f"static const char file_{i}[] = {{\n{c_bytes(data)}}};\n")
        if shorter:
            parts.append(f"static const char packed_{i}[] = {{\n{c_bytes(packed)}}};\n")
        rows.append(f'    {{"{name}", "{TYPES[os.path.splitext(name)[1]]}", "{hashlib.sha256(data).hexdigest()[:16]}",\n'
                    f'     file_{i}, {len(data)}, {f"packed_{i}, {len(packed)}" if shorter else "NULL, 0"}}},\n')
    table = f"weir_{os.path.splitext(os.path.basename(header))[0]}_files"
    with open(output, "w", encoding="ascii") as out:
        out.write("/* Made by script/build/embed_pages.py. */\n"
                  f'#include "{header}"\n\n')
        out.write("\n".join(parts))
        out.write("\nstatic const struct weir_page_file files[] = {\n"
                  f"{''.join(rows)}    {{0}},\n}};\n"
                  f"const struct weir_page_files {table} = {{files, {len(files)}}};\n")


if __name__ == "__main__":
    if sys.argv[1] == "module":
        write_module(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "script":
        write_script(sys.argv[2], sys.argv[3])
    else:
        write_server(sys.argv[2], sys.argv[3], sys.argv[4:])
