# SPDX-License-Identifier: Apache-2.0
"""Makes a C source of the filter's BPF object: embed_xdp.py OBJECT OUTPUT"""
import sys

LINE = 24  # array members a line


def main(path, output):
    with open(path, "rb") as source:
        data = source.read()
    rows = (", ".join(str(byte) for byte in data[i:i + LINE]) for i in range(0, len(data), LINE))
    with open(output, "w", encoding="ascii") as out:
        out.write("/* Made by script/build/embed_xdp.py from src/feature/xdp/filter.c. */\n"
                  '#include "feature/xdp/embedded.h"\n\n'
                  "/* libbpf reads ELF headers in place. */\n"
                  "const unsigned char weir_xdp_embedded[] __attribute__((aligned(8))) = {\n"
                  + ",\n".join("    " + row for row in rows) +
                  "};\nconst size_t weir_xdp_embedded_size = sizeof weir_xdp_embedded;\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
