# SPDX-License-Identifier: Apache-2.0
"""ngx_http_weir_module counts exactly: over workers, reloads, workers that are killed, and together
with `weir serve` on the same state; and it delays as the model does."""

import os
import signal
import threading
import time

import pytest

from daemon.http import Client
from daemon.nginx_module import Nginx, needs_module
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.algorithms import Queue

pytestmark = needs_module

N = 1000
RULES = f"""version: 1
limits:
  - {{ name: all, key: [], rate: {N}/30d, algorithm: token_bucket }}
"""
SERVER = """
    location = /weir-status { weir_status; }
    location / { weir on; try_files /a.txt =404; }
"""


class Crowd:
    """Clients that ask until they are stopped; a lost connection is opened anew."""

    def __init__(self, ask, clients=6):
        self.ask = ask
        self.statuses, self.pids, self.lost = [], set(), 0
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def run(self, number):
        client = None
        while not self.stopped.is_set():
            try:
                client = client or self.ask.open(number)
                status, pid = self.ask.ask(client)
                with self.lock:
                    self.statuses.append(status)
                    self.pids.add(pid)
                if len(self.statuses) % 7 == 0:  # other workers too
                    client.close()
                    client = None
            except (OSError, EOFError):  # refused, or cut off
                self.lose(client)
                client = None

    def lose(self, client):
        with self.lock:
            self.lost += 1
        if client:
            client.close()

    def admitted(self):
        with self.lock:
            return sum(status == 200 for status in self.statuses)

    def denied(self):
        with self.lock:
            return sum(status == 429 for status in self.statuses)


class AskNginx:
    def __init__(self, nginx):
        self.nginx = nginx

    def open(self, _):
        return Client(self.nginx.address)

    def ask(self, client):
        reply = client.request("GET", "/")
        return reply.status, int(reply["X-Pid"])


class AskBoth(AskNginx):
    """Every other client asks `weir serve`."""

    def __init__(self, nginx, weir):
        super().__init__(nginx)
        self.weir = weir

    def open(self, number):
        return self.weir.client() if number % 2 else super().open(number)

    def ask(self, client):
        if client.socket.getpeername()[1] == self.nginx.port:
            return super().ask(client)
        return (200 if client.check(path="/", method="GET").json["allowed"] else 429), 0


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_admit_exactly_n_together(tmp_path, workers):
    with Nginx(tmp_path, RULES, SERVER, workers=workers) as nginx:
        with Crowd(AskNginx(nginx), clients=8) as crowd:
            wait_until(lambda: crowd.denied() >= 200, what="denials")
        assert crowd.admitted() == N
        assert crowd.lost == 0
        assert len(crowd.pids) == workers


def test_nginx_and_weir_serve_count_on_one_state(tmp_path):
    (tmp_path / "weir").mkdir()
    with Nginx(tmp_path, RULES, SERVER) as nginx:
        rules = f"{RULES}state: {{ file: {nginx.state}, size: 4MiB }}\n"
        with Weir(tmp_path / "weir", rules) as weir, Crowd(AskBoth(nginx, weir)) as crowd:
            wait_until(lambda: crowd.denied() >= 200, what="denials")
        assert crowd.admitted() == N
        assert len(crowd.pids) > 1 and 0 in crowd.pids


def test_reloads_lose_no_count(tmp_path):
    with Nginx(tmp_path, RULES, SERVER) as nginx:
        with Crowd(AskNginx(nginx)) as crowd:
            for _ in range(4):
                nginx.reload()
            wait_until(lambda: crowd.denied() >= 200, what="denials")
            for _ in range(3):
                nginx.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(crowd.pids) > 4, what="answers of new workers")
        assert crowd.admitted() <= N
        # A connection that nginx closes with its old worker may carry a request that was counted.
        assert crowd.admitted() >= N - crowd.lost


def test_killed_workers_admit_no_more_and_block_nobody(tmp_path):
    with Nginx(tmp_path, RULES, SERVER) as nginx:
        with Crowd(AskNginx(nginx)) as crowd:
            for _ in range(8):
                seen = len(crowd.statuses)
                wait_until(lambda: len(crowd.statuses) > seen + 20, what="answers")
                pids = nginx.pids()
                if pids:
                    os.kill(pids[0], signal.SIGKILL)
                wait_until(lambda: len(nginx.pids()) >= 2, what="a new worker")
            wait_until(lambda: crowd.denied() >= 200, what="denials")
        assert crowd.admitted() <= N
        assert crowd.admitted() >= N - crowd.lost


