# SPDX-License-Identifier: Apache-2.0
"""Makes C of the .proto files: generate.py PROTOC_C OUT_DIR FILE.proto...

Writes FILE.pb-c.[ch] for each, by protobuf-c's compiler, and descriptors.c, the files' descriptors
for server reflection (wire/grpc/descriptors.h).

The C side reads strings as bytes. protobuf-c hands out a string as a char *, which ends at the first
NUL, so that "a" and "a\\0b" would be one key; bytes carry their length. On the wire they are the
same. Maps become the repeated pairs that they are on the wire, for the same reason.
"""
import re
import subprocess
import sys
from pathlib import Path

FIELD_NAME, FIELD_PACKAGE, FIELD_MESSAGE, FIELD_ENUM, FIELD_SERVICE = 1, 2, 4, 5, 6
MESSAGE_NESTED, MESSAGE_ENUM, SERVICE_METHOD = 3, 4, 2


def strings_as_bytes(text):
    values = set(re.findall(r"map<string, (\w+)>", text))
    text = re.sub(r"map<string, (\w+)> (\w+) = (\d+);", r"repeated \1Pair \2 = \3;", text)
    for value in sorted(values):
        text += f"\nmessage {value}Pair {{\n  string key = 1;\n  {value} value = 2;\n}}\n"
    return re.sub(r"\bstring (\w+ = )", r"bytes \1", text).replace("stringPair", "BytesPair")


def fields_of(data):
    """(number, value) of a message's fields: bytes, or an integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            at, value = at + value, data[at:at + value]
        elif tag & 7 != 0:
            raise ValueError("a descriptor with fields of fixed size")
        yield tag >> 3, value


def texts(data, number):
    return [value for field, value in fields_of(data) if field == number]


def name_of(data):
    return texts(data, FIELD_NAME)[0].decode()


def message_symbols(data, scope):
    name = f"{scope}.{name_of(data)}"
    yield name
    for nested in texts(data, MESSAGE_NESTED):
        yield from message_symbols(nested, name)
    for enum in texts(data, MESSAGE_ENUM):
        yield f"{name}.{name_of(enum)}"


def file_symbols(file):
    """Names that the file defines, and those of its services."""
    package = texts(file, FIELD_PACKAGE)[0].decode()
    symbols, services = [], []
    for message in texts(file, FIELD_MESSAGE):
        symbols += message_symbols(message, package)
    symbols += [f"{package}.{name_of(enum)}" for enum in texts(file, FIELD_ENUM)]
    for service in texts(file, FIELD_SERVICE):
        services.append(f"{package}.{name_of(service)}")
        symbols.append(services[-1])
        symbols += [f"{services[-1]}.{name_of(one)}" for one in texts(service, SERVICE_METHOD)]
    return symbols, services


def descriptors_c(descriptor_set):
    files = sorted(texts(descriptor_set, 1), key=name_of)
    symbols, services, lines = [], [], ['#include "wire/grpc/descriptors.h"', ""]
    for number, file in enumerate(files):
        lines.append(f"static const unsigned char file_{number}[] = {{")
        lines += [", ".join(str(byte) for byte in file[at:at + 20]) + ","
                  for at in range(0, len(file), 20)]
        lines.append("};")
        names, offered = file_symbols(file)
        symbols += [(name, number) for name in names]
        services += offered
    lines.append("const struct weir_grpc_file weir_grpc_files[] = {")
    lines += [f'{{"{name_of(file)}", file_{number}, sizeof file_{number}}},'
              for number, file in enumerate(files)]
    lines += ["};", f"const unsigned weir_grpc_file_count = {len(files)};"]
    lines.append("const struct weir_grpc_symbol weir_grpc_symbols[] = {")
    lines += [f'{{"{name}", {number}}},' for name, number in sorted(symbols)]
    lines += ["};", f"const unsigned weir_grpc_symbol_count = {len(symbols)};"]
    lines.append("const char *const weir_grpc_services[] = {")
    lines += [f'"{name}",' for name in sorted(services)]
    lines += ["};", f"const unsigned weir_grpc_service_count = {len(services)};", ""]
    return "\n".join(lines)


def main(compiler, out, *protos):
    out, protos = Path(out), [Path(proto) for proto in protos]
    folder = protos[0].parent
    names = [proto.name for proto in protos]
    prepared = out / "proto-as-bytes"
    prepared.mkdir(parents=True, exist_ok=True)
    for proto in protos:
        text = proto.read_text(encoding="utf-8")
        (prepared / proto.name).write_text(strings_as_bytes(text), encoding="utf-8")
    subprocess.run([compiler, f"--c_out={out}", f"-I{prepared}", *names], check=True)
    descriptor_set = prepared / "descriptors"
    subprocess.run([compiler, f"--descriptor_set_out={descriptor_set}", f"-I{folder}", *names],
                   check=True)
    (out / "descriptors.c").write_text(descriptors_c(descriptor_set.read_bytes()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
