# SPDX-License-Identifier: Apache-2.0
"""The servers of the comparison, each a process of its own on one core, and the load on them."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from processes import free_port, listens  # noqa: E402

SERVER_CPU, CLIENT_CPU = "0", "1"
CONNECTIONS = 50  # as redis-benchmark
START_S = 15


class Failure(Exception):
    """Something that makes the figures worthless; its text is for the user."""


class Server:
    """A process that listens on `port`; ended when left."""

    def __init__(self, name, command, port, cpus=SERVER_CPU):
        self.name, self.port = name, port
        self.process = subprocess.Popen(["taskset", "-c", cpus, *command],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not listens(port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Failure(f"{name} does not start: {' '.join(command)}")
            time.sleep(0.05)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid  # taskset has become the server

    def resident_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE).group(1)) * 1024

    def ask(self, *arguments):
        """One command, one reply of at most a line."""
        words = [str(argument).encode() for argument in arguments]
        request = b"*%d\r\n" % len(words)
        request += b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            stream = connection.makefile("rb")
            line = stream.readline().decode().strip()
            return stream.readline().decode().strip() if line.startswith("$") else line


def redis_server(options, name):
    port = free_port()
    return Server(name, [options.redis_server, "--port", str(port), "--bind", "127.0.0.1",
                         "--save", "", "--appendonly", "no", "--io-threads", "1",
                         "--maxclients", "1000"], port)


def weir_server(options, name, workers=1, cpus=SERVER_CPU):
    port = free_port()
    return Server(name, [str(options.weir), "serve", "--config", str(HERE / "rules.yaml"),
                         "--redis", f"127.0.0.1:{port}", "--http", "off", "--admin", "off",
                         "--workers", str(workers)], port, cpus)


def responder(options, loop):
    """bench/compare/responder.c, which chooses its port itself."""
    command = ["taskset", "-c", SERVER_CPU, str(options.responder), loop]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    server = Server.__new__(Server)
    server.name, server.process = loop, process
    line = process.stdout.readline()
    process.stdout.close()
    if not line.startswith("port "):
        server.stop()
        raise Failure(f"{loop} does not start")
    server.port = int(line.split()[1])
    return server


def load(options, server, command, *more, cpus=CLIENT_CPU):
    """One run of weir bench; its JSON."""
    arguments = [str(options.weir), "bench", "--json", "--target",
                 f"redis://127.0.0.1:{server.port}", "--pid", str(server.pid), "--resp", command,
                 "--keys", str(options.keys), "-c", str(CONNECTIONS), *map(str, more)]
    done = subprocess.run(["taskset", "-c", cpus, *arguments], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failure(f"{server.name}, {command}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if result["denied"] > 0:
        raise Failure(f"{server.name}, {command}: {result['denied']} requests were denied: the "
                      "peers have not done the same work")
    return result