def test_a_lease_ends_with_a_killed_worker(tmp_path):
    rules = """version: 1
limits:
  - { name: open, match: { path: /slow }, key: [], algorithm: concurrency, limit: 1, life: 1h }
  - { name: slow, match: { path: /slow }, key: [], rate: 1/h, burst: 5, algorithm: leaky_bucket,
      queue: true }
"""
    server = """
        location = /weir-status { weir_status; }
        location /slow { weir on; try_files /a.txt =404; }
        location /dry { weir on; rewrite ^ /slow break; try_files /a.txt =404; }
    """
    with Nginx(tmp_path, rules, server) as nginx:
        with nginx.client() as waiting:  # for an hour, with the lease
            assert waiting.request("GET", "/slow").status == 200
            waiting.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: delayed(nginx) == 1)
            assert nginx.get("/slow").status == 429
            for pid in nginx.pids():
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(nginx.pids()) >= 2, what="new workers")

        def admitted():
            with nginx.client() as client:
                client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
                return delayed(nginx) >= 2  # this one, or the one before it

        wait_until(admitted, what="the lease of the dead worker")


# --- Delays --------------------------------------------------------------------------------------

HOUR = 3600 * 10**9
QUEUE = """version: 1
limits: [ { name: q, key: [], rate: 1/h, burst: 10, algorithm: leaky_bucket, queue: true } ]
"""
QUEUE_SERVER = """
    location = /weir-status { weir_status; }
    location / { weir on; try_files /a.txt =404; }
    location = /dry { weir on; weir_dry_run on; try_files /a.txt =404; }
"""


def bounds_ms(model, begun, ended):
    """The delay that the model gives to a request of some moment between these."""
    return [-(-model.wait(t) // 10**6) for t in (ended, begun)]


def test_delays_are_those_of_the_model(tmp_path):
    with Nginx(tmp_path, QUEUE, QUEUE_SERVER) as nginx:
        early, late = Queue(1, HOUR, 10), Queue(1, HOUR, 10)
        for i in range(14):
            begun = time.monotonic_ns()
            reply = nginx.get("/dry")
            ended = time.monotonic_ns()
            assert reply["X-Verdict"] == ("allowed" if i == 0 else "delayed_dry_run" if i < 11
                                          else "denied_dry_run")
            if i >= 11:
                continue
            least, most = bounds_ms(early, begun, ended)[0], bounds_ms(late, begun, ended)[1]
            assert least <= int(reply["X-Delay"]) <= most, i
            early.charge(begun, 1)
            late.charge(ended, 1)


def test_delayed_requests_go_on_in_their_turn(tmp_path):
    rules = QUEUE.replace("1/h", "10/s")
    with Nginx(tmp_path, rules, QUEUE_SERVER) as nginx:
        begun = time.monotonic()
        clients = [nginx.client() for _ in range(6)]
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        delays = []
        for client in clients:
            reply = client.reply()
            assert reply.status == 200
            delays.append((int(reply["X-Delay"]), time.monotonic() - begun))
            client.close()
        for delay_ms, seconds in delays:
            assert seconds * 1000 >= delay_ms - 1  # never early; nginx counts whole milliseconds
        assert max(delay_ms for delay_ms, _ in delays) > 0


def delayed(nginx):
    return nginx.metrics()['weir_nginx_requests_total{front="nginx",verdict="delayed"}']


def cancelled(nginx):
    return nginx.metrics()["weir_nginx_cancelled_total{front=\"nginx\"}"]


def wait_in_queue(nginx):
    """A client whose request waits for hours."""
    before = delayed(nginx)
    client = nginx.client()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_until(lambda: delayed(nginx) > before, what="the delay")
    return client


def test_who_leaves_the_queue_gives_the_place_back_unless_another_is_behind(tmp_path):
    with Nginx(tmp_path, QUEUE, QUEUE_SERVER) as nginx:
        assert nginx.get("/").status == 200
        first, second = wait_in_queue(nginx), wait_in_queue(nginx)
        first.close()  # the second is behind it
        wait_until(lambda: cancelled(nginx) == 1)
        second.close()  # it was the last: its place is free, that of the first is not
        wait_until(lambda: cancelled(nginx) == 2)
        third = wait_in_queue(nginx)
        third.close()
        wait_until(lambda: cancelled(nginx) == 3)
        # One has passed and one place is kept: the next waits for two hours, less what has passed.
        assert 3600000 < int(nginx.get("/dry")["X-Delay"]) <= 7200000


def test_nothing_stays_charged_for_requests_that_leave(tmp_path):
    rules = """version: 1
limits:
  - { name: q, key: [], rate: 1/h, burst: 10, algorithm: leaky_bucket, queue: true }
  - { name: n, key: [], rate: 100/30d, algorithm: fixed_window }
"""
    with Nginx(tmp_path, rules, QUEUE_SERVER) as nginx:
        assert nginx.get("/").status == 200
        for i in range(20):  # more than the queue has places
            wait_in_queue(nginx).close()
            wait_until(lambda: cancelled(nginx) == i + 1)
        reply = nginx.get("/dry")
        assert 0 < int(reply["X-Delay"]) <= 3600000
