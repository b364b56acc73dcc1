# SPDX-License-Identifier: Apache-2.0
"""What `nginx -t` says of a configuration with which no worker could decide, and what the workers say
that cannot: weir is never off in silence. And: weir serve and nginx share a folder."""

import os
import re
import stat
import tempfile
from pathlib import Path

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import run_weir

pytestmark = needs_module

RULES = """version: 1
limits:
  - { name: ip, match: { path: /a.txt }, key: [header.x-key], rate: 1/30d, algorithm: token_bucket }
"""
SERVER = """
    location = /weir-status { weir_status; }
    location / { weir on; }
"""
USER, WORKER = "www-data", 33  # the same in every Debian
OTHER, SHARING = "games", 60  # a group that USER is not in; in place of weir-state
WEIR = 64996  # a user like that of weir.service

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers of another user")


@pytest.fixture(name="folder")
def fixture_folder():
    """A folder that any user reaches."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def changed(nginx, *pairs):
    text = nginx.conf.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    nginx.conf.write_text(text, encoding="utf-8")
    return nginx


def strict(nginx):
    return changed(nginx, ("weir_rules ", "weir_strict on; weir_rules "))


def mistakes(nginx):
    return nginx.metrics()['weir_nginx_config_errors{front="nginx"}']


def unable(nginx, what):
    return nginx.metrics()[f'weir_nginx_unable_seconds_total{{front="nginx",what="{what}"}}']


def both(nginx, complaint):
    """nginx -t takes it until it is refused, and refuses it with weir_strict; a line names it."""
    taken = nginx.test()
    assert taken.returncode == 0, taken.stderr
    assert re.search(rf"\[error\].*{complaint}.* will refuse this\)", taken.stderr), taken.stderr
    conf = nginx.conf.read_text(encoding="utf-8")
    refused = strict(nginx).test()
    assert refused.returncode != 0
    assert re.search(rf"\[emerg\].*{complaint}", refused.stderr), refused.stderr
    nginx.conf.write_text(conf, encoding="utf-8")
    assert not Path(nginx.state).is_file()  # it opens no state


def asked(nginx, count):
    return [nginx.get("/a.txt", X_KEY="1").status for _ in range(count)]


@pytest.mark.parametrize("headers, warned", [("", 1), ("headers: [draft]\n", 0)])
def test_a_default_that_has_changed_is_a_warning(folder, headers, warned):
    nginx = Nginx(folder, RULES.replace("limits:", f"{headers}limits:"), SERVER)
    done = nginx.test()
    assert done.returncode == 0
    assert len(re.findall(r"\[warn\] .*weir_rules: .*X-RateLimit-Reset is a Unix time now", done.stderr)) == warned


# --- nginx -t, start and reload ---------------------------------------------------------------------

def test_a_configuration_that_works_has_no_complaint(tmp_path):
    nginx = strict(Nginx(tmp_path, RULES, SERVER))
    done = nginx.test()
    assert done.returncode == 0
    assert not re.search(r"\[(error|emerg)\]", done.stderr), done.stderr
    with nginx:
        assert mistakes(nginx) == 0
        assert asked(nginx, 2) == [200, 429]


@pytest.mark.parametrize("option, complaint", [
    ("size=1k", "256 ?KiB"), ("group=nope", "there is no group nope"),
    ("owner=nope", "there is no user nope")])
def test_a_state_that_cannot_be_made(tmp_path, option, complaint):
    both(changed(Nginx(tmp_path, RULES, SERVER), ("size=4m", option)), complaint)


@as_root
def test_missing_folders_are_made_for_the_workers(folder):
    nginx = strict(Nginx(folder, RULES, SERVER, user=USER, state=folder / "one" / "two" / "state"))
    assert nginx.test().returncode == 0
    made = (folder / "one" / "two").stat()
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (WORKER, 0o750)
    assert (folder / "one").stat().st_uid == 0
    assert not Path(nginx.state).exists()
    with nginx:
        assert asked(nginx, 2) == [200, 429]


@as_root
def test_a_missing_folder_is_made_for_the_group(folder):
    nginx = Nginx(folder, RULES, SERVER, user=USER, state=folder / "shared" / "state")
    assert strict(changed(nginx, ("size=4m", f"size=4m group={USER}"))).test().returncode == 0
    made = (folder / "shared").stat()
    assert (made.st_gid, stat.S_IMODE(made.st_mode)) == (WORKER, 0o2770)
    with nginx:
        assert asked(nginx, 1) == [200]
        assert stat.S_IMODE(Path(nginx.state).stat().st_mode) == 0o660


@as_root
def test_a_folder_that_the_workers_may_not_write_to(folder):
    (folder / "closed").mkdir(mode=0o755)
    nginx = Nginx(folder, RULES, SERVER, user=USER, state=folder / "closed" / "state")
    both(nginx, f"as user {USER}: .*cannot create it in the folder {folder}/closed: Permission denied")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("", encoding="ascii")
    nginx = Nginx(tmp_path, RULES, SERVER, state=tmp_path / "file" / "folder" / "state")
    both(nginx, "cannot create it in the folder .*: Not a directory")


@as_root
def test_a_group_that_the_workers_are_not_in(folder):
    (folder / "run").mkdir()
    os.chown(folder / "run", WORKER, WORKER)
    nginx = changed(Nginx(folder, RULES, SERVER, user=USER), ("size=4m", f"size=4m group={OTHER}"))
    both(nginx, f"only a member can give the state file to group {OTHER}")


@as_root
def test_rules_that_the_workers_may_not_read(folder):
    nginx = Nginx(folder, RULES, SERVER, user=USER)
    nginx.rules.chmod(0o600)
    both(nginx, f"as user {USER}: {nginx.rules}.*cannot read the file")


@pytest.mark.parametrize("directive", ["weir_cost", "weir_settle"])
def test_a_constant_that_is_not_a_number(tmp_path, directive):
    nginx = Nginx(tmp_path, RULES, SERVER.replace("weir on;", f"weir on; {directive} abc;"))
    both(nginx, f'{directive}: "abc" is not a whole number in {nginx.conf}:')
    with nginx:  # until it is refused, it costs 1 as before
        assert asked(nginx, 2) == [200, 429]
        assert mistakes(nginx) == 1
        assert re.search(rf'\[error\].*{directive}: "abc"', nginx.log())


@pytest.mark.parametrize("name, complaint", [
    ("tennant", "`tennant` is neither built in nor declared, so it is ignored; did you mean `tenant`?"),
    ("colour", "declare it in the rules file: `attributes: [colour]`"),
    ("standing", "weir makes `standing` itself"),
    ("n" * 129, "longer than 128 bytes"),
])
def test_a_name_that_the_rules_do_not_know(tmp_path, name, complaint):
    server = SERVER.replace("{ weir on; }", f"{{ weir on; weir_attribute {name} $arg_x; }}")
    nginx = Nginx(tmp_path, "version: 1\nattributes: [tenant]\n" + RULES[len("version: 1\n"):], server,
                  on_error="closed")
    test = nginx.test()
    line = next(line for line in test.stderr.splitlines() if "weir_attribute:" in line)
    assert test.returncode == 0 and "[error]" in line and complaint in line, line
    assert re.search(r" in \S+/nginx\.conf:\d+ \(weir 0\.5\.0 will refuse this\)", line), line
    with nginx:
        assert mistakes(nginx) == 1 and complaint in nginx.log()
    test = strict(nginx).test()
    assert test.returncode != 0 and "[emerg]" in test.stderr and complaint in test.stderr


@pytest.mark.parametrize("name", ["tenant", "user", "client.ip", "header.X-Other", "query.page", "cookie.session"])
def test_a_name_that_the_rules_know_or_that_a_request_may_have(tmp_path, name):
    server = SERVER.replace("{ weir on; }", f"{{ weir on; weir_attribute {name} $arg_x; }}")
    nginx = strict(Nginx(tmp_path, "version: 1\nattributes: [tenant]\n" + RULES[len("version: 1\n"):], server,
                         on_error="closed"))
    assert (nginx.test().returncode, "weir_attribute" in nginx.test().stderr) == (0, False)


def test_rules_that_will_be_refused(tmp_path):
    rules = RULES.replace("key: [header.x-key]", "key: [header.x-key], match: { tennant: a }").replace(
        "match: { path: /a.txt }, ", "")
    nginx = Nginx(tmp_path, rules, SERVER)
    both(nginx, f"weir_rules: {nginx.rules}:3:[0-9]+: .*tennant")
    assert nginx.test().stderr.count("will refuse this") == 1


def test_a_reload_takes_and_shows_what_will_be_refused_and_refuses_it_with_strict(tmp_path):
    with Nginx(tmp_path, RULES, SERVER) as nginx:
        assert mistakes(nginx) == 0
        changed(nginx, ("weir on;", "weir on; weir_cost abc;"))
        nginx.reload()
        assert mistakes(nginx) == 1
        pids = set(nginx.pids())
        strict(nginx).process.send_signal(1)  # SIGHUP
        wait_until(lambda: re.search(r"\[emerg\].*weir_cost", nginx.log()), what="the refusal")
        assert set(nginx.pids()) == pids  # the old configuration stays in force
        assert asked(nginx, 1) == [200]


# --- Workers ----------------------------------------------------------------------------------------

def test_a_worker_without_a_state_says_so_at_once_and_counts(tmp_path):
    nginx = Nginx(tmp_path, RULES, SERVER, workers=1)
    Path(nginx.state).mkdir(parents=True)
    with nginx:  # no request is sent
        wait_until(lambda: re.search(r"\[crit\] .*weir_on_error", nginx.log()), what="the line")
        wait_until(lambda: unable(nginx, "state") >= 2, what="two seconds")
        assert nginx.log().count("[crit]") == 1
        assert unable(nginx, "standing") == 0


def private_standing(folder):
    """`standing.file` in a private folder, as /var/lib/weir is."""
    private = folder / "private"
    private.mkdir(mode=0o700)
    (folder / "weir").mkdir()
    return private, RULES + f"standing: {{ by: [client.ip], file: {private}/standing }}\n"


@as_root
def test_a_map_of_standing_that_the_workers_may_not_read(folder):
    private, rules = private_standing(folder)
    nginx = Nginx(folder, rules, SERVER, user=USER)
    with serve(folder, rules) as weir:
        both(nginx, f"as user {USER}: {private}/standing.map: cannot open it: Permission denied")
        with nginx:  # the limits hold; the log and the metrics say what does not
            assert asked(nginx, 2) == [200, 429]
            line = next(line for line in nginx.log().splitlines() if "[crit]" in line)
            assert f"{private}/standing.map" in line and "callers that are banned may pass" in line
            wait_until(lambda: unable(nginx, "standing") > 0, what="a second without the map")
            assert unable(nginx, "state") == 0
            assert mistakes(nginx) == 1
            ban(weir)
            private.chmod(0o755)
            (private / "standing.map").chmod(0o644)
            wait_until(lambda: asked(nginx, 1) == [403], what="the map")
            wait_until(lambda: "can be used again" in nginx.log(), what="the line")


@as_root
def test_a_map_that_cannot_be_read_closes_where_errors_close(folder):
    private, rules = private_standing(folder)
    with serve(folder, rules), \
            Nginx(folder, rules, SERVER, user=USER, on_error="closed") as nginx:
        assert asked(nginx, 1) == [503]
        assert re.search(rf"\[crit\].*{private}/standing.map.*answered with 503", nginx.log())


# --- weir serve and nginx on one state, in a folder that a group shares ------------------------------

SHARED = """version: 1
state: {{ file: {folder}/state, size: 4MiB }}
standing: {{ by: [client.ip], file: {private}/standing, map: {folder}/standing.map }}
limits:
  - {{ name: ip, match: {{ path: /a.txt }}, key: [client.ip], rate: 3/30d, algorithm: token_bucket }}
