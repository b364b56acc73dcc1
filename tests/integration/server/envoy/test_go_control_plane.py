# SPDX-License-Identifier: Apache-2.0
"""weir takes its configuration from go-control-plane, which Envoy Gateway is built on.

`GO_PLANE` names a program that was built from go/ before; else go builds it, and without go or its proxy
these tests are skipped."""

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from daemon.certificates import Authority
from daemon.envoy import OK, OVER_LIMIT, rule
from daemon.http import request_bytes
from daemon.load import Load, admitted
from daemon.stopped import stopped
from daemon.waiting import wait_until
from service import Service

BUILD_SECONDS_MAX = 500
NODE = "envoy-ratelimit"
LIMIT = 1000


@pytest.fixture(scope="module", name="program")
def fixture_program(tmp_path_factory):
    if os.environ.get("GO_PLANE"):
        return os.environ["GO_PLANE"]
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    made = tmp_path_factory.mktemp("go") / "plane"
    try:
        found = go("list", "-deps", ".")
        if found.returncode:
            pytest.skip(f"go could not fetch go-control-plane: {found.stderr[-200:]}")
        done = go("build", "-p", "1", "-o", made, ".")
    except subprocess.TimeoutExpired:
        pytest.skip("go could not build go-control-plane in time")
    assert done.returncode == 0, done.stderr
    return str(made)


def go(*arguments):
    return subprocess.run(["go", *arguments], cwd=Path(__file__).parent / "go", capture_output=True, text=True,
                          timeout=BUILD_SECONDS_MAX, check=False)


