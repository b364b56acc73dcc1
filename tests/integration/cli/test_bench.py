# SPDX-License-Identifier: Apache-2.0
"""`weir bench` against weir itself, and against peers that do what a server should not."""

import json
import re
import socket
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from daemon.weir import Weir, rules_of
from model.program import run_weir

STALL_S = 0.4
LIMIT = {"name": "api", "match": {"path": "/"}, "key": ["client.ip/64"], "algorithm": "gcra",
         "rate": "1/hour", "burst": 3}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weir")
    with Weir(folder, rules_of(LIMIT), "--redis", f"unix:{folder}/redis", "--workers", "2") as weir:
        yield weir


def bench(*options, status=0, env=None):
    """Runs it; returns its JSON and what it says on stderr."""
    done = run_weir("bench", "--json", *options, env=env)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_burst_is_held_against_what_is_expected(weir):
    def burst(ip, count, *options, status=0):
        return bench("--target", f"http://{weir.http_address}", "--http", "POST /v1/check", "--header",
                     "Content-Type: application/json", "--body", json.dumps({"path": "/", "ip": ip}),
                     "--burst", str(count), *options, status=status)

    report, _ = burst("192.0.2.1", 40, "--expect-allowed", "3")
    assert (report["replies"], report["allowed"], report["denied"]) == (40, 3, 37)
    assert (report["plan"]["keys"], report["plan"]["connections"]) == (1, 40)
    _, said = burst("192.0.2.2", 40, "--expect-allowed", "4", status=3)
    assert "3 of 40 requests were allowed, and not 4 (tolerance 0)" in said
    burst("192.0.2.3", 5, "--expect-allowed", "2", status=3)
    burst("192.0.2.4", 5, "--expect-allowed", "4", "--tolerance", "1")
    burst("192.0.2.5", 5, "--expect-allowed", "4", "--tolerance", "25%")
    burst("192.0.2.6", 5, "--expect-allowed", "4", "--tolerance", "24.9%", status=3)
    burst("192.0.2.7", 5, "--expect-allowed", "0", status=3)


def test_what_failed_is_not_allowed_and_what_had_no_answer_fails(weir):
    nothing = ["--target", f"http://{weir.http_address}", "--http", "GET /no/such/path", "--burst", "7"]
    report, _ = bench(*nothing, "--expect-allowed", "0")
    assert (report["failed"], report["allowed"]) == (7, 0)
    bench(*nothing, status=1)
    with socket.socket() as deaf:  # has the port, and does not listen
        deaf.bind(("127.0.0.1", 0))
        done = run_weir("bench", "--command", "auth", "--target", f"http://127.0.0.1:{deaf.getsockname()[1]}", "--burst", "2",
                        "--expect-allowed", "0")
    assert done.returncode == 1


@pytest.mark.parametrize("options", [
    ["--burst", "5", "--requests", "5"], ["--burst", "5", "--rate", "5"], ["--burst", "0"], ["--tolerance", "5"],
    ["--expect-allowed", "-1"], ["--expect-allowed", "5", "--tolerance", "101%"], ["--expect-allowed", "5", "--tolerance", "%"]])
def test_expectations_that_cannot_be(options):
    assert run_weir("bench", *options).returncode == 2


def redis(weir):
    return f"unix:{weir.folder}/redis"


def commands(stream):
    """The commands that a client sends, one list of arguments each."""
    while line := stream.readline():
        arguments = []
        for _ in range(int(line[1:])):
            size = int(stream.readline()[1:])
            arguments.append(stream.read(size + 2)[:-2].decode())
        yield arguments


class Peer:
    """A server of one's own: `serve(peer, socket)` for each connection, in a thread of it."""

    def __init__(self, serve):
        self.serve, self.seen, self.lock = serve, [], threading.Lock()
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
            self.threads[-1].start()

    def _serve(self, client):
        with client:
            try:
                self.serve(self, client)
            except OSError:
                pass  # the client left first

    def note(self, command):
        with self.lock:
            self.seen.append(command)
            return len(self.seen)


@contextmanager
def peer_of(serve):
    peer = Peer(serve)
    try:
        yield peer
    finally:
        peer.listener.shutdown(socket.SHUT_RDWR)
        peer.listener.close()
        for thread in peer.threads:
            thread.join(30)


def answer_all(reply):
    def serve(peer, client):
        for command in commands(client.makefile("rb")):
            peer.note(command)
            client.sendall(reply)
    return serve


def of(peer):
    return ("--target", f"redis://127.0.0.1:{peer.port}")


# --- What it counts ------------------------------------------------------------------------------

