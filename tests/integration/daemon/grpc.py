# SPDX-License-Identifier: Apache-2.0
"""A real gRPC client of weir's services (Debian's python3-grpcio), over the .proto files that weir is
built from."""

import subprocess
import tempfile
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from daemon.frames import HEALTH
from daemon.waiting import SECONDS_MAX

PROTOS = Path(__file__).parents[3] / "src/wire/grpc/proto"
RATE_LIMIT = "envoy.service.ratelimit.v3"
AUTH = "envoy.service.auth.v3"


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
LimitRequest = message("weir.v1.LimitRequest")
LimitResponse = message("weir.v1.LimitResponse")
HealthCheckRequest = message(f"{HEALTH}.HealthCheckRequest")
HealthCheckResponse = message(f"{HEALTH}.HealthCheckResponse")

UNARY = {
    "ShouldRateLimit": (f"/{RATE_LIMIT}.RateLimitService/ShouldRateLimit", RateLimitResponse),
    "AuthCheck": (f"/{AUTH}.Authorization/Check", CheckResponse),
    "Limit": ("/weir.v1.Limiter/Limit", LimitResponse),
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
