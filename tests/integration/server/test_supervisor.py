# SPDX-License-Identifier: Apache-2.0
"""weir under a supervisor: ready, alive, sockets that it is given, and upgrades that refuse nobody."""

import array
import fcntl
import http.client
import json
import os
import socket
import sys
import threading

import pytest

from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of

UPGRADES = int(os.environ.get("WEIR_UPGRADES", "20"))  # by hand: 200
BURST = 1000000
# Gives back one unit an hour: what remains says how many were charged.
COUNTED = {"name": "counted", "key": ["user"], "algorithm": "token_bucket", "rate": "1/h",
           "burst": BURST}


# Puts the sockets at the numbers from 3 on, then becomes the service.
LAUNCH = """import os, sys
fds = [int(fd) for fd in sys.argv[1].split(",") if fd]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
    os.close(fd)
if fds:
    os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()))
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])"""
LOWEST = 200  # of the sockets here: above all that LAUNCH needs


def high(fd):
    """The same file under a number that is out of the way; the first one is closed."""
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    os.close(fd)
    return copy


class Supervisor:
    """What systemd does for a service, as far as weir uses it: it gives sockets, hears how the
    service is, and keeps sockets from one process to the next."""

    def __init__(self, folder):
        self.path = str(folder / "notify.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.messages, self.changed = [], threading.Condition()
        self.store = {}  # name: sockets
        self.thread = threading.Thread(target=self._receive, daemon=True)

    def __enter__(self):
        self.socket.bind(self.path)
        self.thread.start()
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"END", self.path)
        self.thread.join(SECONDS_MAX)
        self.socket.close()
        for name in list(self.store):
            self.forget(name)

    def forget(self, name):
        for fd in self.store.pop(name, []):
            os.close(fd)

    def keep(self, name, fds):
        """Has these sockets for the next process, as a socket unit has."""
        self.store.setdefault(name, []).extend(high(fd) for fd in fds)

    def _receive(self):
        while True:
            text, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(1024))
            if text == b"END":
                return
            fds = array.array("i")
            for _, _, data in ancillary:
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
            values = dict(line.split("=", 1) for line in text.decode().splitlines())
            with self.changed:
                if "FDSTOREREMOVE" in values:
                    self.forget(values["FDNAME"])
                self.keep(values.get("FDNAME"), fds)
                self.messages.append((values, len(fds)))
                self.changed.notify_all()

    def wait(self, wanted, count=1):
        """Waits until wanted(values) has held for so many messages."""
        with self.changed:
            assert self.changed.wait_for(
                lambda: sum(wanted(values) for values, _ in self.messages) >= count, SECONDS_MAX), \
                self.messages

    def weir(self, folder, rules, *options, env=None, **more):
        """A weir that gets all sockets of the store."""
        fds = [fd for name in sorted(self.store, key=str) for fd in self.store[name]]
        prefix = [sys.executable, "-c", LAUNCH, ",".join(map(str, fds))]
        server = Weir(folder, rules, *options, prefix=prefix, fds=fds,
                      env={"NOTIFY_SOCKET": self.path} | (env or {}), **more)
        return server


@pytest.fixture(name="supervisor")
def fixture_supervisor(tmp_path):
    with Supervisor(tmp_path) as supervisor:
        yield supervisor


