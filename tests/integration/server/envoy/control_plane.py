# SPDX-License-Identifier: Apache-2.0
"""A control plane of Envoy's rate limit service for a test: xDS, state of the world, over gRPC."""

import queue
from concurrent import futures
from pathlib import Path

import grpc

from daemon.grpc import messages
from daemon.waiting import wait_until

TYPE = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
UNITS = {"second": 1, "minute": 2, "hour": 3, "day": 4, "month": 5, "year": 6, "week": 7}


message = messages(Path(__file__).parent)
Request, Response, Config = (message(f"xds.{name}") for name in ("DiscoveryRequest", "DiscoveryResponse", "RateLimitConfig"))


def fill_value(out, value):
    """A JSON value as a google.protobuf.Value."""
    if value is None:
        out.null_value = 0
    elif isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, (int, float)):
        out.number_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, list):
        out.list_value.SetInParent()
        for one in value:
            fill_value(out.list_value.values.add(), one)
    else:
        out.struct_value.SetInParent()
        fill_struct(out.struct_value, value)


def fill_struct(out, values):
    for key, value in values.items():
        field = out.fields.add(key=key)
        fill_value(field.value, value)


def fill_descriptor(out, one):
    """A descriptor as a file has it."""
    out.key, out.value = one["key"], one.get("value", "")
    for name in ("shadow_mode", "detailed_metric", "quota_mode"):
        setattr(out, name, one.get(name, False))
    if "rate_limit" in one:
        limit = one["rate_limit"]
        out.rate_limit.SetInParent()
        out.rate_limit.unit = UNITS.get(limit.get("unit", "").lower(), 0)
        out.rate_limit.requests_per_unit = limit.get("requests_per_unit", 0)
        out.rate_limit.unlimited = limit.get("unlimited", False)
        out.rate_limit.name = limit.get("name", "")
        for replaced in limit.get("replaces", []):
            out.rate_limit.replaces.add(name=replaced["name"])
    if "metadata" in one:
        out.metadata.SetInParent()
        fill_struct(out.metadata, one["metadata"])
    for child in one.get("descriptors", []):
        fill_descriptor(out.descriptors.add(), child)


def config(domain, *descriptors, name=None):
    """A RateLimitConfig, of descriptors as a file has them."""
    made = Config(name=name or domain, domain=domain)
    for one in descriptors:
        fill_descriptor(made.descriptors.add(), one)
    return made


class ControlPlane:
    """Serves the resources that `put` gave last, to each stream; `requests` are what clients have sent, in order,
    as (number of the stream, request). `resend`: a refusal is answered at once, as go-control-plane does."""

    def __init__(self, credentials=None, port=0, resend=False):
        self.streams, self.requests, self.metadata, self.resend = [], [], [], resend
        self.version, self.resources = "", None
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), options=[("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(self._serve, Request.FromString,
                                                        lambda one: one.SerializeToString())
        service, method = METHOD[1:].split("/")
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        address = f"127.0.0.1:{port}"
        self.port = (self.server.add_secure_port(address, credentials) if credentials
                     else self.server.add_insecure_port(address))
        assert self.port
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for out in self.streams:
            out.put(None)
        self.server.stop(0).wait()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def put(self, version, *configs):
        self.version, self.resources = version, configs
        for out in self.streams:
            self._send(out)

    def _send(self, out):
        if self.resources is None:
            return
        response = Response(version_info=self.version, type_url=TYPE, nonce=f"nonce-{len(self.requests)}-{id(out)}")
        for one in self.resources:
            raw = one if isinstance(one, bytes) else one.SerializeToString()
            response.resources.add(type_url=TYPE, value=raw)
        out.put(response)

    def _serve(self, requests, context):
        out, number = queue.SimpleQueue(), len(self.streams)
        self.metadata.append(dict(context.invocation_metadata()))
        self.streams.append(out)

        def read():
            try:
                for index, request in enumerate(requests):
                    self.requests.append((number, request))
                    if index == 0 or (self.resend and request.HasField("error_detail")):
                        self._send(out)
            except grpc.RpcError:
                pass
            out.put(None)

        reader = futures.ThreadPoolExecutor(max_workers=1)
        reader.submit(read)
        while (one := out.get()) is not None:
            yield one
        reader.shutdown(wait=False)

    def wait_version(self, version):
        """Until a client has accepted a version; returns its request."""
        def accepted():
            return next((one for _, one in reversed(self.requests) if one.version_info == version
                         and one.response_nonce and not one.HasField("error_detail")), None)
        return wait_until(accepted, what=f"the acknowledgement of {version}")

    def refusals(self):
        return [one for _, one in self.requests if one.HasField("error_detail")]
