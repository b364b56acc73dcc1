# SPDX-License-Identifier: Apache-2.0
"""The life of the daemon: starting, refusing to start, reloading, stopping."""

import json
import re
import signal
import socket
import threading

import pytest

from daemon.http import Client, connect, request_bytes
from daemon.redis import RedisWeir
from daemon.waiting import wait_until
from daemon.weir import Weir, memory_bytes, rules_of
from model.program import run_weir

API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 3}


# --- Starting ------------------------------------------------------------------------------------

def serve(folder, rules, *options):
    """Runs `weir serve` that is expected to end by itself."""
    config = folder / "bad.yaml"
    config.write_text(rules, encoding="utf-8")
    return run_weir("serve", "--config", config, "--http", "127.0.0.1:0", "--admin", "off", *options)


def lines_of(done):
    assert done.stdout == ""
    assert "listening" not in done.stderr
    return done.stderr.splitlines()


def test_a_rules_file_with_errors_stops_the_start_and_every_error_has_its_line(tmp_path):
    done = serve(tmp_path, "version: 1\nlimits:\n  - name: a\n    rate: 0\n    kee: [x]\n"
                           "  - name: b\n    rate: 5/fortnight\n")
    assert done.returncode == 1
    lines = lines_of(done)
    assert len(lines) >= 3
    assert all(re.match(r"weir: .*bad\.yaml:[3-7]:\d+: ", line) for line in lines), lines


def test_a_file_that_is_missing_is_one_line(tmp_path):
    done = run_weir("serve", "--config", tmp_path / "none.yaml", "--http", "127.0.0.1:0")
    assert done.returncode == 1 and len(lines_of(done)) == 1
    assert "none.yaml" in done.stderr and "No such file" in done.stderr


