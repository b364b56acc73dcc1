# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 by hand, so that a test sees every byte and decides how they are cut."""

import json
import socket

from daemon.waiting import SECONDS_MAX


def connect(address, timeout=SECONDS_MAX, tls=None):
    """A socket to "HOST:PORT", "[IPV6]:PORT" or "unix:/PATH"; `tls`: an ssl.SSLContext."""
    if tls is not None:
        return tls.wrap_socket(connect(address, timeout), server_hostname="localhost")
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(address[5:])
        return sock
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Reply:
    """One answer: status, fields (lower-case names, last value), body."""

    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.pairs = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        self.fields = {name.lower(): value for name, value in self.pairs}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __getitem__(self, name):
        return self.fields.get(name.lower())


class Client:
    """One connection."""

    def __init__(self, address, timeout=SECONDS_MAX, tls=None, fields=None):
        self.socket = connect(address, timeout, tls)
        self.buffer = b""
        self.fields = fields or {}  # of every request, except its own

    @classmethod
    def over(cls, sock):
        """On a connection that is there already."""
        client = cls.__new__(cls)
        client.socket, client.buffer, client.fields = sock, b"", {}
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def reply(self, head_only=False):
        """The next answer. Every one has a Content-Length, but 304, which has no body."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        reply = Reply(head, b"")
        if reply.status in (100, 304) or head_only:
            return reply
        size = int(reply["content-length"])
        while len(self.buffer) < size:
            self._more()
        reply.body, self.buffer = self.buffer[:size], self.buffer[size:]
        return reply

    def closed(self):
        """Whether the server closes the connection, with nothing more on it."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def request(self, method, path, fields=None, body=None):
        self.send(request_bytes(method, path, {**self.fields, **(fields or {})}, body))
        return self.reply(head_only=method == "HEAD")

    def check(self, **fields):
        return self.post("/v1/check", fields)

    def post(self, path, value, fields=None):
        body = json.dumps(value).encode()
        return self.request("POST", path, {"Content-Type": "application/json", **(fields or {})},
                            body)

    def auth(self, uri="/", method="GET", client="192.0.2.1", query="", **fields):
        """What a reverse proxy asks."""
        result = {"X-Forwarded-Method": method, "X-Forwarded-Uri": uri, "X-Forwarded-For": client}
        result.update({name.replace("_", "-"): value for name, value in fields.items()})
        return self.request("GET", "/v1/auth" + query,
                            {name: value for name, value in result.items() if value is not None})


def request_bytes(method, path, fields=None, body=None):
    fields = {"Host": "localhost", **(fields or {})}
    lines = [f"{method} {path} HTTP/1.1"] + [f"{name}: {value}" for name, value in fields.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")
