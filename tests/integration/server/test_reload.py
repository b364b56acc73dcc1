# SPDX-License-Identifier: Apache-2.0
"""Reloading beside the loop: files that hang, files that take long, wishes that come meanwhile."""

import fcntl
import hashlib
import os
import signal
import socket
import stat

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 3}


class Hang:
    """While this is open, opening the file does not return: a lease, as file servers take them. The
    kernel ends it by itself after some 45 s (/proc/sys/fs/lease-break-time)."""

    def __init__(self, path):
        self.path, self.file, self.before = path, None, None

    def __enter__(self):
        self.before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.file = os.open(self.path, os.O_RDWR)
        fcntl.fcntl(self.file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        return self

    def wanted(self):
        """Whether somebody waits for the file: the lease is being broken."""
        return fcntl.fcntl(self.file, fcntl.F_GETLEASE) != fcntl.F_WRLCK

    def end(self):
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def __exit__(self, *_):
        self.end()
        signal.signal(signal.SIGIO, self.before)


def with_keys(folder, *limits):
    keys = folder / "keys.yaml"
    if not keys.exists():
        digest = hashlib.sha256(b"hello").hexdigest()
        keys.write_text(f"{digest}: {{ user: alice }}\n", encoding="utf-8")
    return rules_of(*(limits or (API,)), keys=str(keys), identify=["header.x-api-key"]), keys


def health(weir):
    with weir.admin() as client:
        return client.request("GET", "/healthz").status, client.request("GET", "/readyz").status


def test_health_and_decisions_go_on_while_a_reload_hangs_and_it_ends_when_the_file_answers(tmp_path):
    rules, keys = with_keys(tmp_path)
    with Weir(tmp_path, rules) as weir:
        with Hang(keys) as hang:
            weir.write_rules(with_keys(tmp_path, API, {**API, "name": "b"})[0])
            weir.signal(signal.SIGHUP)
            wait_until(hang.wanted, what="the load")
            assert health(weir) == (200, 200)
            assert weir.metrics()["weir_reload_running"] == 1
            assert len(weir.check(ip="192.0.2.1").json["limits"]) == 1
            assert "event=reloaded" not in weir.text()
            hang.end()
            assert "limits=2 took_ms=" in weir.wait_event("reloaded")
        assert weir.metrics()["weir_reload_running"] == 0
        assert len(weir.check(ip="192.0.2.1").json["limits"]) == 2
        assert weir.stop() == 0


def test_wishes_to_reload_during_a_reload_are_one(tmp_path):
    rules, keys = with_keys(tmp_path)
    with Weir(tmp_path, rules) as weir:
        with Hang(keys) as hang:
            weir.signal(signal.SIGHUP)
            wait_until(hang.wanted, what="the load")
            weir.write_rules(with_keys(tmp_path, API, {**API, "name": "b"})[0])
            for _ in range(5):
                weir.signal(signal.SIGHUP)
                assert health(weir) == (200, 200)  # the loop has seen it
            hang.end()
            assert "limits=2" in weir.wait_event("reloaded", 2)
        weir.signal(signal.SIGHUP)
        weir.wait_event("reloaded", 3)
        assert weir.stop() == 0
        assert weir.text().count("event=reloaded") == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_weir_while_a_reload_hangs(tmp_path, number):
    rules, keys = with_keys(tmp_path)
    http = f"unix:{tmp_path}/weir.sock"
    with Weir(tmp_path, rules, http=http) as weir, Hang(keys) as hang:
        weir.signal(signal.SIGHUP)
        wait_until(hang.wanted, what="the load")
        weir.signal(number)
        assert weir.wait() == 0
        assert hang.wanted() and hang.file is not None
        assert "event=load_abandoned" in weir.text()
        assert weir.text().rstrip().endswith("event=stopped")
        assert not (tmp_path / "weir.sock").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_start_that_hangs(tmp_path, number):
    rules, keys = with_keys(tmp_path)
    with Hang(keys) as hang, Weir(tmp_path, rules, wait=False) as weir:
        wait_until(hang.wanted, what="the load")
        weir.signal(number)
        assert weir.wait() == 0
        assert weir.text() == "weir: stopped by a signal before it served\n"


def test_a_hangup_during_the_start_is_a_reload_after_it(tmp_path):
    rules, keys = with_keys(tmp_path)
    with Hang(keys) as hang, Weir(tmp_path, rules, wait=False) as weir:
        wait_until(hang.wanted, what="the load")
        weir.signal(signal.SIGHUP)
        hang.end()
        weir.wait_event("started")
        weir.wait_event("reloaded")
        assert weir.stop() == 0


def make_special(path, kind):
    path.unlink(missing_ok=True)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    return path


@pytest.mark.parametrize("kind", ["FIFO", "directory", "device", "socket"])
def test_what_is_no_regular_file_is_refused_by_serve_validate_and_reload(tmp_path, kind):
    rules, keys = with_keys(tmp_path)
    with Weir(tmp_path, rules) as weir:
        make_special(keys, kind)
        assert "took_ms=" in weir.reload()
        (line,) = [line for line in weir.text().splitlines() if "event=rules_error" in line]
        assert f"cannot read {keys}: it is a {kind}; give a regular file" in line
        assert health(weir) == (200, 200)
    for command in ["validate"], ["serve", "--http", "off", "--admin", "off", "--config"]:
        done = run_weir(*command, tmp_path / "weir.yaml")
        assert done.returncode == 1
        assert f"cannot read {keys}: it is a {kind}; give a regular file" in done.stderr
        done = run_weir(*command, keys)
        assert done.returncode == 1 and f"it is a {kind}" in done.stderr


def test_files_that_libraries_read_are_regular_too(tmp_path):
    pipe = make_special(tmp_path / "pipe", "FIFO")
    tls = {"cert": str(pipe), "key": str(pipe)}
    cases = [
        ({"server": {"http": {"address": "127.0.0.1:0", "tls": tls}}}, "http"),
        ({"store": {"nodes": 1, "redis": {"url": "rediss://127.0.0.1:1",
                                          "tls": {"ca": str(pipe)}}}}, "store.redis"),
        ({"webhook": {"url": "https://127.0.0.1/", "ca": str(pipe),
                      "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}}, "webhook.ca"),
    ]
    with Weir(tmp_path, rules_of(API)) as weir:
        for parts, named in cases:
            weir.write_rules(rules_of(API, **parts))
            line = weir.reload()
            assert "event=reload_failed" in line and named in line and str(pipe) in line
            done = run_weir("serve", "--http", "off", "--admin", "off", "--config", weir.config)
            assert done.returncode == 1 and named in done.stderr and str(pipe) in done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_kubernetes_swaps_of_links_are_followed(tmp_path):
    for name, limits in ("..1", [API]), ("..2", [API, {**API, "name": "b"}]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weir.yaml").write_text(rules_of(*limits), encoding="utf-8")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "weir.yaml").symlink_to("..data/weir.yaml")
    with Weir(tmp_path, None, "--config", tmp_path / "weir.yaml") as weir:
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        assert "limits=2" in weir.reload()


# --- Envoy's folder ------------------------------------------------------------------------------

def envoy_file(folder, name="1.yaml"):
    (folder / "envoy").mkdir(exist_ok=True)
    path = folder / "envoy" / name
    path.write_text("domain: d\ndescriptors:\n- key: a\n", encoding="utf-8")
    return path


def envoy_rules(folder):
    return rules_of(API, envoy={"config": str(folder / "envoy")}, server={"grpc": "127.0.0.1:0"})


def test_envoys_folder_is_read_beside_the_loop_too(tmp_path):
    path = envoy_file(tmp_path)
    with Weir(tmp_path, envoy_rules(tmp_path)) as weir:
        weir.wait_event("envoy_config_loaded")
        with Hang(path) as hang:
            weir.signal(signal.SIGHUP)
            wait_until(hang.wanted, what="the load")
            assert health(weir) == (200, 200)
            hang.end()
            weir.wait_event("reloaded")
        weir.wait_event("envoy_config_loaded", 2)
        with Hang(path) as hang:
            envoy_file(tmp_path, "2.yaml").unlink()
            envoy_file(tmp_path, "3.yaml").write_text("domain: e\n", encoding="utf-8")
            wait_until(hang.wanted, what="the load that the watch begins")
            assert health(weir) == (200, 200)
            weir.signal(signal.SIGTERM)
            assert weir.wait() == 0
            assert "event=load_abandoned" in weir.text()


def test_a_signal_ends_a_start_that_hangs_in_envoys_folder(tmp_path):
    with Hang(envoy_file(tmp_path)) as hang, Weir(tmp_path, envoy_rules(tmp_path), wait=False) as weir:
        wait_until(hang.wanted, what="the load")
        weir.signal(signal.SIGTERM)
        assert weir.wait() == 0


def test_a_pipe_in_envoys_folder_is_refused_and_the_old_configuration_stays(tmp_path):
    envoy_file(tmp_path)
    with Weir(tmp_path, envoy_rules(tmp_path)) as weir:
        weir.wait_event("envoy_config_loaded")
        pipe = make_special(tmp_path / "envoy" / "pipe.yaml", "FIFO")
        line = weir.wait_event("envoy_config_error")
        assert f"cannot read {pipe}: it is a FIFO; give a regular file" in line
        assert health(weir) == (200, 200)
        pipe.unlink()
        weir.wait_event("envoy_config_loaded", 2)


def test_places_of_limits_that_reloads_removed_are_given_back(tmp_path):
    """A table of 64 MiB has 2,048, which limits of the same rate share; the service of standing reads its settings from the first rules."""
    def rules(generation):
        limits = [{"name": f"g{generation}-{i}", "match": {"path": f"/{i}"}, "key": ["user"], "rate": f"{generation * 900 + i + 1}/h"}
                  for i in range(900)]
        return rules_of(*limits, standing={"by": ["user"]})

    with Weir(tmp_path, rules(0), "--workers", "1") as weir:
        for generation in range(1, 5):
            weir.write_rules(rules(generation))
            assert "event=reloaded" in weir.reload()
        (limit,) = weir.check(path="/5", attributes={"user": "ann"}).json["limits"]
        assert (limit["name"], limit["limit"]) == ("g4-5", 3606)