def test_denials_of_a_hot_key_are_counted_to_the_last(weir):
    result, _ = bench("--target", redis(weir), "--resp", "CL.THROTTLE hot:{key} 15 1 3600",
                    "--distribution", "hot", "-n", 5001, "-t", 2, "-c", 5, "-P", 7)
    assert (result["replies"], result["denied"], result["failed"], result["lost"]) == (5001, 4985, 0, 0)
    assert result["plan"]["connections"] == 5
    assert result["latency_us"]["min"] <= result["latency_us"]["p50"] <= result["latency_us"]["p99.99"]
    assert result["latency_us"]["p99.99"] <= result["latency_us"]["max"]
    assert result["throughput"] == pytest.approx(result["replies"] / result["seconds"], rel=1e-6)
    assert result["server_cpu_us"] is None


@pytest.mark.parametrize("protocol,options", [("redis", []), ("redis", ["--resp3"]), ("http", [])])
def test_checks_and_denials_are_counted_in_either_protocol(tmp_path, protocol, options):
    with Weir(tmp_path, rules_of(LIMIT), "--redis", f"unix:{tmp_path}/redis") as weir:
        target = redis(weir) if protocol == "redis" else f"http://{weir.http_address}"
        result, _ = bench("--target", target, "--command", "check", "-n", 500, "--keys", 100,
                        "--distribution", "sequential", *options)
        assert (result["replies"], result["failed"]) == (500, 0)
        assert result["denied"] == 200  # five requests for each key, a burst of three


def test_authorisation_is_asked_over_http(weir):
    result, _ = bench("--target", f"http://{weir.http_address}", "--command", "auth",
                    "--distribution", "hot", "-n", 300, "-P", 10, "-c", 3)
    assert result["replies"] == 300
    assert result["denied"] >= 297  # a burst of 3


def test_the_cpu_time_of_the_server_is_reported_by_its_pid(weir):
    result, _ = bench("--target", redis(weir), "-n", 20000, "-P", 16, "--pid", weir.process.pid)
    assert 0 < result["server_cpu_us"] < 1000
    assert 0 < result["client_cpu_us"] < 1000


def test_a_pid_of_nobody_is_an_error(weir):
    done = run_weir("bench", "--target", redis(weir), "--pid", 2**22)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"weir: {redis(weir)}: no process 4194304\n"


def test_the_table_says_what_was_asked_and_measured(weir):
    done = run_weir("bench", "--target", redis(weir), "-n", 1000, "--pid", weir.process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    for pattern in [r"^command +CL\.THROTTLE key:\{key\} 15 30 60$", r"^replies +1000 in ",
                    r"^load +50 connections, 1 thread, pipelining 1, closed loop$",
                    r"^latency +us, not corrected for coordinated omission$",
                    r"^  p99\.99 +\d+\.\d$", r"^server +\d+\.\d{3} us CPU a request"]:
        assert re.search(pattern, done.stdout, re.MULTILINE), pattern


def test_a_load_by_time_ends_by_itself(weir):
    result, _ = bench("--target", redis(weir), "-d", 0.3, "--warmup", 0.1, "-c", 4)
    assert result["replies"] > 0
    assert 0.2 < result["seconds"] < 30


def test_an_open_loop_sends_at_its_rate(weir):
    result, _ = bench("--target", redis(weir), "-d", 0.5, "--rate", 2000, "-t", 2, "-c", 10)
    assert result["replies"] + result["unsent"] == 1000
    result, _ = bench("--target", redis(weir), "-n", 333, "--rate", 100000, "--spin")
    assert (result["replies"], result["unsent"]) == (333, 0)


# --- What it sends -------------------------------------------------------------------------------

def test_in_turn_every_key_is_asked_for_once():
    with peer_of(answer_all(b"+OK\r\n")) as peer:
        bench(*of(peer), "--resp", "SET '{key}' {ip}", "--distribution", "sequential",
              "--keys", 1001, "-n", 1001, "-t", 3, "-c", 7, "-P", 3)
        assert Counter(command[1] for command in peer.seen) == \
            Counter(f"{key:012}" for key in range(1001))
        for command in peer.seen:
            assert command[2] == f"2001:db8:0000:{int(command[1]):04x}::1"
        assert peer.connections == 7


def test_the_same_seed_asks_for_the_same_keys():
    with peer_of(answer_all(b":1\r\n")) as peer:
        for seed in (5, 5, 6):
            bench(*of(peer), "--command", "incr", "-n", 50, "-c", 1, "--seed", seed)
        first, second, third = peer.seen[:50], peer.seen[50:100], peer.seen[100:]
        assert first == second != third


def test_a_connection_logs_in_before_it_asks():
    with peer_of(answer_all(b"+OK\r\n")) as peer:
        bench(*of(peer), "--command", "ping", "-n", 1, "-c", 1, "--resp3", "--password", "s p")
        bench(*of(peer), "--command", "ping", "-n", 1, "-c", 1, env={"WEIR_BENCH_PASSWORD": "x"})
        assert peer.seen == [["AUTH", "s p"], ["HELLO", "3"], ["PING"], ["AUTH", "x"], ["PING"]]


def test_an_http_request_is_sent_as_given():
    got = []

    def serve(_, client):
        stream = client.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += stream.readline()
        got.append(head + stream.read(12))
        client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with peer_of(serve) as peer:
        bench("--target", f"http://127.0.0.1:{peer.port}", "--http", "PUT /{key}", "--header",
              "A: b", "--body", "{key}", "-n", 1, "-c", 1, "--distribution", "hot")
    assert got == [b"PUT /000000000000 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nA: b\r\n"
                   b"Content-Length: 12\r\n\r\n000000000000" % peer.port]


# --- Peers that make trouble ---------------------------------------------------------------------

def stall_once(peer, client):
    """Answers at once, but lets the first request of all wait."""
    for command in commands(client.makefile("rb")):
        if peer.note(command) == 1:
            threading.Event().wait(STALL_S)
        client.sendall(b"+OK\r\n")


def test_a_stall_counts_once_in_a_closed_loop_and_for_all_in_an_open_one():
    load = ("--command", "ping", "-c", 1, "-n", 800)
    stall_us = STALL_S * 1e6
    with peer_of(stall_once) as peer:
        result, _ = bench(*of(peer), *load)
        assert result["latency_us"]["max"] >= stall_us
        assert result["latency_us"]["p99"] < stall_us / 2
    with peer_of(stall_once) as peer:
        result, _ = bench(*of(peer), *load, "--expected-interval", 0.001)
        assert result["replies"] == 800
        assert result["latency_us"]["p90"] > stall_us / 4
    with peer_of(stall_once) as peer:
        # 400 of the 800 were due during the stall, and waited 200 ms on average.
        result, _ = bench(*of(peer), *load, "--rate", 1000)
        assert result["unsent"] == 0
        assert result["latency_us"]["p90"] > stall_us / 4
        assert result["latency_us"]["mean"] > stall_us / 8


def test_what_was_due_and_could_not_be_sent_is_reported():
    with peer_of(stall_once) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "-c", 1, "--rate", 1000, "-d", STALL_S / 2)
        assert result["replies"] == 1
        assert result["unsent"] == 1000 * STALL_S / 2 - 1


