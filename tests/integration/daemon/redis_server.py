# SPDX-License-Identifier: Apache-2.0
"""Real Redis servers of a test's own: one, a Cluster of six, a Sentinel group.

Each runs in a folder of its own on free ports of loopback, without persistence, and ends with the
test by its process id. The program is redis-server, or what REDIS_SERVER names: tests/integration/store runs with
every server that is installed."""

import os
import signal
import socket
import subprocess
import time

from daemon.redis import Error, Redis
from daemon.waiting import SECONDS_MAX, wait_until

BUS = 10000  # a Cluster node's second port is that much higher


def free_port():
    """A port below the ephemeral ones, whose bus is free too."""
    for port in range(21000 + int(time.time_ns() // 1000 % 9000), 32000):
        try:
            for number in (port, port + BUS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
            return port
        except OSError:
            continue
    raise AssertionError("no free port")


def server_program():
    return os.environ.get("REDIS_SERVER", "redis-server")


running = set()  # servers of this process, so that none outlives the choice of its program


class RedisServer:
    """One redis-server; `options` are its own, without the dashes: {"maxmemory": "2mb"}."""

    def __init__(self, folder, options=None, sentinel=None):
        self.folder = folder
        self.options = dict(options or {})
        self.sentinel = sentinel  # the text of a Sentinel's configuration
        self.port, self.process = None, None
        self.socket = folder / "redis.sock"
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """On the same port as before, if there was one: Redis has returned."""
        for _ in range(5):
            port = self.port or free_port()
            if self._start(port):
                self.port = port
                return
        raise AssertionError(self.log())

    def _start(self, port):
        options = {"port": port, "bind": "127.0.0.1", "dir": self.folder,
                   "logfile": self.folder / "redis.log"}
        if self.sentinel is None:
            options |= {"save": "", "appendonly": "no", "unixsocket": self.socket}
            command = [server_program()]
        else:
            conf = self.folder / "sentinel.conf"
            if not conf.exists():  # it keeps there what it has learnt
                conf.write_text(self.sentinel, encoding="utf-8")
            command = [server_program(), str(conf), "--sentinel"]
        for name, value in (options | self.options).items():
            command += ["--" + name, *([str(value)] if value != "" else [""])]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running.add(self)
        end = time.monotonic() + SECONDS_MAX
        while self.process.poll() is None and time.monotonic() < end:
            try:
                if self._listens(port):
                    return True
            except (OSError, EOFError):
                time.sleep(0.02)
        self.kill()
        return False

    def _listens(self, port):
        """Whether this process does: another test's may have been quicker to take the port."""
        with Redis(f"127.0.0.1:{port}", timeout=SECONDS_MAX) as client:
            if "requirepass" in self.options:
                client.ask("AUTH", self.options["requirepass"])
            return f"process_id:{self.process.pid}\r" in client.ask("INFO", "server")

    def log(self):
        return (self.folder / "redis.log").read_text(encoding="utf-8", errors="replace")

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"redis://{self.address}"

    def ask(self, *args):
        """One command over a connection of its own."""
        with Redis(self.address) as client:
            if "requirepass" in self.options:
                assert client.ask("AUTH", self.options["requirepass"]) == "OK"
            reply = client.ask(*args)
            assert not isinstance(reply, Error), reply
            return reply

    def info(self, name):
        """One field of INFO, as text."""
        return next(line.partition(":")[2] for line in self.ask("INFO").splitlines()
                    if line.startswith(name + ":"))

    def keys(self, pattern="*"):
        return sorted(self.ask("KEYS", pattern))

    def states(self, pattern="*"):
        """All keys of weir's but the store's secret."""
        return [key for key in self.keys(pattern) if not key.endswith(":secret")]

    def commands(self, name):
        """How often a command was called."""
        for line in self.ask("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{name}:"):
                return int(line.partition("calls=")[2].partition(",")[0])
        return 0

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        running.discard(self)


class Cluster:
    """Three masters with a replica each. Another master takes over about 1 s after one died."""

    def __init__(self, folder):
        options = {"cluster-enabled": "yes", "cluster-config-file": "nodes.conf",
                   "cluster-node-timeout": 1000, "repl-diskless-sync-delay": 0,
                   "repl-ping-replica-period": 1}  # until the first, CLUSTER SLOTS hides it
        self.servers = [RedisServer(folder / f"node{i}", options) for i in range(6)]

    def __enter__(self):
        try:
            for server in self.servers:
                server.start()
            self._join()
            wait_until(self.complete, what="the cluster")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()

    def _join(self):
        """What redis-cli --cluster create does, without its pauses of a second."""
        masters, replicas = self.servers[:3], self.servers[3:]
        for i, master in enumerate(masters):
            master.ask("CLUSTER", "ADDSLOTSRANGE", 16384 * i // 3, 16384 * (i + 1) // 3 - 1)
            master.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for server in self.servers[1:]:
            server.ask("CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)
        wait_until(lambda: all("cluster_known_nodes:6" in server.ask("CLUSTER", "INFO")
                               for server in self.servers), what="six nodes that know each other")
        for master, replica in zip(masters, replicas):
            replica.ask("CLUSTER", "REPLICATE", master.ask("CLUSTER", "MYID"))

    @staticmethod
    def cli(*arguments):
        done = subprocess.run(["redis-cli", *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=SECONDS_MAX, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def alive(self):
        return [server for server in self.servers if server.process.poll() is None]

    @property
    def url(self):
        return "redis-cluster://" + ",".join(server.address for server in self.alive()[:3])

    def nodes(self, asked=None):
        """[(id, port, flags, slots)] as one server sees them."""
        lines = (asked or self.alive()[0]).ask("CLUSTER", "NODES").splitlines()
        parts = [line.split() for line in lines]
        return [(part[0], int(part[1].partition("@")[0].rpartition(":")[2]), part[2].split(","),
                 part[8:]) for part in parts]

    def complete(self):
        """Whether all that run see every slot served, and by a master whose replica is in step."""
        for server in self.alive():
            if "cluster_state:ok" not in server.ask("CLUSTER", "INFO"):
                return False
            if any(len(slots) < 4 for slots in server.ask("CLUSTER", "SLOTS")):
                return False
            if server.info("role") == "slave" and server.info("master_link_status") != "up":
                return False
        return True

    def server_of(self, port):
        return next(server for server in self.servers if server.port == port)

    def master_of(self, key):
        """Who serves a key, and one of its replicas."""
        slot = self.alive()[0].ask("CLUSTER", "KEYSLOT", key)
        for first, last, master, *replicas in self.alive()[0].ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return self.server_of(master[1]), [self.server_of(each[1]) for each in replicas]
        raise AssertionError(f"nobody serves {key}")


class SentinelGroup:
    """A master, two replicas, three sentinels that agree on its death after half a second."""

    NAME = "limits"

    def __init__(self, folder):
        self.folder = folder
        self.servers = [RedisServer(folder / f"redis{i}", {"repl-diskless-sync-delay": 0})
                        for i in range(3)]
        self.sentinels = []

    def __enter__(self):
        try:
            master = self.servers[0]
            master.start()
            for replica in self.servers[1:]:
                replica.options["replicaof"] = f"127.0.0.1 {master.port}"
                replica.start()
            text = (f"sentinel monitor {self.NAME} 127.0.0.1 {master.port} 2\n"
                    f"sentinel down-after-milliseconds {self.NAME} 500\n"
                    f"sentinel failover-timeout {self.NAME} 3000\n")
            self.sentinels = [RedisServer(self.folder / f"sentinel{i}", sentinel=text)
                              for i in range(3)]
            for sentinel in self.sentinels:
                sentinel.start()
            wait_until(self.complete, what="the Sentinel group")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.sentinels + self.servers:
            server.kill()

    @property
    def url(self):
        return ("redis-sentinel://" + ",".join(server.address for server in self.sentinels)
                + "/" + self.NAME)

    def complete(self):
        """Whether the sentinels know of each other and of two replicas that are in step."""
        for sentinel in self.sentinels:
            result = sentinel.ask("SENTINEL", "MASTER", self.NAME)
            fields = dict(zip(result[::2], result[1::2]))
            if fields["num-other-sentinels"] != "2" or fields["num-slaves"] != "2":
                return False
        return all(server.info("master_link_status") == "up" for server in self.servers[1:])

    def master(self):
        port = int(self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.NAME)[1])
        return next(server for server in self.servers if server.port == port)


def pause(server):
    """SIGSTOP; the kernel still takes connections and bytes for it."""
    server.signal(signal.SIGSTOP)


def resume(server):
    server.signal(signal.SIGCONT)
