# SPDX-License-Identifier: Apache-2.0
"""The Redis protocol by hand, so that a test sees every byte and decides how they are cut."""

import re

from daemon.http import connect
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of


class Error(str):
    """An error reply."""


class RedisWeir(Weir):
    """A weir with a Redis listener on a free port, or where `redis` says."""

    def __init__(self, folder, rules=None, *options, redis="127.0.0.1:0", **parts):
        parts = {"http": "off", "admin": "off", **parts}
        super().__init__(folder, rules_of() if rules is None else rules, "--redis", redis,
                         *options, **parts)

    @property
    def redis_address(self):
        return re.search(r"event=listening front=redis address=(\S+)", self.text())[1]

    @property
    def redis_port(self):
        return int(self.redis_address.rpartition(":")[2])

    def redis(self, **options):
        return Redis(self.redis_address, **options)


def command_bytes(*args):
    """A request as client libraries write it."""
    parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"".join([b"*%d\r\n" % len(parts)]
                    + [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])


class Redis:
    """One connection."""

    def __init__(self, address, timeout=SECONDS_MAX):
        self.socket = connect(address, timeout)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def reply(self):
        """The next reply as Python says it."""
        line = self._line()
        kind, text = line[:1], line[1:]
        if kind == b"+":
            return text.decode()
        if kind == b"-":
            return Error(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"#":
            return text == b"t"
        if kind == b"_" or (kind in b"$*" and text == b"-1"):
            return None
        if kind in b"$=":
            size = int(text) + 2
            while len(self.buffer) < size:
                self._more()
            data, self.buffer = self.buffer[:size - 2], self.buffer[size:]
            return data.decode()
        if kind in b"*~":
            return [self.reply() for _ in range(int(text))]
        assert kind == b"%", line
        return {self.reply(): self.reply() for _ in range(int(text))}

    def ask(self, *args):
        self.send(command_bytes(*args))
        return self.reply()

    def closed(self):
        """Whether the server closes the connection, with nothing more on it."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
