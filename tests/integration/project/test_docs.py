# SPDX-License-Identifier: Apache-2.0
"""The YAML of the documentation is valid: every block that is a rules file, or top-level keys of one."""

import json
import re
import shutil
from fnmatch import fnmatch

import pytest

from daemon.certificates import Authority
from daemon.tokens import Issuer
from model.program import ROOT, run_weir

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KEYS = "version|limits|identify|keys|identities|plans|default_plan|paths|server|state|headers|store|" \
       "timezone|idempotency|webhook|envoy|priority|adaptive|standing|challenge|score|attributes"


def blocks():
    """Blocks that begin with a top-level key; other YAML is Envoy's, Traefik's, or a part of a limit."""
    for page in PAGES:
        found = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for number, block in enumerate(found):
            first = next(line for line in block.splitlines() if not line.startswith("#"))
            if re.match(rf"({KEYS}|jwt):", first):
                yield pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")


def completed(block):
    if not re.search(r"^limits:", block, re.M):
        block += "\nlimits: []\n"
    if "hash_tag" in block and not re.search(r"^store:", block, re.M):
        block += "store: { redis: redis://127.0.0.1:6379, nodes: 1 }\n"
    return block


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """What the blocks name: keys, certificates, secrets, a folder of Envoy's."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "keys.yaml").write_text("")
    issuer = Issuer(folder)
    (folder / "jwks.json").write_text(json.dumps({"keys": [issuer.jwk()]}), encoding="utf-8")
    (folder / "challenge.key").write_text("0123456789abcdef" * 4 + "\n")
    (folder / "token").write_text("0123456789abcdef" * 4 + "\n")
    (folder / "webhook.secret").write_text("whsec_" + "A" * 32 + "\n")
    authority = Authority(folder)
    cert, key = authority.sign("server")
    (folder / "tls").mkdir()
    cert.rename(folder / "tls" / "server.pem")
    key.rename(folder / "tls" / "server.key")
    (folder / "tls" / "clients.pem").write_bytes(authority.cert.read_bytes())
    (folder / "certs").mkdir()
    for name, file in ("tls.crt", "server.pem"), ("tls.key", "server.key"), ("ca.crt", "clients.pem"):
        shutil.copy(folder / "tls" / file, folder / "certs" / name)
    (folder / "config").mkdir()
    for name in "badnets.txt", "partners.txt", "slow-users.txt":
        shutil.copy(ROOT / "examples" / "standing" / name, folder)
    return folder


@pytest.mark.parametrize("block", blocks())
def test_a_rules_file_of_the_docs_is_valid(folder, block):
    text = completed(block)
    for there in "/etc/weir/", "/etc/ratelimit/":
        text = text.replace(there, f"{folder}/")
    text = text.replace(" /certs/", f" {folder}/certs/")
    text = text.replace("/var/lib/weir/state", f"{folder}/state")
    rules = folder / "weir.yaml"
    rules.write_text(text, encoding="utf-8")
    done = run_weir("validate", "--quiet", "--strict", rules)
    assert done.returncode == 0, f"{text}\n{done.stderr}"


def examples():
    """The rules files that weir ships: all YAML of examples/ but other programs' and keys files."""
    files = [*(ROOT / "examples").rglob("*.yaml"), ROOT / "packaging" / "weir.yaml"]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    return [file for file, text in texts.items() if re.search("^version: 1$", text, re.M)]


@pytest.mark.parametrize("file", examples(), ids=lambda file: str(file.relative_to(ROOT)))
def test_an_example_is_valid_as_it_stands(file):
    done = run_weir("validate", "--strict", file)
    assert done.returncode == 0, done.stderr


def test_the_examples_are_found():
    names = {str(file.relative_to(ROOT)) for file in examples()}
    assert {"examples/weir.yaml", "examples/cluster/weir.yaml", "examples/recipes/login.yaml",
            "packaging/weir.yaml"} <= names and len(names) >= 10


def test_the_blocks_are_found():
    assert len(list(blocks())) >= 30


def test_every_attribute_is_documented_with_who_may_set_it():
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    section = page[page.index("\n## Attributes\n"):page.index("\n## Who is calling\n")]
    listed, _, rest = section.partition("\n### Who says a value\n")
    setters = rest[:rest.index("\n- ")]
    lines = run_weir("explain", "--names").stdout.splitlines()[1:]
    assert len(lines) >= 20
    for line in lines:
        name, who = re.match(r"(\S+) +(\S+)", line).groups()
        family = re.sub(r"\.[a-z-]+$", ".NAME", name)
        assert f"`{name}`" in listed or (family.startswith("header.") and f"`{family}`" in listed), name
        assert who == "anybody" or f"`{name}`" in setters, name


def test_the_version_has_one_source_and_a_section_of_the_changelog():
    version = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
    assert run_weir("version").stdout == f"weir {version}\n"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{version}]" in changelog and changelog.index("## [Unreleased]") < changelog.index(
        f"## [{version}]")


def test_each_package_that_a_page_installs_is_made():
    control = (ROOT / "packaging" / "debian" / "control").read_text(encoding="utf-8")
    made = re.findall(r"^Package: (.*)$", control, re.M)
    named = {(str(page.relative_to(ROOT)), name) for page in PAGES
             for name in re.findall(r"\./(?:\S+/)?([^\s/]+?)_\S*\.deb", page.read_text(encoding="utf-8"))}
    assert len(named) >= 5
    assert not [(page, name) for page, name in sorted(named)
                if not any(fnmatch(package, name) for package in made)]
