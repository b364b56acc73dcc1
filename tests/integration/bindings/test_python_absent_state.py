# SPDX-License-Identifier: Apache-2.0
"""A state file that cannot be opened, in Python: a limiter that decides by on_store_error, logs why, and
uses the state when it is there. And what else libweir says, by the logger "weir"."""

import logging
import os

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir
from penalties import guessing_rules
from python_package import load

weir = load("weir")
wsgi = load("weir.wsgi")

RULES = """version: 1
headers: [draft]
limits:
  - { name: open, match: { path: /open }, key: [], rate: 2/30d, on_store_error: open }
  - { name: closed, match: { path: /closed }, key: [], rate: 2/30d, on_store_error: closed }
  - { name: local, match: { path: /local }, key: [], rate: 2/30d }
"""


@pytest.fixture(name="rules")
def rules_of_test(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(RULES, encoding="ascii")
    return path


def asked(limiter, path):
    return [bool(limiter.check({"path": path})) for _ in range(3)]


def test_on_store_error_decides_until_the_state_is_there(rules, tmp_path, caplog):
    caplog.set_level(logging.INFO, "weir")
    state = tmp_path / "run" / "state"
    with weir.open(rules, state) as limiter:
        (line,) = caplog.records
        assert (line.name, line.levelno) == ("weir", logging.ERROR)
        assert f"cannot open the state, and tries again every second: {state}" in line.getMessage()
        assert str(state) in limiter.state_error
        assert asked(limiter, "/open") == [True] * 3
        assert asked(limiter, "/closed") == [False] * 3
        assert asked(limiter, "/local") == [True, True, False]
        answer = limiter.check({"path": "/closed"})
        assert (answer.store_failed, answer.status, answer.denied_by) == (True, 503, "closed")
        state.parent.mkdir()
        wait_until(lambda: limiter.state_error is None, what="the state")
        assert asked(limiter, "/closed") == [True, True, False]
        assert limiter.check({"path": "/none"}).store_failed is False
        wait_until(lambda: limiter.tend() is not None and len(caplog.records) == 2, what="the second line")
        assert (caplog.records[1].levelno, caplog.records[1].getMessage()) == (
            logging.INFO, "the state can be used again")
    with weir.open(rules, state) as limiter:
        assert asked(limiter, "/closed") == [False] * 3  # it is one state


def test_penalties_without_a_server_are_logged_and_limits_hold(tmp_path, caplog):
    caplog.set_level(logging.INFO, "weir")
    rules = tmp_path / "weir.yaml"
    rules.write_text(guessing_rules(tmp_path).replace("1000/30d", "2/30d"), encoding="ascii")
    with weir.open(rules) as limiter:
        (line,) = caplog.records
        assert (line.name, line.levelno) == ("weir", logging.ERROR)
        assert "no `weir serve` with penalties runs on the state file" in line.getMessage()
        assert "limits and standing go on, and no penalty moves anybody" in line.getMessage()
        for _ in range(4):
            limiter.outcome(403, {"path": "/"}, client="192.0.2.1")
        answers = [limiter.check({"path": "/"}, client="192.0.2.1") for _ in range(3)]
        assert [answer.denied_by for answer in answers] == [None, None, "all"]
        assert "strikes were lost so far" in caplog.records[1].getMessage() and len(caplog.records) == 2
        limiter.reload()
        with Weir(tmp_path, rules.read_text(encoding="ascii"), "--workers", "1") as server:
            def moved():
                limiter.outcome(403, {"path": "/"}, client="192.0.2.1")
                return "penalty_moved" in server.text()
            wait_until(moved, what="the next strike")
            limiter.check({"path": "/"}, client="192.0.2.2")
        assert "takes strikes of penalties again" in caplog.text
    with weir.open(rules, state_must_open=True) as limiter:  # the state is there
        assert limiter.check({"path": "/"}, client="192.0.2.2")


def test_middleware_serves_without_a_state(rules, tmp_path):
    def app(environ, start_response):
        start_response("200 OK", [])
        return [b"hello"]

    statuses = []
    with weir.open(rules, tmp_path / "run" / "state") as limiter:
        for path in "/closed", "/open":
            environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "SCRIPT_NAME": "", "REMOTE_ADDR": "192.0.2.1"}
            wsgi.Middleware(app, limiter)(environ, lambda status, fields: statuses.append(status[:3]))
    assert statuses == ["503", "200"]


def test_a_mistake_of_rules_or_options_is_raised_at_once(rules, tmp_path):
    state = tmp_path / "run" / "state"
    for wrong in ({"state_size": 5}, {"state_group": "no-such-group"}):
        with pytest.raises(weir.Error):
            weir.open(rules, state, **wrong)
    rules.write_text("version: 1\nlimits: nonsense\n", encoding="ascii")
    with pytest.raises(weir.RulesError):
        weir.open(rules, state)
    with pytest.raises(weir.RulesError):
        weir.open(tmp_path / "nowhere.yaml", state)


def test_a_child_opens_for_itself(rules, tmp_path):
    state = tmp_path / "run" / "state"
    with weir.open(rules, state) as limiter:
        asked(limiter, "/local")
        pid = os.fork()
        if pid == 0:
            good = asked(limiter, "/local") == [True, True, False] and limiter.state_error is not None
            os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0
        state.parent.mkdir()
        wait_until(lambda: limiter.state_error is None, what="the state")


def test_libweir_says_by_the_logger_what_is_deprecated_or_unknown(tmp_path, caplog, capfd):
    rules = tmp_path / "weir.yaml"
    rules.write_text("version: 1\nheaders: [draft]\nlimits: [{ name: a, key: [tenant], rate: 9/h }]\n", encoding="ascii")
    with weir.open(rules) as limiter:
        (line,) = caplog.records
        assert line.levelno == logging.WARNING and "unknown attribute `tenant`" in line.getMessage()
        limiter.reload()
        assert len(caplog.records) == 2
        limiter.check({"tennant": "acme"})
        assert caplog.records[2].levelno == logging.WARNING and "`tennant`" in caplog.records[2].getMessage()
    assert capfd.readouterr().err == ""


def test_a_default_that_has_changed_is_a_warning(tmp_path, caplog):
    rules = tmp_path / "weir.yaml"
    rules.write_text("version: 1\nlimits: [{ name: a, key: [], rate: 9/h }]\n", encoding="ascii")
    with weir.open(rules):
        (line,) = caplog.records
        assert line.levelno == logging.WARNING and "X-RateLimit-Reset is a Unix time now" in line.getMessage()


def test_a_handler_may_use_the_limiter_that_speaks_and_may_fail(rules, tmp_path, monkeypatch):
    seen, lost = [], []

    class Handler(logging.Handler):
        def emit(self, record):
            seen.append(bool(limiter.check({"path": "/none"})))
            raise RuntimeError("a handler that fails")

    monkeypatch.setattr("sys.unraisablehook", lost.append)
    monkeypatch.setattr(logging.getLogger("weir"), "handlers", [Handler()])
    with weir.open(rules, tmp_path / "state") as limiter:
        assert limiter.check({"pahth": "/none"})
    assert seen == [True]
    assert [str(one.exc_value) for one in lost] == ["a handler that fails"]