def test_a_port_in_use_is_one_line_even_when_weir_itself_has_it(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir:
        for option, address in (("--http", weir.http_address), ("--admin", weir.admin_address)):
            done = serve(tmp_path, rules_of(API), option, address)
            assert done.returncode == 1
            assert lines_of(done) == [f"weir: cannot listen on {address}: Address already in use"]
        assert weir.check().status == 200


@pytest.mark.parametrize("http, admin", [
    ("127.0.0.1:{}", "127.0.0.1:{}"), ("127.0.0.1:{}", "0.0.0.0:{}"), ("[::]:{}", "127.0.0.1:{}"),
])
def test_two_listeners_of_one_server_on_one_port_are_refused(tmp_path, http, admin):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "weir.yaml"
    config.write_text(rules_of(API, server={
        "http": {"address": http.format(port), "open": True},
        "admin": {"address": admin.format(port), "open": True}}), encoding="utf-8")
    done = run_weir("serve", "--config", config)
    assert done.returncode == 1
    assert len(lines_of(done)) == 1 and "another listener of this server" in done.stderr


def test_a_unix_socket_in_use_is_one_line_and_a_stale_one_is_taken_over(tmp_path):
    address = f"unix:{tmp_path}/weir.sock"
    with Weir(tmp_path, rules_of(API), http=address) as weir:
        done = serve(tmp_path, rules_of(API), "--http", address)
        assert done.returncode == 1 and len(lines_of(done)) == 1
        assert weir.check().status == 200
        weir.kill()
        assert (tmp_path / "weir.sock").exists()
        weir.start()
        assert weir.check().status == 200


@pytest.mark.parametrize("listener", ["http", "admin"])
def test_a_listener_that_others_reach_needs_a_token_or_open(tmp_path, listener):
    address = {"address": "0.0.0.0:0"}
    rules = {"http": {"address": "127.0.0.1:0"}, "admin": {"address": "off"}}
    config = tmp_path / "weir.yaml"
    config.write_text(rules_of(API, server={**rules, listener: address}), encoding="utf-8")
    done = run_weir("serve", "--config", config)
    assert done.returncode == 1
    (line,) = lines_of(done)
    assert listener in line and "token" in line and "open: true" in line
    for more in ({"token": "x"}, {"open": True}):
        text = rules_of(API, server={**rules, listener: {**address, **more}})
        with Weir(tmp_path, text, http=None, admin=None) as weir:
            assert weir.stop() == 0


@pytest.mark.parametrize("arguments", [
    ["--workers", "0"], ["--workers", "129"], ["--workers", "x"], ["--nonsense"], ["extra"],
    ["--watch"], ["--log-format", "xml"], ["--config"], ["--workers", "1x"],
])
def test_a_wrong_command_line_exits_with_2(arguments):
    done = run_weir("serve", *arguments)
    assert done.returncode == 2 and done.stderr.startswith("weir: ") and done.stdout == ""


@pytest.mark.parametrize("address", ["8080", "127.0.0.1", "example.org:80", "127.0.0.1:99999",
                                     "unix:", "[::1:80"])
def test_an_address_that_is_none_is_a_usage_error(tmp_path, address):
    for option in ("--http", "--admin", "--redis"):
        done = serve(tmp_path, rules_of(API), option, address)
        assert done.returncode == 2
        seen, hint = lines_of(done)
        assert seen.startswith(f"weir: {option}: ") and "--help" in hint


def test_a_unix_socket_in_no_folder_is_one_line(tmp_path):
    done = serve(tmp_path, rules_of(API), "--http", "unix:/no/such/folder/socket")
    assert done.returncode == 1 and len(lines_of(done)) == 1


def test_every_listener_can_be_turned_off_and_ipv6_works(tmp_path):
    with Weir(tmp_path, rules_of(API), http="off", admin="off") as weir:
        assert weir.http_address is None and weir.stop() == 0
    with Weir(tmp_path, rules_of(API), http="[::1]:0") as weir:
        assert weir.http_address.startswith("[::1]:") and weir.check().status == 200


def test_logs_can_be_json(tmp_path):
    with Weir(tmp_path, rules_of(API), "--log-format", "json", wait=False) as weir:
        weir.wait_event("started")
        weir.stop()
        lines = [json.loads(line) for line in weir.text().splitlines()]
    assert [line["event"] for line in lines] == ["listening", "listening", "headers_not_chosen", "started",
                                                 "stopping", "stopped"]
    assert lines[3]["limits"] == 1 and lines[3]["level"] == "info"


def test_without_rules_it_says_that_nothing_is_limited(tmp_path):
    with Weir(tmp_path) as weir:
        assert weir.check().status == 200
        assert "level=warning event=no_rules " in weir.text()
        assert weir.text().index("event=no_rules") < weir.text().index("event=started")
    with Weir(tmp_path, rules_of(API)) as weir:
        assert "no_rules" not in weir.text()


def test_no_line_is_logged_for_an_allowed_request(tmp_path):
    with Weir(tmp_path, rules_of({**API, "rate": "1000000/s", "burst": 1000000})) as weir:
        before = weir.text()
        with weir.client() as client:
            for _ in range(100):
                assert client.check(ip="192.0.2.1").status == 200
        assert weir.text() == before


def test_an_idle_server_takes_little_memory_of_its_state(tmp_path):
    """A page of the state becomes memory when it is written to; a look writes nothing."""
    rules = rules_of(API, server={"workers": 2}, state={"size": "256MiB"})
    with RedisWeir(tmp_path, rules, http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        with weir.redis() as redis:
            for _ in range(3):
                assert weir.metrics()["weir_table_bytes"] == 256 << 20
                assert "distinct_limits" in redis.ask("INFO")
        assert weir.check().status == 200
        assert memory_bytes(weir) < 64 << 20


# --- Reloading -----------------------------------------------------------------------------------

def test_reload_keeps_state_and_takes_new_limits(tmp_path):
    with Weir(tmp_path, rules_of(API), "--workers", "2") as weir:
        assert [weir.check(ip="192.0.2.1").status for _ in range(4)] == [200, 200, 200, 429]
        weir.write_rules(rules_of({**API, "burst": 5},
                                  {"name": "new", "match": {"path": "/new"}, "key": [],
                                   "rate": "1/hour"}))
        assert "event=reloaded limits=2" in weir.reload()
        replies = [weir.check(ip="192.0.2.1") for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert [weir.check(path="/new", ip="192.0.2.2").status for _ in range(2)] == [200, 429]


def test_a_bad_file_changes_nothing_and_names_every_error(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir:
        assert weir.check(ip="192.0.2.1").status == 200
        weir.write_rules("version: 1\nlimits:\n  - name: a\n    rate: x\n  - nam: b\n")
        assert "event=reload_failed" in weir.reload()
        assert weir.text().count("event=rules_error") >= 2
        assert re.search(r"event=rules_error file=\S+weir\.yaml line=4 column=\d+ message=",
                         weir.text())
        limit = weir.check(ip="192.0.2.1").json["limits"][0]
        assert (limit["name"], limit["remaining"]) == ("api", 1)
        weir.write_rules(rules_of(API))
        assert "event=reloaded" in weir.reload()
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == 0
        metrics = weir.metrics()
        assert metrics['weir_reloads_total{result="ok"}'] == 1
        assert metrics['weir_reloads_total{result="failed"}'] == 1


def test_a_reload_says_what_only_a_restart_can_change(tmp_path):
    server = {"http": {"address": "127.0.0.1:0"}, "workers": 1}
    with Weir(tmp_path, rules_of(API, server=server), http=None) as weir:
        weir.write_rules(rules_of(API, server={"http": {"address": "127.0.0.1:1"}, "workers": 2},
                                  state={"size": "128MiB"}))
        weir.reload()
        for setting in ("server.http", "server.workers", "state.size"):
            assert f"event=restart_needed setting={setting}\n" in weir.text()
        assert weir.check().status == 200


def test_a_reload_that_would_open_a_guarded_listener_is_refused(tmp_path):
    server = {"http": {"address": "0.0.0.0:0", "token": "x"}}
    with Weir(tmp_path, rules_of(API, server=server), http=None) as weir:
        weir.write_rules(rules_of(API, server={"http": {"address": "0.0.0.0:0"}}))
        assert "event=reload_failed" in weir.reload()
        weir.write_rules(rules_of(API, server={"http": {"address": "0.0.0.0:0", "token": "y"}}))
        assert "event=reloaded" in weir.reload()
        weir.http_address = weir.http_address.replace("0.0.0.0", "127.0.0.1")
        with weir.client() as client:
            assert client.post("/v1/check", {}, {"X-Weir-Token": "x"}).status == 401
            assert client.post("/v1/check", {}, {"X-Weir-Token": "y"}).status == 200


def test_a_watched_file_is_read_when_it_changes(tmp_path):
    with Weir(tmp_path, rules_of(API), "--watch") as weir:
        weir.write_rules(rules_of(API, {"name": "b", "key": [], "rate": "1/s"}))
        assert "limits=2" in weir.wait_event("reloaded", 1)
        weir.config.write_text("nonsense: [", encoding="utf-8")
        weir.wait_event("reload_failed", 1)
        assert len(weir.check(ip="192.0.2.1").json["limits"]) == 2
        weir.config.write_text(rules_of(API), encoding="utf-8")
        assert "limits=1" in weir.wait_event("reloaded", 2)


def test_reloads_under_load_lose_nothing(tmp_path):
    limit = {**API, "rate": "1/day", "burst": 2000}
    stop, admitted, failures = threading.Event(), [], []

    def ask(weir):
        with weir.client() as client:
            count = 0
            while not stop.is_set():
                status = client.check(ip="192.0.2.1").status
                count += status == 200
                if status not in (200, 429):
                    failures.append(status)
            admitted.append(count)

    with Weir(tmp_path, rules_of(limit), "--workers", "2") as weir:
        threads = [threading.Thread(target=ask, args=(weir,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(20):
            weir.write_rules(rules_of(limit, {"name": f"n{i}", "key": [], "rate": f"{9 + i}00000/s"}))
            assert "event=reloaded" in weir.reload()
        with weir.client() as client:
            while client.check(ip="192.0.2.1").status == 200:
                admitted.append(1)
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == [] and sum(admitted) == 2000


# --- Stopping ------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_an_idle_server_with_status_0(tmp_path, number):
    with Weir(tmp_path, rules_of(API)) as weir:
        weir.signal(number)
        assert weir.wait() == 0
        assert weir.text().rstrip().endswith("event=stopped")


def hammer(address, results, stopping):
    """Asks over one connection until the server says that it is closing; then counts what was
    begun and not answered."""
    answered = unanswered = 0
    client = Client(address)
    request = request_bytes("POST", "/v1/check", None, b'{"ip":"192.0.2.1"}')
    try:
        while True:
            client.send(request)
            unanswered = 1
            reply = client.reply()
            answered, unanswered = answered + 1, 0
            assert reply.status in (200, 429)
            if reply["connection"] == "close":
                assert client.closed()
                break
            assert not stopping.is_set() or reply.status
    except (EOFError, OSError):
        pass
    client.close()
    results.append((answered, unanswered))


def test_sigterm_under_load_loses_no_answer_that_was_begun(tmp_path):
    for _ in range(3):
        with Weir(tmp_path, rules_of(API), "--workers", "2") as weir:
            results, stopping = [], threading.Event()
            threads = [threading.Thread(target=hammer, args=(weir.http_address, results, stopping))
                       for _ in range(8)]
            for thread in threads:
                thread.start()
            with weir.client() as client:
                for _ in range(200):
                    client.check()
            stopping.set()
            assert weir.stop() == 0
            assert "stopping_hard" not in weir.text()  # by itself, and not at the end of its time
            for thread in threads:
                thread.join()
            assert len(results) == 8
            assert all(answered > 0 and unanswered == 0 for answered, unanswered in results), results


def test_a_request_that_is_half_sent_at_sigterm_is_still_answered(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir:
        with weir.client() as half, weir.client() as idle:
            data = request_bytes("POST", "/v1/check", None, b'{"ip":"192.0.2.1"}')
            half.send(data[:40])
            assert idle.auth().status == 200
            weir.signal(signal.SIGTERM)
            weir.wait_event("stopping")
            assert idle.closed()
            half.send(data[40:])
            reply = half.reply()
            assert reply.status == 200 and reply["connection"] == "close"
        assert weir.wait() == 0


def test_while_stopping_nobody_new_is_served_and_readyz_says_so(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir:
        with weir.client() as half, weir.admin() as admin:
            half.send(b"POST /v1/check HTTP/1.1\r\n")
            assert admin.request("GET", "/readyz").status == 200
            weir.signal(signal.SIGTERM)
            weir.wait_event("stopping")
            reply = admin.request("GET", "/readyz")
            assert reply.status == 503

            def refused():
                try:
                    connect(weir.http_address).close()
                except ConnectionRefusedError:
                    return True
                return False

            wait_until(refused, what="the end of the listener")
        assert weir.wait() == 0


def test_one_stop_asked_for_twice_is_still_gentle(tmp_path):
    """timeout(1) signals its child, and then its whole group."""
    with Weir(tmp_path, rules_of(API)) as weir, weir.client() as client:
        whole = request_bytes("POST", "/v1/check", {"Content-Type": "application/json"}, b"{}")
        client.send(whole[:-1])
        weir.signal(signal.SIGTERM)
        weir.wait_event("stopping")
        weir.signal(signal.SIGTERM)
        client.send(whole[-1:])
        assert client.reply().status == 200
        assert weir.wait() == 0
        assert "stopping_hard" not in weir.text()


def test_a_second_signal_stops_at_once(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir, weir.client() as client:
        client.send(b"POST /v1/check HTTP/1.1\r\n")
        weir.signal(signal.SIGTERM)
        weir.wait_event("stopping")
        wait_until(lambda: weir.signal(signal.SIGTERM) or "stopping_hard" in weir.text(),
                   what="the second signal's line")
        assert weir.wait() == 0
        assert weir.text().count("stopping_hard") == 1 and "a second signal" in weir.text()


def test_a_peer_that_is_gone_does_not_kill_the_server(tmp_path):
    with Weir(tmp_path, rules_of(API), "--workers", "1") as weir:
        for _ in range(50):
            sock = connect(weir.http_address)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.sendall(request_bytes("GET", "/v1/auth") * 50)
            sock.close()
        assert weir.check().status == 200
        weir.signal(signal.SIGPIPE)
        assert weir.check().status == 200
        assert weir.stop() == 0
