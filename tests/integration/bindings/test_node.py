# SPDX-License-Identifier: Apache-2.0
"""weir for Node: what the addon answers, handlers, clusters, threads, leaks; with the published frameworks,
as installed from npm; and the programs of docs/languages/node.md.

All of it runs as a user without privileges, in a folder that has the built module in node_modules."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from daemon.http import Client, connect
from daemon.proxies import LIES, REFUSALS_MAX, App, Counting, free_port
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import ROOT, weir_path
from penalties import guessing_rules
from registry import NOBODY, RUN_SECONDS_MAX, Folder, needed

BUILT = Path(weir_path()).resolve().parent / "bindings/node"
SOURCES = ROOT / "tests/integration/bindings/node"
TOOLS = ROOT / "tests/integration/bindings/node_tools"
PAGE = (ROOT / "docs/languages/node.md").read_text(encoding="utf-8")
# In windows whose ends no test meets.
LASTING = PAGE.replace("5/min", "5/day")
BLOCKS = re.findall(r"^```js\n(.*?)^```", LASTING, re.M | re.S)
PROGRAMS = [block for block in BLOCKS if "expect(" not in block]
(JEST,) = [block for block in re.findall(r"^```js\n(.*?)^```", PAGE, re.M | re.S) if "expect(" in block]
RULES_AS_WRITTEN = re.search(r"^```yaml\n(version.*?)^```", PAGE, re.M | re.S)[1]
RULES = re.search(r"^```yaml\n(version.*?)^```", LASTING, re.M | re.S)[1]
(PATHS,) = re.findall(r"^```yaml\n(paths.*?)^```", PAGE, re.M | re.S)  # of Express
(INSTALL,) = re.findall(r"^(npm install .*)$", PAGE, re.M)

pytestmark = pytest.mark.skipif(not (BUILT / "weir.node").is_file() or shutil.which("node") is None,
                                reason="weir.node was not built, for want of libnode-dev, or no node")


def add_module(folder):
    module = folder.path / "work/node_modules/weir"
    module.mkdir(parents=True)
    for each in BUILT.iterdir():
        if each.is_file():
            shutil.copy(each, module)
    module.parent.chmod(0o755)


@pytest.fixture(scope="module", name="folder")
def fixture_folder():
    folder = Folder(SOURCES)
    add_module(folder)
    yield folder
    folder.remove()


def installed(sources):
    needed("npm")
    folder = Folder(sources)
    try:
        folder.install("packages of npm", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                       "--silent")
        add_module(folder)
        yield folder
    finally:
        folder.remove()


@pytest.fixture(scope="module", name="packages")
def fixture_packages():
    yield from installed(SOURCES)


@pytest.fixture(scope="module", name="tools")
def fixture_tools():
    yield from installed(TOOLS)


@pytest.mark.parametrize("program", ["check.js", "http.js", "options.js", "absent.js", "cluster.js", "threads.js", "leaks.js", "client.js",
                                     "transport.js", "streams.js",
                                     "exports.mjs"])
def test_the_module(folder, program):
    done = folder.run("node", "--expose-gc", program)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


def test_outcomes_are_strikes(folder, tmp_path):
    """As the user of the test, who shares the state file with the server."""
    with Weir(tmp_path, guessing_rules(tmp_path), "--workers", "1") as server:
        done = subprocess.run(["node", "outcomes.js", server.config], cwd=folder.path / "work",
                              env=folder.environment, capture_output=True, text=True, check=False,
                              timeout=RUN_SECONDS_MAX)
        assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
        assert server.text().count("event=penalty_moved") == 2


def test_the_frameworks(packages):
    done = packages.run("node", "frameworks.js")
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


def test_the_types(tools):
    """A program in ES modules and one in CommonJS, as tsc resolves their imports, then as node does."""
    done = tools.run("node_modules/.bin/tsc", "-p", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    for program in "types.mjs", "types.cjs":
        done = tools.run("node", f"compiled/{program}")
        assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


def test_the_types_name_what_there_is(folder):
    """Each entry exports the classes and functions that its types declare, and no other."""
    for entry, types in ("weir", "index"), ("weir/client", "client"), ("weir/fetch", "fetch"), (
            "weir/testing", "testing"):
        text = (ROOT / f"bindings/node/{types}.d.ts").read_text(encoding="utf-8")
        declared = set(re.findall(r"^export (?:class|function) (\w+)", text, re.M))
        done = folder.run("node", "-p", f"JSON.stringify(Object.keys(require('{entry}')))")
        assert set(json.loads(done.stdout)) == declared, entry


# --- The client -------------------------------------------------------------------------------------

def fetched(folder, address, count):
    """So many requests under a limit, by a program; the statuses of all tries."""
    done = folder.run("node", "fetch.js", address, count)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_client_keeps_to_a_limit_of_weir(folder, tmp_path):
    rules = rules_of({"name": "api", "key": [], "algorithm": "gcra", "rate": "20/s", "burst": 5})
    with Weir(tmp_path, rules) as weir:
        tries = fetched(folder, weir.http_address, 60)
    assert tries["200"] == 60 and tries.get("429", 0) <= REFUSALS_MAX, tries


@pytest.mark.parametrize("fields", LIES)
def test_the_client_fetches_from_a_server_that_lies(folder, fields):
    with Counting(limit=20, fields=fields) as server:
        tries = fetched(folder, server.address, 60)
        assert tries == {str(status): count for status, count in server.statuses.items()}
    assert tries["200"] == 60 and tries.get("429", 0) <= REFUSALS_MAX, tries


def test_the_types_of_the_client_name_what_there_is():
    sources = {name: (ROOT / "bindings/node" / name).read_text(encoding="utf-8")
               for name in ("client.js", "client.d.ts")}
    for interface, options in ("SessionOptions", "SESSION_OPTIONS"), ("RequestOptions", "REQUEST_OPTIONS"):
        body = re.search(rf"interface {interface} \{{(.*?)^\}}", sources["client.d.ts"], re.M | re.S)[1]
        known = re.search(rf"{options} = new Set\(\[(.*?)\]\)", sources["client.js"], re.S)[1]
        assert re.findall(r"^  (\w+)\?:", body, re.M) == re.findall(r"'(\w+)'", known)
    body = re.search(r"class Session \{(.*?)^\}", sources["client.d.ts"], re.M | re.S)[1]
    real = re.search(r"^class Session \{(.*?)^\}", sources["client.js"], re.M | re.S)[1]
    assert re.findall(r"^  (\w+)\(", body, re.M) == re.findall(r"^  (\w+)\(", real, re.M)
    exported = re.search(r"module.exports = \{(.*?)\}", sources["client.js"], re.S)[1]
    assert set(re.findall(r"^export class (\w+)", sources["client.d.ts"], re.M)) == set(
        re.findall(r"\w+", exported))


# --- docs/languages/node.md -------------------------------------------------------------------------

def statuses(port, count):
    """The statuses of so many requests, each on its own connection; a handshake of a WebSocket is a
    request, too."""
    for _ in range(count):
        with connect(f"127.0.0.1:{port}") as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
            yield int(one.recv(16).split()[1])


def listens(port):
    try:
        connect(f"127.0.0.1:{port}").close()
    except OSError:
        return False
    return True


def as_es_module(program):
    """A program of CommonJS with its calls of require() as imports."""
    imports = []

    def hoist(found):
        imports.append(f"import required{len(imports)} from '{found[1]}';\n")
        return f"required{len(imports) - 1}"

    text = re.sub(r"^const (\w+|\{[^}]*\}) = require\('([^']+)'\);$", r"import \1 from '\2';", program, flags=re.M)
    text = re.sub(r"require\('([^']+)'\)", hoist, text)
    assert "require" not in re.sub(r"required\d", "", text)
    return "".join(imports) + text


def place_of(folder, name):
    place = folder.path / "work" / name
    place.mkdir(mode=0o777)
    place.chmod(0o777)  # whatever the umask
    return place


@contextlib.contextmanager
def serving(packages, place, app, port):
    with open(place / "log", "wb") as log, subprocess.Popen(
            ["node", app], cwd=place, env=packages.environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, **NOBODY) as process:
        try:
            wait_until(lambda: process.poll() is not None or listens(port), SECONDS_MAX, "the server")
            assert process.poll() is None, (place / "log").read_text()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS_MAX)


@pytest.mark.parametrize("kind", ["js", "mjs"])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_page(packages, number, kind):
    place, app = place_of(packages, f"page{number}{kind}"), f"app.{kind}"
    (place / "weir.yaml").write_text(RULES + (PATHS if "express" in PROGRAMS[number] else ""), encoding="utf-8")
    port = free_port()
    program = PROGRAMS[number] if kind == "js" else as_es_module(PROGRAMS[number])
    (place / app).write_text(program.replace("3000", str(port)), encoding="utf-8")
    if "weir/client" in program:
        with App() as server:
            done = packages.run("node", app, f"http://{server.address}/", folder=place)
        assert done.stdout == "200 null\n", done.stdout + done.stderr
        return
    if "3000" not in program:
        done = packages.run("node", app, folder=place)
        assert re.fullmatch(r"(allowed\n){5}denied for \d+ ms\n", done.stdout), done.stdout + done.stderr
        return
    with serving(packages, place, app, port):
        first = {101} if "upgrade" in program else {200}
        assert list(statuses(port, 6)) == [*first] * 5 + [429], (place / "log").read_text()


@pytest.mark.parametrize("kind", ["js", "mjs"])
def test_the_test_of_the_page(tools, kind):
    """As it is written, with the rules as they are written: it waits for nothing."""
    place = place_of(tools, f"page{kind}")
    (place / "weir.yaml").write_text(RULES_AS_WRITTEN, encoding="utf-8")
    (place / f"limits.test.{kind}").write_text(JEST if kind == "js" else as_es_module(JEST), encoding="utf-8")
    (place / "package.json").write_text("{}", encoding="utf-8")
    done = tools.run("node", *(["--experimental-vm-modules"] if kind == "mjs" else []),
                     "../node_modules/jest/bin/jest.js", "--rootDir=.", folder=place)
    assert done.returncode == 0 and "1 passed" in done.stderr, done.stdout + done.stderr


def test_the_programs_of_the_page_in_typescript(tools):
    """As ES modules, by the types of weir and of the frameworks, none of them `any` by accident."""
    place = place_of(tools, "typescript")
    for number, program in enumerate(PROGRAMS):
        (place / f"app{number}.mts").write_text(as_es_module(program), encoding="utf-8")
    (place / "tsconfig.json").write_text(json.dumps({"extends": "../tsconfig.json", "files": [
        f"app{number}.mts" for number in range(len(PROGRAMS))]}), encoding="utf-8")
    done = tools.run("../node_modules/.bin/tsc", "-p", ".", "--noEmit", folder=place)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_is_installed_as_the_page_says(folder):
    """By the folder's name, without a registry."""
    needed("npm")
    place = place_of(folder, "installed")
    (place / "package.json").write_text("{}", encoding="utf-8")
    (place / "package.json").chmod(0o666)
    command = INSTALL.replace("./build/bindings/node", "../node_modules/weir").split()
    assert command[-1] == "../node_modules/weir"
    done = folder.run(*command, "--offline", "--no-audit", "--no-fund", folder=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "weir" in json.loads((place / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert folder.run("node", "-p", "require('weir').open.name", folder=place).stdout == "open\n"


def test_the_page_for_those_who_come_from_express_rate_limit(packages):
    """Its two programs answer alike, in windows whose ends no test meets."""
    text = (ROOT / "docs/coming-from/express-rate-limit.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```js\n(.*?)^```", text, re.M | re.S)
    (rules,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    asked = ["/login?password=right"] * 4 + ["/login?password=wrong"] * 6 + ["/", "/", "/health"]
    answers = []
    for number, program in enumerate(programs):
        place, port = place_of(packages, f"moved{number}"), free_port()
        (place / "weir.yaml").write_text(rules.replace("/min", "/day"), encoding="utf-8")
        (place / "app.js").write_text(program.replace("3000", str(port)).replace("60_000", "86_400_000"),
                                      encoding="utf-8")
        with serving(packages, place, "app.js", port), Client(f"127.0.0.1:{port}") as client:
            answers.append([client.request("GET", path).status for path in asked])
    assert answers[0] == [200] * 4 + [401] * 5 + [429, 200, 429, 200]
    assert answers[1] == answers[0]


def test_every_block_of_the_page_is_run():
    """By the tests above; the rest of the one of shell is a build, whose result they use."""
    assert len(PROGRAMS) == 10
    assert {language: len(re.findall(rf"^```{language}$", PAGE, re.M)) for language in set(
        re.findall(r"^```(\w+)$", PAGE, re.M))} == {"js": 11, "yaml": 2, "sh": 1}


def test_the_page_lists_each_option():
    """Options are checked by their names, so the page, the types and the handlers have the same."""
    source = (ROOT / "bindings/node/guard.js").read_text(encoding="utf-8")
    known = set(re.findall(r"(\w+): \[", re.search(r"OPTIONS = \{(.*?)\};", source, re.S)[1]))
    table = PAGE.split("## Options", 1)[1].split("What the rules say needs no option", 1)[0]
    named = {name for row in re.findall(r"^\| (`[^|]*) \|", table, re.M) for name in re.findall(r"`(\w+)", row)}
    assert named == known
    types = (ROOT / "bindings/node/index.d.ts").read_text(encoding="utf-8")
    body = re.search(r"interface LimitOptions<.*?> \{(.*?)^\}", types, re.M | re.S)[1]
    assert set(re.findall(r"^  (\w+)\?:", body, re.M)) == known
