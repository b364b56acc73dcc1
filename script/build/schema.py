#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the JSON Schemas of rules files and keys files: schema.py WEIR FOLDER

What a schema says comes from the loader itself, so it cannot say otherwise: `weir validate` names
the keys of a mapping in which one is unknown, the words of a choice, and the forms that a value may
not have. This program asks about one key at a time, beginning with an unknown key at the top, and
follows the mappings that the answers name. A form that no answer refuses is allowed, so a schema is
laxer than the loader and never stricter.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

UNKNOWN = "zz-zzzz-zz"  # near no key, of which the loader would say "did you mean"
DEPTH_MAX = 8  # of mappings in each other
SCALAR = {"type": ["string", "number", "boolean", "null"]}
LIMIT = {"name": "a", "key": []}
# What a section needs beside it to be read at all.
BASES = {"limits": {"limits": [LIMIT]},
         "penalties": {"limits": [], "standing": {"by": "user", "file": "history"}}}


class Loader:
    """Asks the loader about many documents in one run."""

    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)

    def problems(self, documents):
        """What is wrong with each document: a list of messages."""
        paths = []
        for number, document in enumerate(documents):
            path = self.folder / f"{number}.yaml"
            path.write_text(json.dumps(document), encoding="utf-8")
            paths.append(str(path))
        found = [[] for _ in documents]
        for begin in range(0, len(paths), 500):
            done = subprocess.run([self.program, "validate", "--quiet", *paths[begin:begin + 500]],
                                  capture_output=True, text=True, check=False, timeout=300)
            for line in done.stderr.splitlines():
                match = re.match(r"(?:weir: )?(.*?)(\d+)\.yaml:(?:\d+:\d+:)? ?(.*)", line)
                deprecated = line.endswith("will refuse this)")  # and so it is allowed
                if match and match[1] == f"{self.folder}/" and not deprecated:
                    found[int(match[2])].append(match[3])
        return found


def put(places, value, base):
    """`base` with a value at a place: names of keys, and 0 for the one item of a list."""
    if not places:
        if isinstance(value, dict) and isinstance(base, dict):
            return {**base, **value}
        return value
    place, rest = places[0], places[1:]
    if place == 0:
        inner = base[0] if isinstance(base, list) and base else None
        return [put(rest, value, inner)]
    out = dict(base) if isinstance(base, dict) else {}
    out[place] = put(rest, value, out.get(place))
    return out


def base_of(places):
    return BASES.get(places[0] if places else None, {"limits": []})


def keys_in(messages):
    """The keys of the mapping that has the unknown one."""
    for message in messages:
        match = re.search(rf"(?:has no key `{UNKNOWN}`; its keys|unknown key `{UNKNOWN}`; allowed) "
                          r"are ([a-z0-9_, ]+)$", message)
        if match:
            return match[1].split(", ")
    return None


def words_in(messages, key):
    for message in messages:
        match = re.match(rf"`{re.escape(key)}` must be one of ([\w, -]+), not `zz`$", message)
        if match:
            return match[1].split(", ")
    return None


def refuses(messages, key, form):
    """Whether one of the messages is about this form of the key's value, not about its content."""
    wanted = {"text": r"must be a (list|mapping)\b", "list": r"must be .*, not a list|must be a mapping\b",
              "mapping": r"must be .*, not a mapping|must be a list\b"}[form]
    # What names another form too ("a list or a mapping", "`50%` or a mapping") refuses none.
    return any(re.match(rf"(`{re.escape(key)}`|{re.escape(key)}|\w+ {re.escape(key)}) ", message) and
               re.search(wanted, message) and " or " not in message for message in messages)