class Plane:
    """go-control-plane as a process. `said` are the requests and responses that it has seen, in order."""

    def __init__(self, program, port=0, *files):
        self.process = subprocess.Popen([program, str(port), *map(str, files)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = []
        word, _, number = self.process.stdout.readline().partition(" ")
        assert word == "port"
        self.port = int(number)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def put(self, version, *configs, node=NODE):
        """The next snapshot; `configs` are domains with their descriptors, as a file has them."""
        made = [{"name": domain, "domain": domain, "descriptors": descriptors} for domain, *descriptors in configs]
        self.process.stdin.write(json.dumps({"node": node, "version": version, "configs": made}) + "\n")
        self.process.stdin.flush()

    def requests(self):
        return [one["request"] for one in list(self.said) if "request" in one]

    def refusals(self):
        return [one for one in self.requests() if "error" in one]

    def wait_version(self, version):
        return wait_until(lambda: next((one for one in self.requests() if one["version"] == version and one["nonce"]
                                        and "error" not in one), None), what=f"the acknowledgement of {version}")


def client_of(folder, plane, **more):
    return Service(folder, plane.address, "--workers", 1, xds={"node": NODE, **more})


def yearly(requests, **more):
    return rule("user", "YEAR", requests, **more)


def test_snapshots_come_into_force_and_go(tmp_path, program):
    with Plane(program) as plane, client_of(tmp_path, plane) as weir:
        first = wait_until(plane.requests, what="a stream")[0]
        assert first == {"node": NODE, "type": "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig",
                         "version": "", "nonce": ""}
        plane.put("0", ("shop", yearly(1)), node="another")
        plane.put("1", ("shop", yearly(2)))
        plane.wait_version("1")
        assert [weir.ask("shop", ("user", "a")) for _ in range(3)] == [OK, OK, OVER_LIMIT]
        nested = rule("path", None, None, rule("method", "YEAR", 1), value="/login*", shadow_mode=False)
        plane.put("2", ("shop", yearly(5, metadata={"plan": "free", "zones": [1, None, {"a": True}]})), ("other", nested))
        plane.wait_version("2")
        assert [weir.ask("shop", ("user", "a")) for _ in range(3)] == [OK, OK, OVER_LIMIT]
        assert [weir.ask("other", ("path", "/login/x"), ("method", "GET")) for _ in range(2)] == [OK, OVER_LIMIT]
        plane.put("3")
        plane.wait_version("3")
        assert weir.ask("shop", ("user", "a")) == OK  # no limit is left
        assert not plane.refusals()


def test_a_refusal_is_answered_at_once_and_repeated_slowly(tmp_path, program):
    with Plane(program) as plane, client_of(tmp_path, plane) as weir:
        plane.put("1", ("shop", yearly(1)))
        plane.wait_version("1")
        plane.put("2", ("shop", rule("", "YEAR", 1)))
        wait_until(lambda: len(plane.refusals()) >= 2, what="two refusals")
        refused = plane.refusals()[0]
        assert refused["version"] == "1" and "descriptor has empty key" in refused["error"]
        assert len([one for one in plane.said if "response" in one]) < 10  # 15,602 in a second, where refusals do not wait
        assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
        plane.put("3", ("shop", yearly(4)))
        plane.wait_version("3")
        assert [weir.ask("shop", ("user", "a")) for _ in range(3)] == [OK, OK, OVER_LIMIT]


def test_both_sides_show_certificates(tmp_path, program):
    authority = Authority(tmp_path)
    cert, key = authority.sign("plane", "DNS:envoy-gateway")
    client, client_key = authority.sign("client")
    tls = {"cert": str(client), "key": str(client_key), "ca": str(authority.cert), "name": "envoy-gateway"}
    with Plane(program, 0, cert, key, authority.cert) as plane, client_of(tmp_path, plane, tls=tls) as weir:
        plane.put("1", ("shop", yearly(1)))
        plane.wait_version("1")
        assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]


def test_a_control_plane_that_stops_and_dies_under_load_makes_no_answer_wrong(tmp_path, program):
    with Plane(program) as plane, client_of(tmp_path, plane) as weir:
        plane.put("1", ("shop", yearly(LIMIT)))
        plane.wait_version("1")
        body = json.dumps({"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "a"}]}]}).encode()
        ask = request_bytes("POST", "/json", {"Content-Type": "application/json"}, body)
        with Load([weir.http_address], 4, ask, pace=0.005) as load, load.running():
            more_answers(load)
            with stopped(plane.process):
                plane.put("2", ("shop", yearly(LIMIT)), ("other", yearly(1)))
                more_answers(load)
            plane.wait_version("2")
            plane.kill()
            weir.wait_event("envoy_xds_lost")
            more_answers(load)
            with Plane(program, plane.port) as again:
                first = wait_until(again.requests, what="a new stream")[0]
                assert (first["version"], first["nonce"]) == ("", "")
                for version in range(3, 13):  # each is a new set of rules, in the midst of the load
                    again.put(str(version), ("shop", yearly(LIMIT)), ("other", yearly(version)))
                    again.wait_version(str(version))
                    more_answers(load, 20)
                wait_until(lambda: len(load.answers) > 2 * LIMIT, 60, "twice as many answers as are admitted")
        assert {one.status for one in load.answers} == {200, 429}
        assert admitted(load.answers) == LIMIT
        assert signal.SIGKILL == -plane.process.returncode
        assert weir.ask("other", ("user", "a")) == OK


def more_answers(load, count=100):
    wanted = len(load.answers) + count
    wait_until(lambda: len(load.answers) >= wanted, what="more answers")


def test_a_control_plane_that_counts_its_versions_anew_is_taken_at_its_word(tmp_path, program):
    """Envoy Gateway's versions are 1, 2, 3 from its start on: another configuration may have the same."""
    with Plane(program) as plane, client_of(tmp_path, plane) as weir:
        plane.put("1", ("shop", yearly(1)))
        plane.wait_version("1")
        plane.kill()
        weir.wait_event("envoy_xds_lost")
        assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
        with Plane(program, plane.port) as again:
            wait_until(again.requests, what="a new stream")
            again.put("1", ("shop", yearly(3)))
            again.wait_version("1")
            assert weir.ask("shop", ("user", "a")) == OK
        weir.wait_event("envoy_xds_lost", 2)
        with Plane(program, plane.port) as again:
            again.put("1")
            again.wait_version("1")
            assert [weir.ask("shop", ("user", "a")) for _ in range(5)] == [OK] * 5  # no limit is left
