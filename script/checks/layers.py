# SPDX-License-Identifier: Apache-2.0
"""Checks that no layer includes upwards, and no feature another one: layers.py FILE...

What a layer may include: its own headers, those of the layers below, the public headers, and of
third parties only what the layer was given them for. The headers that tell of a layer's libraries
are listed; anything else with a folder in its name that is not a system header is refused.

A feature, src/feature/NAME, is at its root a layer of its own above core and base, and its folders rules,
engine, store, server and cli belong to these layers. It may include another feature only where USES
says so. feature/kernel/helper is a part of the root of feature/kernel.
"""
import re
import sys

# The roots of features: pure code above core and base.
FEATURES = {"adaptive", "challenge", "kernel", "score", "standing", "use", "xdp"}

BELOW = {
    "core": set(),
    "base": {"core"},
    "table": {"base", "core"},
    "rules": {"base", "core", "adaptive", "challenge", "kernel", "score", "standing", "xdp"},
    "store": {"base", "core", "table", "wire"},
    "engine": {"base", "core", "adaptive", "challenge", "kernel", "score", "standing", "rules", "store", "use", "wire"},
    "library": {"base", "core", "adaptive", "table", "challenge", "score", "standing", "rules", "store", "engine", "use", "wire"},
    "client": {"base", "core", "adaptive"},
    "wire": {"core"},
    "server": FEATURES | {"base", "core", "table", "rules", "store", "engine", "wire"},
}
BELOW |= {feature: {"base", "core"} for feature in FEATURES}
BELOW["cli"] = set(BELOW) | {"cli"}
BELOW["common"] = set()  # bindings/common, around the public headers
BELOW["proxy"] = set()  # what the next two share, around the public headers
BELOW["nginx"] = {"proxy"}  # a program of its own around the public headers
BELOW["envoy"] = {"proxy", "wire", "base"}  # likewise; wire for the JSON of its configuration, base for its timers
BELOW["node"] = set()  # bindings/node, likewise
BELOW["python"] = set()  # bindings/python, likewise

PARTS = {"rules", "engine", "store", "server", "cli"}

# What a feature may include of others. This table only shrinks.
USES = {
    "challenge": {"score"},
    "dashboard": {"adaptive", "challenge", "envoy", "standing", "use"},
    "envoy": {"identity"},
    "identity": {"standing"},
    "kernel": {"standing", "xdp"},
    "penalties": {"reserve", "standing", "webhook"},
    "score": {"challenge"},
    "standing": {"identity", "penalties", "use"},
    "sticky": {"region"},
    "use": {"identity", "standing"},
    "webhook": {"identity", "standing"},
    "xdp": {"kernel"},
}

LIBRARIES = {
    "yaml.h": {"rules"},
    "sqlite3.h": {"standing"},
    "uv.h": {"store", "server", "cli"},
    "jansson.h": {"rules", "server", "cli"},
    "openssl/": {"challenge", "rules", "store", "wire", "server", "cli"},
    "nghttp2/": {"server", "cli"},
    "protobuf-c/": {"wire"},
    "bpf/": {"xdp"},
    "curl/": {"client", "server", "cli"},
    "ngx_": {"nginx"},
    "node_api.h": {"node"},
    "Python.h": {"python"},
}

# The core is freestanding: what a freestanding compiler has, and mem*.
CORE_SYSTEM = {"limits.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def place(parts):
    """The layer and the feature of a path below src."""
    if parts[0] != "feature":
        return parts[0], None
    if len(parts) > 3 and parts[2] in PARTS:
        return parts[2], parts[1]
    return parts[1], parts[1]


def complaint(layer, feature, quote, header):
    if header.startswith("weir/"):
        return None
    if quote == '"':
        other, owner = place(header.split("/")) if "/" in header else (layer, feature)
        if feature and owner and owner != feature and owner not in USES.get(feature, ()):
            return f"feature {feature} must not include {header}"
        if other == layer or other in BELOW[layer]:
            return None
        return f"{layer} must not include {header}"
    for start, layers in LIBRARIES.items():
        if header.startswith(start) and layer not in layers:
            return f"{layer} must not use <{header}>"
    if layer == "core" and header not in CORE_SYSTEM:
        return f"core is freestanding and must not use <{header}>"
    return None


def main(paths):
    bad = 0
    for path in paths:
        layer, feature = place(path.split("/")[1:])
        if layer not in BELOW:
            print(f"{path}: no layer '{layer}' in the table of layers.py")
            bad += 1
            continue
        with open(path, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                match = INCLUDE.match(line)
                message = complaint(layer, feature, *match.groups()) if match else None
                if message:
                    print(f"{path}:{number}: {message}")
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