def given(supervisor, name="http", count=1):
    """Gives the supervisor a listening socket, so many times; returns its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        supervisor.keep(name, [os.dup(listener.fileno()) for _ in range(count)])
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_it_is_ready_when_it_answers_and_says_when_it_stops(supervisor, tmp_path):
    with supervisor.weir(tmp_path, rules_of(COUNTED)) as weir:
        supervisor.wait(lambda values: values.get("READY") == "1")
        assert weir.check(attributes={"user": "ann"}).status == 200
        assert weir.stop() == 0
        supervisor.wait(lambda values: values.get("STOPPING") == "1")


def test_a_reload_that_needs_new_workers_does_not_stop_it(supervisor, tmp_path):
    with supervisor.weir(tmp_path, rules_of(COUNTED, server={"workers": 2})) as weir:
        supervisor.wait(lambda values: values.get("READY") == "1")
        weir.write_rules(rules_of(COUNTED, state={"size": "32MiB"}))
        assert "event=reloaded" in weir.reload()
        assert weir.check(attributes={"user": "ann"}).status == 200
        assert not [values for values, _ in supervisor.messages if "STOPPING" in values]


def test_signs_of_life_come_when_they_are_wanted_only(supervisor, tmp_path):
    with supervisor.weir(tmp_path, rules_of(COUNTED), env={"WATCHDOG_USEC": "2000000"}):
        supervisor.wait(lambda values: values.get("WATCHDOG") == "1", count=2)
    supervisor.messages.clear()
    with supervisor.weir(tmp_path, rules_of(COUNTED)) as weir:
        assert weir.stop() == 0
    assert not [values for values, _ in supervisor.messages if "WATCHDOG" in values]


@pytest.mark.parametrize("sockets,workers", [(1, 3), (3, 3), (3, 1)])
def test_a_socket_that_is_given_is_used(supervisor, tmp_path, sockets, workers):
    address = given(supervisor, count=sockets)
    with socket.create_connection(address.split(":")) as early:  # before there is any server
        with supervisor.weir(tmp_path, rules_of(COUNTED), "--workers", workers,
                             http=address) as weir:
            early.sendall(b"GET /v1/check HTTP/1.1\r\nHost: a\r\n\r\n")
            assert early.recv(9) == b"HTTP/1.1 "
            for _ in range(10):
                assert weir.check(attributes={"user": "ann"}).status == 200
            unused = "passed_sockets_unused count=%d" % (sockets - workers)
            assert (unused in weir.text()) == (sockets > workers)


def test_a_socket_of_another_address_is_closed_and_named(supervisor, tmp_path):
    address = given(supervisor)
    with supervisor.weir(tmp_path, rules_of(COUNTED)) as weir:
        assert "event=passed_sockets_unused count=1" in weir.text()
        supervisor.forget("http")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address.split(":"))
        assert weir.http_address != address


def test_the_path_of_a_socket_that_is_kept_stays(supervisor, tmp_path):
    path = tmp_path / "http.sock"
    with supervisor.weir(tmp_path, rules_of(COUNTED), http=f"unix:{path}") as weir:
        supervisor.wait(lambda values: values.get("FDNAME") == "http" and "FDSTORE" in values)
        assert weir.stop() == 0
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(str(path))
        with supervisor.weir(tmp_path, rules_of(COUNTED), http=f"unix:{path}"):
            waiting.sendall(b"GET /v1/check HTTP/1.1\r\nHost: a\r\n\r\n")
            assert waiting.recv(9) == b"HTTP/1.1 "


class Caller(threading.Thread):
    """Asks until it is stopped. With `lasting`, over one connection for as long as the server keeps
    it. `wrong` is the first answer that is not 200."""

    def __init__(self, address, number, lasting):
        super().__init__(daemon=True)
        host, port = address.split(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.user, self.lasting = f"user-{number}", lasting
        self.stopping, self.answered, self.wrong = threading.Event(), 0, None

    def run(self):
        body = json.dumps({"attributes": {"user": self.user}})
        while not self.stopping.is_set() and not self.wrong:
            try:
                self.connection.request("POST", "/v1/check", body)
                answer = self.connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.wrong = repr(error)
                return
            if answer.status == 200:
                self.answered += 1
            else:
                self.wrong = f"{answer.status}"
            if not self.lasting:
                self.connection.close()


def wait_for_progress(callers):
    """Every caller has had an answer since now, or is done for."""
    before = [caller.answered for caller in callers]
    while any(caller.answered == count and not caller.wrong and caller.is_alive()
              for caller, count in zip(callers, before)):
        callers[0].join(0.01)
    assert [caller.wrong for caller in callers] == [None] * len(callers)


def test_upgrades_under_load_fail_no_request_and_lose_no_count(supervisor, tmp_path):
    rules = rules_of(COUNTED, state={"file": str(tmp_path / "state"), "size": "1MiB"})
    address = given(supervisor, count=2)
    options = {"http": address, "admin": given(supervisor, "admin")}
    weir = supervisor.weir(tmp_path, rules, "--workers", 2, **options)
    callers = [Caller(address, i, lasting=i % 2 == 0) for i in range(4)]
    try:
        weir.start()
        for caller in callers:
            caller.start()
        for upgrade in range(UPGRADES):
            wait_for_progress(callers)
            supervisor.wait(lambda values: values.get("READY") == "1", count=upgrade + 1)
            assert weir.stop() == 0
            weir = supervisor.weir(tmp_path, rules, "--workers", 2, **options)
            weir.start()
            assert "passed_sockets_unused" not in weir.text()
        wait_for_progress(callers)
        for caller in callers:
            caller.stopping.set()
            caller.join()
        for caller in callers:
            assert caller.wrong is None
            answer = weir.check(attributes={"user": caller.user}, dry_run=True)
            assert json.loads(answer.body)["limits"][0]["remaining"] == BURST - caller.answered
    finally:
        for caller in callers:
            caller.stopping.set()
        weir.kill()
