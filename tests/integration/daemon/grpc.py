# SPDX-License-Identifier: Apache-2.0
"""A real gRPC client of weir's services (Debian's python3-grpcio), over the .proto files that weir is
built from; and a connection of HTTP/2 frames made by hand, for what no client would send."""

import socket
import struct
import subprocess
import tempfile
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from daemon.http import connect
from daemon.waiting import SECONDS_MAX

PROTOS = Path(__file__).parents[3] / "src/wire/grpc/proto"
RATE_LIMIT = "envoy.service.ratelimit.v3"
AUTH = "envoy.service.auth.v3"
HEALTH = "grpc.health.v1"


def _load():
    """A pool of its own: the well-known types in the default one are other files."""
    with tempfile.NamedTemporaryFile() as file:
        names = sorted(path.name for path in PROTOS.glob("*.proto"))
        subprocess.run(["protoc-c", f"--descriptor_set_out={file.name}", f"-I{PROTOS}", *names],
                       check=True, timeout=60)
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(file.name).read_bytes())
    pool, waiting = descriptor_pool.DescriptorPool(), list(files.file)
    while waiting:
        one = waiting.pop(0)
        if any(other.name in one.dependency for other in waiting):
            waiting.append(one)
        else:
            pool.Add(one)
    return pool


POOL = _load()
_FACTORY = message_factory.MessageFactory(POOL)


def message(name):
    """The class of a message, by its full name."""
    return _FACTORY.GetPrototype(POOL.FindMessageTypeByName(name))


RateLimitRequest = message(f"{RATE_LIMIT}.RateLimitRequest")
RateLimitResponse = message(f"{RATE_LIMIT}.RateLimitResponse")
CheckRequest = message(f"{AUTH}.CheckRequest")
CheckResponse = message(f"{AUTH}.CheckResponse")
HealthCheckRequest = message(f"{HEALTH}.HealthCheckRequest")
HealthCheckResponse = message(f"{HEALTH}.HealthCheckResponse")

UNARY = {
    "ShouldRateLimit": (f"/{RATE_LIMIT}.RateLimitService/ShouldRateLimit", RateLimitResponse),
    "AuthCheck": (f"/{AUTH}.Authorization/Check", CheckResponse),
    "HealthCheck": (f"/{HEALTH}.Health/Check", HealthCheckResponse),
}


def options(**more):
    """A channel of its own, so that tests don't share connections."""
    return [("grpc.use_local_subchannel_pool", 1), *more.items()]


class Stub:
    """Calls over one channel."""

    def __init__(self, address, credentials=None, **more):
        target = address if address.startswith("unix:") else f"ipv4:{address}"
        self.channel = (grpc.secure_channel(target, credentials, options(**more)) if credentials
                        else grpc.insecure_channel(target, options(**more)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def call(self, method, request, timeout=SECONDS_MAX, metadata=None, **more):
        path, response = UNARY[method]
        return self.raw(path, request.SerializeToString(), response.FromString, timeout, metadata,
                        **more)

    def raw(self, path, data, deserialize=None, timeout=SECONDS_MAX, metadata=None, **more):
        """One unary call of bytes; raises grpc.RpcError."""
        return self.channel.unary_unary(path, None, deserialize)(
            data, timeout=timeout, metadata=metadata, **more)

    def health(self, service="", **more):
        return self.call("HealthCheck", HealthCheckRequest(service=service), **more).status

    def watch(self, service=""):
        return self.channel.unary_stream(
            f"/{HEALTH}.Health/Watch", HealthCheckRequest.SerializeToString,
            HealthCheckResponse.FromString)(HealthCheckRequest(service=service))

    def reflect(self, requests, version="v1"):
        package = f"grpc.reflection.{version}"
        return self.channel.stream_stream(
            f"/{package}.ServerReflection/ServerReflectionInfo",
            lambda one: one.SerializeToString(),
            message(f"{package}.ServerReflectionResponse").FromString)(requests,
                                                                       timeout=SECONDS_MAX)

    def limit(self, domain, *descriptors, hits_addend=0, **more):
        """ShouldRateLimit; a descriptor is a list of (key, value), or a mapping with `entries` and
        other fields."""
        request = RateLimitRequest(domain=domain, hits_addend=hits_addend)
        for given in descriptors:
            fields = given if isinstance(given, dict) else {"entries": given}
            one = request.descriptors.add()
            for key, value in fields["entries"]:
                one.entries.add(key=key, value=value)
            if "limit" in fields:
                one.limit.requests_per_unit, one.limit.unit = fields["limit"]
            if "hits_addend" in fields:
                one.hits_addend.value = fields["hits_addend"]
            one.is_negative_hits = fields.get("is_negative_hits", False)
        return self.call("ShouldRateLimit", request, **more)


# --- Frames by hand ------------------------------------------------------------------------------

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
