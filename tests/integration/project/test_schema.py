# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas beside the loader: every example passes both, and what a schema refuses of broken
files the loader refuses too. A schema may be laxer, never stricter."""

import copy
import json
import random
import re
import subprocess
import sys

import pytest
import yaml

from model.program import ROOT, run_weir, weir_path

jsonschema = pytest.importorskip("jsonschema")

FILES = [*sorted((ROOT / "examples").rglob("*.yaml")), ROOT / "packaging" / "weir.yaml"]
RULES = [file for file in FILES if re.search("^version: 1$", file.read_text(encoding="utf-8"), re.M)]
MUTANTS_OF_EACH = 80


class Plain(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors read it: `on` is a text, 12:30 too."""


Plain.yaml_implicit_resolvers = {}
for words, tag, first in ((r"true|false", "bool", "tf"), (r"null|~|", "null", "n~"),
                          (r"[-+]?[0-9]+", "int", "-+0123456789"),
                          (r"[-+]?[0-9]+\.[0-9]+", "float", "-+0123456789")):
    Plain.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{words})$"),
                                list(first) + ([""] if tag == "null" else []))


def read(text):
    return yaml.load(text, Loader=Plain)


@pytest.fixture(name="schemas", scope="module")
def fixture_schemas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    subprocess.run([sys.executable, ROOT / "script" / "build" / "schema.py", weir_path(),
                    ROOT / "docs", folder], check=True, timeout=500)
    return {name: json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
            for name in ("weir", "weir-keys")}


def refused(schema, document):
    return list(jsonschema.Draft7Validator(schema).iter_errors(document))


@pytest.mark.parametrize("file", RULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_example_passes(schemas, file):
    assert not refused(schemas["weir"], read(file.read_text(encoding="utf-8")))


def test_the_rules_of_the_docs_pass(schemas):
    count = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^```yaml\n(version: 1\n.*?)^```", page.read_text(encoding="utf-8"),
                                re.M | re.S):
            assert not refused(schemas["weir"], read(block)), page
            count += 1
    assert count > 10


def test_keys_files(schemas):
    keys = schemas["weir-keys"]
    good = read((ROOT / "examples" / "keys.yaml").read_text(encoding="utf-8"))
    assert not refused(keys, good)
    digest = next(iter(good))
    for bad in ({digest: {"user": "a", "usr": "b"}}, {digest: {}}, {"short": {"user": "a"}},
                {digest: "ann"}, {digest: {"user": ["a"]}}, []):
        assert refused(keys, bad), bad


def mappings_of(document):
    """Every mapping and list in a document, that it may be changed."""
    found = [document]
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, (dict, list)):
            found += mappings_of(value)
    return found


def mutate(document, chance):
    """One fault in a copy."""
    broken = copy.deepcopy(document)
    where = chance.choice([one for one in mappings_of(broken) if one])
    key = chance.choice(list(where)) if isinstance(where, dict) else chance.randrange(len(where))
    kind = chance.randrange(6)
    if kind == 0 and isinstance(where, dict):
        where["zz" + str(key)] = where.pop(key)
    elif kind == 1 and isinstance(where, dict):
        where["unknown"] = 1
    elif kind == 2:
        del where[key]
    else:
        where[key] = chance.choice(["zz", ["zz"], {"zz": 1}, 7, -1, True, None, [], {}, [{}]])
    return broken


def verdicts(folder, documents):
    """Whether the loader refuses each."""
    paths = []
    for number, document in enumerate(documents):
        path = folder / f"mutant{number}.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        paths.append(path)
    messages = []
    for begin in range(0, len(paths), 200):
        done = run_weir("validate", "--quiet", *paths[begin:begin + 200])
        assert done.returncode in (0, 1), done.stderr[-1000:]
        messages += done.stderr.splitlines()
    bad = {int(match[1]) for match in (re.search(r"mutant(\d+)\.yaml:", line) for line in messages)
           if match}
    return [number in bad for number in range(len(documents))]


def test_what_the_schema_refuses_the_loader_refuses(schemas, tmp_path):
    """Hundreds of broken files; the loader judges them in another folder, where the files that they
    name are missing. So only what the schema refuses is compared."""
    chance, mutants = random.Random(18), []
    for file in RULES:
        text = file.read_text(encoding="utf-8")
        document = read(text)
        mutants += [mutate(document, chance) for _ in range(MUTANTS_OF_EACH)]
    by_loader = verdicts(tmp_path, mutants)
    by_schema = [bool(refused(schemas["weir"], mutant)) for mutant in mutants]
    stricter = [json.dumps(mutant) for mutant, loader, schema in zip(mutants, by_loader, by_schema)
                if schema and not loader]
    assert not stricter, "\n".join(stricter[:5])
    broken, found = sum(by_loader), sum(by_schema)
    print(f"{broken} of {len(mutants)} refused by the loader, {found} of them by the schema")
    assert broken > 200 and found > 200


def test_unknown_keys_wrong_words_and_wrong_forms_are_refused(schemas):
    limit = {"name": "a", "key": [], "rate": "1/s"}
    for bad in ({}, {"limits": [limit], "limts": []}, {"limits": [{**limit, "algorithm": "zz"}]},
                {"limits": [{**limit, "shadow": 3}]}, {"limits": [{**limit, "rat": "1/s"}]},
                {"limits": [{"name": "a"}]}, {"limits": [limit], "state": []},
                {"limits": [limit], "server": {"http": {"adress": "x"}}},
                {"limits": [limit], "store": {"redis": {"url": []}}},
                {"limits": [limit], "penalties": [{"nam": "x"}]},
                {"limits": [{**limit, "reject": {"status": 200}}]}):
        assert refused(schemas["weir"], bad), bad