def test_replies_byte_by_byte_are_read():
    def serve(_, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in commands(client.makefile("rb")):
            for byte in b"*2\r\n$3\r\nabc\r\n:1\r\n":
                client.sendall(bytes([byte]))

    with peer_of(serve) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "-n", 60, "-c", 2, "-P", 3)
        assert (result["replies"], result["failed"]) == (60, 0)


def test_replies_larger_than_the_buffer_are_read():
    with peer_of(answer_all(b"$200000\r\n" + b"x" * 200000 + b"\r\n")) as peer:
        result, _ = bench(*of(peer), "--command", "get", "-n", 40, "-c", 2, "-P", 4)
        assert (result["replies"], result["failed"]) == (40, 0)


def test_a_server_that_does_not_read_is_waited_for():
    """Requests of 10 MB on one connection: more than sockets hold, so that sending has to stop."""
    started = threading.Event()

    def serve(peer, client):
        started.wait(30)
        answer_all(b"+OK\r\n")(peer, client)

    with peer_of(serve) as peer:
        timer = threading.Timer(STALL_S, started.set)
        timer.start()
        result, _ = bench(*of(peer), "--resp", "SET {key} " + "x" * 10000, "-n", 1500, "-c", 1,
                        "-P", 1000)
        timer.join()
        assert result["replies"] == 1500


def test_error_replies_are_failures_and_the_first_is_reported():
    with peer_of(answer_all(b"-ERR no\x07 such thing\r\n")) as peer:
        result, said = bench(*of(peer), "--command", "get", "-n", 10, "-c", 2, status=1)
        assert (result["replies"], result["failed"], result["denied"]) == (10, 10, 0)
        assert result["error"] == "ERR no? such thing"
        assert said == f"weir: redis://127.0.0.1:{peer.port}: ERR no? such thing\n"


def test_a_closed_connection_is_opened_again_and_its_requests_are_lost():
    def serve(peer, client):
        for command in commands(client.makefile("rb")):
            if peer.note(command) == 10:
                return
            client.sendall(b"+OK\r\n")

    with peer_of(serve) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "-n", 100, "-c", 1, status=1)
        assert (result["replies"], result["lost"], peer.connections) == (99, 1, 2)
        assert result["error"] == "the server closed a connection"