"""


def serve(folder, rules, **options):
    return Weir(folder / "weir", rules, admin=f"unix:{folder}/weir/admin", **options)


def ban(weir):
    done = run_weir("ban", "127.0.0.1", "--yes", f"--admin=unix:{weir.folder}/admin")
    assert done.returncode == 0, done.stderr


class Shared:
    """As the packages start them: each of its user, and both in the group of the folder."""

    def __init__(self, folder):
        self.folder, shared, private = folder, folder / "weir-state", folder / "private"
        shared.mkdir()
        os.chown(shared, 0, SHARING)
        shared.chmod(0o2770)
        private.mkdir(mode=0o700)
        os.chown(private, WEIR, WEIR)
        (folder / "weir").mkdir()
        os.chown(folder / "weir", WEIR, WEIR)
        self.rules = SHARED.format(folder=shared, private=private)
        self.state, self.map = shared / "state", shared / "standing.map"

    def weir(self):
        return serve(self.folder, self.rules, prefix=[
            "setpriv", f"--reuid={WEIR}", f"--regid={WEIR}", f"--groups={SHARING}"])

    def nginx(self):
        return strict(Nginx(self.folder, self.rules, SERVER, state=self.state,
                            user=f"{USER} {OTHER}"))

    def files(self):
        return [(stat.S_IMODE(path.stat().st_mode), path.stat().st_gid)
                for path in (self.state, self.map)]


@as_root
def test_weir_serve_first_and_then_nginx(folder):
    shared = Shared(folder)
    with shared.weir() as weir:
        nginx = shared.nginx()
        assert nginx.test().returncode == 0
        with nginx:
            assert shared.files() == [(0o660, SHARING), (0o640, SHARING)]
            assert weir.check(ip="127.0.0.1", path="/a.txt").json["allowed"]
            assert asked(nginx, 3) == [200, 200, 429]
            ban(weir)
            assert asked(nginx, 1) == [403]
            assert "[crit]" not in nginx.log()


@as_root
def test_nginx_first_and_then_weir_serve(folder):
    shared = Shared(folder)
    nginx = shared.nginx()
    assert nginx.test().returncode == 0  # a map that is not there yet is no mistake
    with nginx:
        assert asked(nginx, 2) == [200, 200]
        with shared.weir() as weir:
            assert shared.files() == [(0o660, SHARING), (0o640, SHARING)]
            assert weir.check(ip="127.0.0.1", path="/a.txt").json["allowed"]
            assert asked(nginx, 1) == [429]
            assert not weir.check(ip="127.0.0.1", path="/a.txt").json["allowed"]
            ban(weir)
            wait_until(lambda: asked(nginx, 1) == [403], what="the map, which is looked for each 100 ms")
        assert "[crit]" not in nginx.log()


@as_root
def test_a_new_weir_serve_leaves_the_map_to_the_group(folder):
    shared = Shared(folder)
    with shared.weir() as weir:
        ban(weir)
    with shared.weir(), shared.nginx() as nginx:
        assert asked(nginx, 1) == [403]
        assert shared.files()[1] == (0o640, SHARING)