class Schema:
    """The schema of one kind of file, grown from what the loader answers."""

    def __init__(self, loader):
        self.loader = loader

    def mapping(self, places, keys, depth):
        """The schema of a mapping with these keys, at a place."""
        properties = {}
        probes = [UNKNOWN, "zz", ["zz"], {UNKNOWN: 1}, [{UNKNOWN: 1}], {"zz": {UNKNOWN: 1}}, 7, True]
        asked = self.loader.problems([put([*places, key], probe, base_of([*places, key]))
                                      for key in keys for probe in probes])
        for number, key in enumerate(keys):
            answers = asked[number * len(probes):(number + 1) * len(probes)]
            properties[key] = self.value([*places, key], answers, depth)
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def value(self, places, answers, depth):
        _, text, items, inner, inner_items, named, _, _ = answers
        key = places[-1]
        scalar = dict(SCALAR)
        words = words_in(text, key)
        if words:
            scalar = {"enum": words + [int(word) for word in words if word.isdigit()]}
        elif any(re.match(rf"`{re.escape(key)}` must be true or false, not `zz`", m) for m in text):
            scalar = {"enum": [True, False, "true", "false"]}
        forms = []
        if not refuses(text, key, "text"):
            forms.append(scalar)
        if not refuses(items, key, "list"):
            forms.append(self.items(places, items, inner_items, depth))
        if not refuses(inner, key, "mapping"):
            forms.append(self.inner(places, inner, named, depth))
        if forms == [SCALAR, {"type": "array"}, {"type": "object"}]:
            return {}
        return forms[0] if len(forms) == 1 else {"anyOf": forms}

    def items(self, places, texts, messages, depth):
        keys = keys_in(messages)
        if not keys or depth == DEPTH_MAX:
            return {"type": "array"}
        item = self.mapping([*places, 0], keys, depth + 1)
        if any(re.match(r"an? \w+ must be a mapping, not a text", message) for message in texts):
            return {"type": "array", "items": item}
        # An item may have other forms as well; only mappings are known.
        return {"type": "array", "items": {"if": {"type": "object"}, "then": item}}

    def inner(self, places, messages, named, depth):
        keys = keys_in(messages)
        if depth == DEPTH_MAX:
            return {"type": "object"}
        if keys:
            return self.mapping(places, keys, depth + 1)
        keys = keys_in(named)
        if keys:
            each = self.mapping([*places, "zz"], keys, depth + 1)
            return {"type": "object", "additionalProperties": {"if": {"type": "object"}, "then": each}}
        return {"type": "object"}


def rules_schema(loader):
    schema = Schema(loader)
    keys = keys_in(loader.problems([{UNKNOWN: 1}])[0])
    made = schema.mapping([], keys, 0)
    missing = loader.problems([{}, {"limits": [{}]}])
    if any("`limits` is missing" in message for message in missing[0]):
        made["required"] = ["limits"]
    # `rate` is missing too, but `quota` or `limit` can stand for it.
    needed = [re.match(r"`(\w+)` is missing", message) for message in missing[1]]
    limit = made["properties"]["limits"]
    limit = next((form for form in limit.get("anyOf", [limit]) if form.get("type") == "array"))
    limit["items"]["required"] = sorted(
        {match[1] for match in needed if match and match[1] in LIMIT})
    return made


def keys_schema(loader, folder):
    """Entries of a keys file: SHA-256 of an API key, and whose it is."""
    digest = "0" * 64
    path = Path(folder) / "keys.probe"
    path.write_text(json.dumps({digest: {"user": "a", UNKNOWN: 1}}), encoding="utf-8")
    rules = Path(folder) / "probe.yaml"
    rules.write_text(json.dumps({"limits": [], "keys": str(path), "identify": ["header.x-api-key"]}),
                     encoding="utf-8")
    done = subprocess.run([loader.program, "validate", "--quiet", str(rules)], capture_output=True,
                          text=True, check=False, timeout=60)
    keys = keys_in([line.split(": ", 1)[-1] for line in done.stderr.splitlines()])
    entry = {"type": "object", "additionalProperties": False, "required": ["user"],
             "properties": {key: {} if key == "limits" else dict(SCALAR) for key in keys}}
    return {"type": ["object", "null"], "additionalProperties": False,
            "patternProperties": {"^[0-9A-Fa-f]{64}$": entry}}


def described(schema, docs):
    """The keys of the top and of limits, with what docs/rules.md says of them."""
    text = (docs / "rules.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.M))
    limit = schema["properties"]["limits"]
    limit = next(form for form in limit.get("anyOf", [limit]) if form.get("type") == "array")
    for properties in schema["properties"], limit["items"]["properties"]:
        for key, value in properties.items():
            if key in rows:
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", rows[key])
                value["description"] = plain.replace("`", "")


def write(path, title, schema):
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title,
            "$comment": "Made by script/build/schema.py from the answers of weir's loader."}
    path.write_text(json.dumps({**head, **schema}, indent=1, ensure_ascii=False) + "\n",
                    encoding="utf-8")


def main(program, docs, folder):
    with tempfile.TemporaryDirectory() as scratch:
        loader = Loader(program, scratch)
        rules, keys = rules_schema(loader), keys_schema(loader, scratch)
    described(rules, Path(docs))
    write(Path(folder) / "weir.schema.json", "Rules of weir: weir.yaml", rules)
    write(Path(folder) / "weir-keys.schema.json", "Callers of weir: keys.yaml", keys)


if __name__ == "__main__":
    main(*sys.argv[1:])