def test_an_http_server_may_close_after_each_reply():
    def serve(_, client):
        client.recv(4096)
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nOK")

    with peer_of(serve) as peer:
        result, _ = bench("--target", f"http://127.0.0.1:{peer.port}", "--http", "GET /", "-n", 50,
                        "-c", 2)
        assert (result["replies"], result["lost"], result["failed"]) == (50, 0, 0)


def test_a_server_that_goes_away_ends_the_load():
    def serve(peer, client):
        peer.listener.close()
        client.recv(1)

    peer = Peer(serve)
    result, _ = bench(*of(peer), "--command", "ping", "-c", 1, status=1)
    assert (result["replies"], result["lost"]) == (0, 1)


def test_a_server_that_stops_answering_is_given_up():
    gone = threading.Event()

    def serve(_, client):
        client.recv(1)
        gone.wait(60)

    with peer_of(serve) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "-c", 3, "--timeout", 0.2, status=1)
        gone.set()
        assert (result["replies"], result["lost"]) == (0, 3)
        assert result["error"] == "the server has stopped answering"


def test_a_pause_of_the_load_is_not_a_server_that_does_not_answer():
    with peer_of(answer_all(b"+OK\r\n")) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "--rate", 0.4, "-n", 3, "--timeout", 2)
        assert (result["replies"], result["lost"]) == (3, 0)


@pytest.mark.parametrize("reply", [b"HTTP/1.1 200 OK\r\n\r\n", b"*-2\r\n", b":1\r\n:2\r\n"])
def test_what_is_no_reply_to_the_request_is_reported(reply):
    with peer_of(answer_all(reply)) as peer:
        result, _ = bench(*of(peer), "--command", "ping", "-c", 1, "-n", 2, status=1)
        assert result["error"] == "a reply is not of the protocol that was asked for"


def test_nobody_listening_is_an_error():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        done = run_weir("bench", "--target", f"redis://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"weir: redis://127.0.0.1:{port}: cannot connect: Connection refused\n"


def test_a_wrong_password_is_an_error():
    with peer_of(answer_all(b"-WRONGPASS no\r\n")) as peer:
        done = run_weir("bench", *of(peer), "--password", "x")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(": cannot log in: WRONGPASS no\n")


# --- The command line ----------------------------------------------------------------------------

@pytest.mark.parametrize("options", [
    ["--target", "127.0.0.1:1"], ["--target", "redis://"], ["--command", "nothing"],
    ["--command", "auth", "--target", "redis://127.0.0.1"],
    ["--command", "ping", "--target", "http://127.0.0.1"],
    ["--resp", "PING", "--http", "GET /"], ["--resp", "PING", "--command", "ping"],
    ["--resp", ""], ["--resp", "GET 'a"], ["--http", "GET"], ["--http", "GET "],
    ["--resp", "PING", "--target", "http://127.0.0.1"],
    ["--http", "GET /", "--target", "redis://127.0.0.1"],
    ["--resp", "PING", "--body", "x"], ["--resp", "PING", "--header", "A: b"],
    ["--http", "GET /", "--header", "A: b\nC: d"], ["--http", "GET /", "--denied", "0=1"],
    ["--denied", "x"], ["--keys", "0"], ["--keys", "4294967297"], ["--distribution", "normal"],
    ["--seed", "-1"], ["--pid", "0"], ["--pid", "4194305"], ["--threads", "0"], ["--threads", "65"],
    ["--threads", "2", "--connections", "1"], ["--connections", "10001"],
    ["--pipeline", "10001"], ["--resp", "SET k " + "x" * 60000, "-P", "1000"],
    ["--rate", "0"], ["--rate", "nan"], ["--rate", "-1"],
    ["--rate", "1", "--expected-interval", "1"],
    ["--duration", "0"], ["--duration", "1s"], ["--duration", "1e3"], ["--warmup", "-1"],
    ["--requests", "0"], ["--requests", "1", "--duration", "1"],
    ["--requests", "1", "--warmup", "1"], ["--timeout", "0"], ["--expected-interval", "0"],
    ["extra"], ["--unknown"],
], ids=" ".join)
def test_a_wrong_command_line_is_refused(options):
    done = run_weir("bench", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weir: ")
    assert done.stderr.endswith("Try 'weir bench --help' for more information.\n")


def test_help_names_every_option():
    done = run_weir("bench", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("target", "command", "resp", "http", "header", "body", "denied", "resp3",
                   "password", "keys", "distribution", "seed", "threads", "connections",
                   "pipeline", "rate", "expected-interval", "spin", "duration", "warmup",
                   "requests", "timeout", "pid", "json"):
        assert f"--{option}" in done.stdout
