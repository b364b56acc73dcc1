# SPDX-License-Identifier: Apache-2.0
"""A connection of HTTP/2 frames made by hand, for what no client of gRPC would send."""

import socket
import struct

from daemon.http import connect

HEALTH = "grpc.health.v1"

MAGIC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
ENHANCE_YOUR_CALM = 11


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name, value):
    """A field of a header block: without indexing, without Huffman."""
    def text(data):
        data = data.encode() if isinstance(data, str) else data
        if len(data) < 127:
            return bytes([len(data)]) + data
        rest, size = len(data) - 127, b"\x7f"
        while rest >= 128:
            size += bytes([rest & 127 | 128])
            rest >>= 7
        return size + bytes([rest]) + data

    return b"\x00" + text(name) + text(value)


def head(path=f"/{HEALTH}.Health/Check", *more, method="POST", content_type="application/grpc"):
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "weir"),
              ("content-type", content_type), ("te", "trailers"), *more]
    return b"".join(literal(name, value) for name, value in fields)


def prefixed(data, compressed=0):
    return bytes([compressed]) + struct.pack(">I", len(data)) + data


def request(stream, data=b"", path=f"/{HEALTH}.Health/Check", *more):
    """A whole unary call."""
    return (frame(HEADERS, END_HEADERS, stream, head(path, *more)) +
            frame(DATA, END_STREAM, stream, prefixed(data)))


class Frames:
    """One connection of frames; settings are exchanged on entering."""

    def __init__(self, address, settings=b""):
        self.socket, self.buffer = connect(address), b""
        self.send(MAGIC + frame(SETTINGS, 0, 0, settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def try_send(self, data):
        """False once the server has closed."""
        try:
            self.socket.sendall(data)
        except (ConnectionError, socket.timeout):
            return False
        return True

    def read(self):
        """The next frame: (kind, flags, stream, payload); None: the connection is closed."""
        while True:
            if len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + size:
                    kind, flags = self.buffer[3:5]
                    stream = int.from_bytes(self.buffer[5:9], "big") & 0x7fffffff
                    payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
                    return kind, flags, stream, payload
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                return None
            if not data:
                return None
            self.buffer += data

    def read_until(self, *kinds, stream=None):
        """The next frame of these kinds (and stream); None: the connection is closed."""
        while True:
            one = self.read()
            if one is None or (one[0] in kinds and stream in (None, one[2])):
                return one

    def closed_with(self):
        """The error code of the last GOAWAY before the connection is closed; None: there was none."""
        code = None
        while (one := self.read_until(GOAWAY)) is not None:
            code = int.from_bytes(one[3][4:8], "big")
        return code

    def end_of(self, stream):
        """All DATA of a stream up to its end, and how it ended: END_STREAM, or the code of its
        reset."""
        data = b""
        while (one := self.read_until(DATA, HEADERS, RST_STREAM, stream=stream)) is not None:
            kind, flags, _, payload = one
            if kind == RST_STREAM:
                return data, int.from_bytes(payload, "big")
            data += payload if kind == DATA else b""
            if flags & END_STREAM:
                return data, None
        return data, -1
