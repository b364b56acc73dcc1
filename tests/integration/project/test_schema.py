# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas beside the loader: every example passes both, and what a schema refuses of broken
files the loader refuses too. A schema may be laxer, never stricter."""

import copy
import json
import random
import re
import subprocess
import sys
from pathlib import Path

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


def output(option):
    done = run_weir("validate", option)
    assert done.returncode == 0 and not done.stderr
    return done.stdout


@pytest.fixture(name="schemas", scope="module")
def fixture_schemas():
    return {"weir": json.loads(output("--schema")), "weir-keys": json.loads(output("--keys-schema"))}


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


# --- Bounds: random values around those of every keyword, by the loader and by the schema ----------

TIMES = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}  # ms
SIZES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
LIMIT = {"name": "a", "key": [], "rate": "100/s"}
SCORED = {"limits": [LIMIT], "score": {"key": ["user"], "signals": [
    {"name": "s", "add": 1, "when": {"method": "GET"}}]}}
# What has to be beside a keyword for its value to be read at all, and what leads to its mapping.
BESIDE = {
    "limits.burst": {"limits": [{**LIMIT, "algorithm": "gcra", "rate": "1000/s"}]},
    "limits.segments": {"limits": [{**LIMIT, "rate": "100/2h"}]},
    "limits.enforce": {"limits": [{**LIMIT, "key": ["user"]}]},
    "limits.life": {"limits": [{"name": "a", "key": [], "algorithm": "concurrency", "limit": 5}]},
    "limits.refund_cap": {"limits": [{**LIMIT, "refund_on": ["5xx"]}]},
    "limits.reserve": {"limits": [{**LIMIT, "borrow": True}]},
    "limits.cost.min": {"limits": [{**LIMIT, "cost": {"from": "header.x", "max": 1 << 40}}]},
    "limits.cost": {"limits": [{**LIMIT, "cost": {"from": "header.x", "max": 5}}]},
    "limits.match.client.score.at_least": SCORED,
    "limits.by_standing": {"standing": {"by": ["user"]}, "limits": [LIMIT]},
    "limits.by_class": SCORED,
    "limits.shed": {"priority": {"from": "header.x-priority"}, "limits": [LIMIT]},
    "limits.steps.at": {"limits": [{**LIMIT, "steps": [{"mark": True}]}]},
    "limits.steps.delay": {"limits": [{**LIMIT, "algorithm": "gcra", "steps": [{"at": "50%"}]}]},
    "limits.global.wait": {"limits": [{**LIMIT, "global": {"floor": "5%"}}], "regions": {
        "self": "eu", "eu": {"redis": "redis://h"}, "us": {"redis": "redis://i"}}},
    "regions.*": {"limits": [], "regions": {"self": "zz", "us": {"redis": "redis://i"},
                                            "zz": {"redis": "redis://h"}}},
    "penalties": {"limits": [LIMIT], "standing": {"by": ["user"], "file": "history"}, "penalties": [
        {"name": "p", "key": "user", "strikes": "5/h", "ladder": ["suspend 1min"]}]},
    "adaptive.*.table": {"limits": [], "adaptive": {"zz": {"signals": {
        "cpu": "proc", "memory": "proc", "p99": "outcomes", "errors": "outcomes",
        "queue": "pushed"}, "table": [{}]}}},
    "adaptive.*.table.x": {"limits": [], "adaptive": {"zz": {
        "signals": {"cpu": "proc"}, "table": [{"cpu": "80%"}]}}},
    "adaptive.*.floor": {"limits": [], "adaptive": {"zz": {
        "signals": {"cpu": "proc"}, "table": [{"cpu": "80%", "x": "50%"}]}}},
    "adaptive.*": {"limits": [], "adaptive": {"zz": {"algorithm": "aimd", "max": 1000000}}},
    "score.signals.regular.over": {"limits": [], "score": {"key": ["user"], "signals": [
        {"name": "s", "add": 1, "regular": {"within": "50ms"}}]}},
    "score.signals.regular.within": {"limits": [], "score": {"key": ["user"], "signals": [
        {"name": "s", "add": 1, "regular": {"over": 10}}]}},
    "kernel.limits.ports": {"limits": [], "kernel": {"limits": [{"name": "a", "packets": "5/s"}]}},
    "identities": {"limits": [], "identify": ["header.x-api-key"],
                   "identities": {"redis": "redis://h"}},
    "store": {"limits": [], "store": {"redis": {"url": "redis://h"}}},
    "envoy": {"limits": [], "envoy": {"config": "folder"}},
}
BESIDE["adaptive.*.hysteresis"] = BESIDE["adaptive.*.floor"]
# A mapping of scales by name, whose names are of other sections.
NAMED = {"limits.shed.*": "sheddable", "limits.match.*.at_least": None}
# Within their bounds, only some numbers are good: powers of two, and divisors of the window.
DIVIDED = {"kernel.xdp.states", "kernel.xdp.sample", "limits.segments"}
# What is the same table as another one, or of attributes.
SKIPPED = re.compile(
    r"limits\.match\.(?!client\.score\.).*|score\.signals\.when\..*|challenge\.difficulty\..+|"
    r"regions\.\*\.redis\..*|limits\.cost\.\*")


def keywords():
    """The table of `weir validate --keywords` that has bounds."""
    for line in output("--keywords").splitlines():
        place, kind, least, most, words, word, *_ = line.split("\t")
        if kind in ("number", "duration", "size", "percent") and not SKIPPED.fullmatch(place):
            yield place, kind, int(least), int(most), word


def written(kind, number, chance):
    """A number as a file has it, in one of the units that it is a multiple of."""
    if kind == "percent":
        return f"{number}%"
    if kind == "number":
        return number
    units = TIMES if kind == "duration" else SIZES
    size, unit = chance.choice([(size, unit) for unit, size in units.items() if number % size == 0])
    return f"{number // size}{unit}"


def around(kind, least, most, chance):
    """Numbers at, within and beyond the bounds; of durations in ms."""
    if kind == "duration":
        least, most = max(least // 1_000_000, 1), most // 1_000_000
    inside = [least, most, chance.randint(least, most), chance.randint(least, most)]
    beyond = [least - 1, most + 1, most + chance.randint(1, most), 2 * most]
    return [number for number in inside + beyond if number >= (1 if kind == "duration" else 0)]


def put(document, path, value):
    """A copy with the value at a path, in mappings and first items of lists that are made."""
    made = copy.deepcopy(document)
    at = made
    for name, after in zip(path, path[1:] + [None]):
        if after is None:
            at[name] = value
            break
        inner = at.setdefault(name, {})
        if name in LISTS and not isinstance(inner, list):
            inner = at[name] = [{}]
        at = inner[0] if isinstance(inner, list) else inner
    return made


LISTS = {"limits", "steps", "penalties", "signals", "table", "lists"}


def path_of(place):
    """The names on the way to a keyword; "kernel.limits" and "score.signals" are lists, too."""
    place = NAMED.get(place, place)
    parts = re.findall(r"client\.\w+|[^.]+", place)
    return [NAMED.get(".".join(parts[:i + 1]), "zz" if part == "*" else part)
            for i, part in enumerate(parts)]


def base_of(place):
    best = max((key for key in BESIDE if place == key or place.startswith(key + ".")), key=len,
               default=None)
    return BESIDE.get(best, {"limits": [LIMIT] if place.startswith("limits.") else []})


def complaints(folder, documents):
    """For each document what the loader says, without places."""
    paths = []
    for number, document in enumerate(documents):
        path = folder / f"bound{number}.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        paths.append(path)
    found = [set() for _ in documents]
    for begin in range(0, len(paths), 200):
        done = run_weir("validate", "--quiet", *paths[begin:begin + 200])
        assert done.returncode in (0, 1), done.stderr[-1000:]
        for line in done.stderr.splitlines():
            match = re.search(r"bound(\d+)\.yaml:[\d:]* ?(.*)", line)
            if match:
                found[int(match[1])].add(match[2])
    return found


def test_the_schema_has_the_bounds_of_the_loader(schemas, tmp_path):
    """A value is refused by the loader if it says more about the file than about the same file with
    the least value. The schema must say the same of each value."""
    chance, cases = random.Random(32), []
    for place, kind, least, most, word in keywords():
        good = written(kind, max(least // 1_000_000, 1) if kind == "duration" else least, chance)
        numbers = around(kind, least, most, chance)
        if place in DIVIDED:
            numbers = [least, most, 2 * most, least // 2]
        values = [written(kind, number, chance) for number in numbers]
        values += [word] if word else []
        for value in values:
            cases.append((place, good, value))
    documents = []
    for place, good, value in cases:
        documents += [put(base_of(place), path_of(place), good),
                      put(base_of(place), path_of(place), value)]
    said = complaints(tmp_path, documents)
    differ, within, beyond = [], 0, 0
    for number, (place, good, value) in enumerate(cases):
        loader = bool(said[2 * number + 1] - said[2 * number])
        before, after = (len(refused(schemas["weir"], document))
                         for document in documents[2 * number:2 * number + 2])
        within, beyond = within + (not loader), beyond + loader
        if (after > before) != loader:
            differ.append((place, value, said[2 * number + 1] - said[2 * number]))
    print(f"{len({case[0] for case in cases})} keywords, {within} values within their bounds, {beyond} beyond")
    assert not differ, "\n".join(map(str, differ[:40]))
    assert within > 300 and beyond > 200


def test_the_tables_of_the_docs_are_those_of_the_loader():
    done = subprocess.run([sys.executable, ROOT / "script" / "build" / "keyword_tables.py", weir_path(),
                           ROOT / "docs", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name, option", [("weir", "--schema"), ("weir-keys", "--keys-schema")])
def test_what_is_installed_is_what_the_program_prints(name, option):
    built = Path(weir_path()).parent / "packaging" / f"{name}.schema.json"
    if not built.exists() or built.stat().st_mtime < Path(weir_path()).stat().st_mtime:
        pytest.skip("this build has made no schemas since the program was made")
    assert built.read_text(encoding="utf-8") == output(option)


def test_the_grammar_takes_no_files(tmp_path):
    for option in "--schema", "--keys-schema", "--keywords":
        done = run_weir("validate", option, tmp_path / "weir.yaml")
        assert done.returncode == 2 and "takes no files" in done.stderr and not done.stdout
