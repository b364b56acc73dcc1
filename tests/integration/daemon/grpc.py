# SPDX-License-Identifier: Apache-2.0
"""A real gRPC client of weir's services (Debian's python3-grpcio), over the .proto files that weir is
built from."""

import queue
import subprocess
import tempfile
import threading
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from daemon.frames import HEALTH
from daemon.waiting import SECONDS_MAX, wait_until

PROTOS = Path(__file__).parents[3] / "src/wire/grpc/proto"
RATE_LIMIT = "envoy.service.ratelimit.v3"
AUTH = "envoy.service.auth.v3"
QUOTA = "envoy.service.rate_limit_quota.v3"


def messages(folder):
    """The messages of a folder's .proto files: a function from a full name to a class. They have a pool of their own, as
    the well-known types in the default one are other files."""
    with tempfile.NamedTemporaryFile() as file:
        names = sorted(path.name for path in folder.glob("*.proto"))
        subprocess.run(["protoc-c", f"--descriptor_set_out={file.name}", f"-I{folder}", *names],
                       check=True, timeout=60)
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(file.name).read_bytes())
    pool, waiting = descriptor_pool.DescriptorPool(), list(files.file)
    while waiting:
        one = waiting.pop(0)
        if any(other.name in one.dependency for other in waiting):
            waiting.append(one)
        else:
            pool.Add(one)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


message = messages(PROTOS)

RateLimitRequest = message(f"{RATE_LIMIT}.RateLimitRequest")
RateLimitResponse = message(f"{RATE_LIMIT}.RateLimitResponse")
CheckRequest = message(f"{AUTH}.CheckRequest")
CheckResponse = message(f"{AUTH}.CheckResponse")
LimitRequest = message("weir.v1.LimitRequest")
LimitResponse = message("weir.v1.LimitResponse")
QuotaReports = message(f"{QUOTA}.RateLimitQuotaUsageReports")
QuotaResponse = message(f"{QUOTA}.RateLimitQuotaResponse")
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

    def quotas(self, domain="shop"):
        """A stream of reports and assignments."""
        return Quotas(self.channel, domain)

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


class Quotas:
    """A stream of Envoy's quota service: reports go out, the newest assignment of each bucket is
    kept. A bucket is a mapping."""

    def __init__(self, channel, domain):
        self.domain, self.actions, self.seen, self.error = domain, {}, [], None
        self.out = queue.SimpleQueue()
        self.call = channel.stream_stream(
            f"/{QUOTA}.RateLimitQuotaService/StreamRateLimitQuotas",
            lambda one: one.SerializeToString(), QuotaResponse.FromString)(iter(self.out.get, None))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call.cancel()
        self.out.put(None)
        self.reader.join(SECONDS_MAX)

    def _read(self):
        try:
            for response in self.call:
                for action in response.bucket_action:
                    key = tuple(sorted(action.bucket_id.bucket.items()))
                    self.actions[key] = action
                    self.seen.append((key, action))
        except grpc.RpcError as error:
            self.error = error

    def report(self, *buckets, allowed=1, denied=0, elapsed=0, domain=None):
        reports = QuotaReports(domain=self.domain if domain is None else domain)
        for bucket in buckets:
            usage = reports.bucket_quota_usages.add(num_requests_allowed=allowed,
                                                    num_requests_denied=denied)
            usage.time_elapsed.seconds = elapsed
            usage.bucket_id.bucket.update(bucket)
        self.out.put(reports)

    def action(self, bucket):
        """The newest action of a bucket, once there is one."""
        key = tuple(sorted(bucket.items()))
        return wait_until(lambda: self.actions.get(key), what=f"an assignment of {bucket}")

    def ended(self):
        """How the stream ended: a status and its text."""
        self.reader.join(SECONDS_MAX)
        return self.error.code(), self.error.details()
