# SPDX-License-Identifier: Apache-2.0
"""The package weir for Python: answers, errors, threads, forks and deaths on one state."""

import ast
import gc
import json
import math
import os
import signal
import sys
import threading
import tomllib

import pytest

from daemon.waiting import wait_until
from model.program import ROOT
from python_package import FOLDER, load, needs_package

weir = load()
pytestmark = needs_package

LOGIN = {"method": "POST", "path": "/login"}
RULES = """
version: 1
server: { trusted_proxies: [10.0.0.0/8], headers: draft }
limits:
  - { name: login, match: { method: POST, path: /login }, key: [client.ip/64], rate: 5/h,
      algorithm: sliding_log, warn_at: [40%] }
  - { name: shared, match: { path: /shared }, key: [], rate: 200/h, algorithm: sliding_log }
  - { name: slow, match: { path: /slow }, key: [], algorithm: concurrency, limit: 2, life: 10min }
  - { name: paid, match: { path: /paid }, key: [header.x-api-key], rate: 100/h, refund_on: [5xx],
      refund_cap: 100%, algorithm: sliding_log }
"""


@pytest.fixture(name="rules")
def fixture_rules(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture(name="limiter")
def fixture_limiter(rules, tmp_path):
    with weir.open(rules, tmp_path / "state", state_size=4 << 20) as limiter:
        yield limiter


def test_an_answer_has_all_that_http_says(limiter):
    answers = [limiter.check(LOGIN, client="192.0.2.1") for _ in range(6)]
    first, last = answers[0], answers[-1]
    assert first and first.allowed and first.status == 200 and first.denied_by is None
    assert first.retry_after == 0.0 and first.remaining == 4 and first.body == b""
    assert answers[1].warning == 40
    assert not last and last.status == 429 and last.denied_by == "login" and last.remaining == 0
    assert 0 < last.retry_after <= 3600
    fields = dict(last.headers)
    assert fields["RateLimit-Policy"] == '"login";q=5;w=3600'
    assert int(fields["Retry-After"]) == math.ceil(last.retry_after)
    assert last.content_type == "application/problem+json"
    assert json.loads(last.body)["violated-policies"] == ["login"]
    (limit,) = last.limits
    assert (limit.name, limit.allowed, limit.algorithm, limit.limit, limit.remaining, limit.cost,
            limit.window) == ("login", False, "sliding_log", 5, 0, 1, 3600.0)
    assert limit.retry_after == last.retry_after < limit.reset_after
    assert "denied_by='login'" in repr(last) and "weir.Limit(name='login'" in repr(last)
    with pytest.raises(AttributeError):
        last.allowed = True
    assert limiter.check({"path": "/free"}).remaining is None


def test_forwarding_counts_only_from_trusted_proxies(limiter):
    for _ in range(5):
        assert limiter.check(LOGIN, client="10.0.0.1", forwarded_for="203.0.113.9, 192.0.2.7")
    assert not limiter.check(LOGIN, client="192.0.2.7")
    assert not limiter.check(LOGIN, client="192.0.2.7", forwarded_for="192.0.2.8")
    assert limiter.check(LOGIN, client="::ffff:10.0.0.1", forwarded="for=192.0.2.8")
    assert limiter.check(LOGIN, client="fe80::1%eth0")


def test_errors_say_what_is_wrong_and_where(limiter, rules, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nlimits:\n  - name: a\n    key: []\n    rate: 5/foo\n    bla: 1\n",
                   encoding="utf-8")
    with pytest.raises(weir.RulesError) as caught:
        weir.open(bad)
    places = [(file, line, column) for file, line, column, _ in caught.value.mistakes]
    assert places == [(str(bad), 5, 11), (str(bad), 6, 5)]
    assert f"{bad}:5:11: `5/foo`: unknown unit" in str(caught.value)
    assert weir.mistakes(bad) == caught.value.mistakes and weir.mistakes(rules) == []
    bad.write_text("version: 1\nlimits: []\nstore: { redis: { url: 'redis://h' } }\n",
                   encoding="utf-8")
    with pytest.raises(weir.RulesError):
        weir.open(bad)
    (tmp_path / "foreign").write_bytes(b"not a state" * 1000)
    with pytest.raises(weir.StateError, match="foreign"):
        weir.open(rules, tmp_path / "foreign", state_must_open=True)
    for arguments in ({"client": "nonsense"}, {"cost": -1}, {"idempotency_key": "k" * 256}):
        with pytest.raises(weir.RequestError):
            limiter.check(LOGIN, **arguments)
    for path in ("no-slash", "/%zz", "/\ud800"):
        with pytest.raises(ValueError, match="malformed"):
            limiter.check({"path": path})
    for wrong in ({"path": []}, {1: "/"}, [("path", "/")]):
        with pytest.raises(TypeError):
            limiter.check(wrong)
    with pytest.raises(weir.NotFoundError):
        limiter.release(leased := limiter.check({"path": "/slow"}).lease) or limiter.release(leased)
    with pytest.raises(weir.RequestError):
        limiter.settle("no token", 1)
    limiter.close()
    limiter.close()
    with pytest.raises(weir.StateError, match="closed"):
        limiter.check(LOGIN)
    assert limiter.closed


def test_a_number_that_does_not_fit_is_refused_and_not_cut(limiter, rules, tmp_path):
    """2**64 bytes are not 0 bytes, which would be the default, and 2**32 + 200 is not 200."""
    for wrong in ({"state_size": 2**64}, {"state_size": -1}, {"state_mode": 2**32 + 0o600},
                  {"state_mode": -1}):
        with pytest.raises((OverflowError, ValueError)):
            weir.open(rules, tmp_path / "other", **wrong)
    assert not (tmp_path / "other").exists()
    token = limiter.reserve({"path": "/paid", "header.x-api-key": "ann"}).reservation
    for wrong in (2**32 + 200, -1, 99, 600):
        with pytest.raises((OverflowError, ValueError)):
            limiter.report(token, wrong)


def test_a_check_runs_no_code_of_its_attributes(limiter):
    """A subclass of str could close the limiter in the midst of a check."""
    ran = []

    class Text(str):
        def lower(self):
            ran.append("lower")
            return str.lower(self)

        def __hash__(self):
            ran.append("hash")
            return str.__hash__(self)

        def __eq__(self, other):
            ran.append("eq")
            return str.__eq__(self, other)

    attributes = {Text("path"): Text("/paid"), Text("header.X-Api-Key"): Text("ann")}
    ran.clear()
    (limit,) = limiter.check(attributes).limits
    assert (limit.name, limit.remaining, ran) == ("paid", 99, [])


def test_any_bytes_and_sizes_are_values(limiter):
    """Keys are hashed: no byte and no size of a value is an error, or another key."""
    values = (b"", b"\0", b"\xff\xfe", b"\xc0\x80", "\u00e4", b"a\0b", "x" * (20 << 20))
    for remaining in (99, 98):
        for value in values:
            answer = limiter.check({"path": "/paid", "header.x-api-key": value})
            assert answer.remaining == remaining, value[:10]
    assert limiter.check({f"header.{i}": "x" for i in range(10000)})


def test_reservations_are_settled_reported_or_cancelled(limiter):
    request = {"path": "/paid", "header.X-Api-Key": b"ann"}

    def left():
        return limiter.check(request, peek=True).remaining

    assert limiter.refunds and "header.x-api-key" in limiter.reads
    one = limiter.reserve(request, cost=10)
    assert left() == 90
    limiter.settle(one.reservation, 3)
    assert left() == 97
    limiter.settle(one.reservation, 50)  # a second time it does nothing
    limiter.report(limiter.reserve(request).reservation, 200)
    assert left() == 96
    limiter.report(str(limiter.reserve(request).reservation), 503)  # its text is good anywhere
    limiter.cancel(limiter.reserve(request, life=5).reservation)
    assert left() == 96
    assert limiter.reserve(request, only_delayed=True).reservation is None
    assert limiter.check(request, idempotency_key="a").repeated is False
    assert limiter.check(request, idempotency_key="a").repeated is True
    with pytest.raises(weir.RequestError):
        limiter.reserve(request, life=0.5)


def test_leases_end_by_their_token(limiter):
    leases = [limiter.check({"path": "/slow"}).lease for _ in range(2)]
    assert not limiter.check({"path": "/slow"})
    limiter.renew(leases[0])
    limiter.release(leases[0])
    assert limiter.check({"path": "/slow"}).lease


def test_rules_are_read_again(limiter, rules):
    for _ in range(5):
        limiter.check(LOGIN, client="192.0.2.1")
    rules.write_text(RULES.replace("rate: 5/h", "rate: 6/h").replace("x-api-key", "x-other"),
                     encoding="utf-8")
    limiter.reload()
    assert "header.x-other" in limiter.reads and "header.x-api-key" not in limiter.reads
    assert limiter.check(LOGIN, client="192.0.2.1")
    assert not limiter.check(LOGIN, client="192.0.2.1")
    rules.write_text("version: 1\nlimits: 1\n", encoding="utf-8")
    with pytest.raises(weir.RulesError) as caught:
        limiter.reload()
    assert caught.value.mistakes
    assert not limiter.check(LOGIN, client="192.0.2.1")  # the old rules stay


@pytest.mark.parametrize("patience", [None, 5.0])  # the GIL is kept, or released
def test_eight_threads_admit_exactly_the_limit(rules, tmp_path, patience):
    admitted, shared = [], {}
    with weir.open(rules, tmp_path / "state", state_patience=patience) as limiter:
        def run():
            mine = {}
            count = 0
            for i in range(100):
                given = shared if i % 2 else mine  # another thread changes the one while it is read
                given.update({"path": "/shared", "header.x-api-key": str(i) * 50})
                count += bool(limiter.check(given))
            admitted.append(count)

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        limiter.reload()
        for thread in threads:
            thread.join()
    assert sum(admitted) == 200 and len(admitted) == 8


def test_calls_leave_nothing_behind(limiter, rules):
    """Also those that fail: neither a reference nor memory of Python's."""
    def one(i):
        answer = limiter.reserve({"path": "/paid", "header.X-Api-Key": f"{i}"}, client="::1")
        assert answer.limits[0].name == "paid" and answer.headers and repr(answer)
        limiter.report(str(answer.reservation) if i % 2 else answer.reservation, 503)
        limiter.outcome(401, {"path": "/", "other": "x"}, client="::1", forwarded_for=b"192.0.2.1")
        limiter.release(limiter.check({"path": "/slow"}).lease)
        for call in (lambda: limiter.check({"path": "no-slash"}), lambda: limiter.check({"path": 1}),
                     lambda: limiter.check({1: 1}), lambda: limiter.check({}, client="nobody"),
                     lambda: limiter.outcome(0), lambda: limiter.settle("no token", 1),
                     lambda: limiter.release("no lease"), lambda: limiter.check({"path": "/\ud800"})):
            with pytest.raises((ValueError, TypeError, weir.Error)):
                call()
        if i % 100 == 0:
            limiter.reload()
            weir.open(rules, state_size=1 << 20)  # forgotten

    for i in range(200):
        one(i)
    gc.collect()
    before = sys.getallocatedblocks()
    for i in range(2000):
        one(i)
    gc.collect()
    assert sys.getallocatedblocks() - before < 1000


def in_child(function):
    """Forks; the child ends with the status that the function returns."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            status = function()
        finally:
            os._exit(status)
    return pid


def test_forked_processes_count_on_one_state(limiter):
    """What was opened before a fork works in children, which open it again by themselves."""
    children = [in_child(lambda: sum(bool(limiter.check({"path": "/shared"})) for _ in range(120)))
                for _ in range(4)]
    admitted = sum(bool(limiter.check({"path": "/shared"})) for _ in range(40))
    for pid in children:
        admitted += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert admitted == 200


def test_a_child_may_start_with_any_call(limiter):
    first = limiter.check({"path": "/slow"}).lease
    paid = limiter.reserve({"path": "/paid", "header.x-api-key": "bob"})

    def child():
        limiter.release(first)
        return 0

    for function in (child, lambda: limiter.settle(paid.reservation, 0) or 0,
                     lambda: limiter.tend(), lambda: limiter.reload() or 0,
                     lambda: limiter.close() or 0):
        assert os.waitpid(in_child(function), 0)[1] == 0
    assert limiter.check({"path": "/paid", "header.x-api-key": "bob"}, peek=True).remaining == 100
    assert limiter.check({"path": "/slow"}, peek=True).remaining == 2


def test_leases_of_a_killed_process_end(limiter):
    ready, tell = os.pipe()

    def child():
        for _ in range(2):
            limiter.check({"path": "/slow"})
        os.write(tell, b"x")
        signal.pause()
        return 0

    pid = in_child(child)
    assert os.read(ready, 1) == b"x"
    assert not limiter.check({"path": "/slow"})
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: limiter.tend() and limiter.check({"path": "/slow"}, peek=True),
               what="the end of the leases")
    assert limiter.check({"path": "/slow"}).lease


def test_the_stubs_name_what_there_is():
    tree = ast.parse((FOLDER / "weir" / "__init__.pyi").read_text(encoding="utf-8"))
    stubs = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert set(stubs) | {"__version__"} == set(weir.__all__)
    for name in ("Limiter", "Answer", "Limit"):
        named = {node.name for node in stubs[name].body if isinstance(node, ast.FunctionDef)}
        named |= {node.target.id for node in stubs[name].body if isinstance(node, ast.AnnAssign)}
        there = {member for member in vars(getattr(weir, name)) if not member.startswith("__")}
        assert {member for member in named if not member.startswith("__")} == there, name
    assert (FOLDER / "weir" / "py.typed").exists()


def test_a_wheel_has_the_package_and_nothing_else():
    """What pyproject.toml tells meson-python to build and to install."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        arguments = tomllib.load(file)["tool"]["meson-python"]["args"]
    build = FOLDER.parent.parent
    assert {build / target for target in arguments["compile"]} == set(FOLDER.glob("weir/*.so"))
    assert arguments["install"] == ["--tags=python-runtime"]
    plan = json.loads((build / "meson-info" / "intro-install_plan.json").read_text(encoding="utf-8"))
    files = [one for part in plan.values() for one in part.values()]
    tagged = {one["destination"].rpartition("/weir/")[2] for one in files
              if one["tag"] == "python-runtime"}
    assert tagged == {path.name for path in FOLDER.glob("weir/*") if path.is_file()}
