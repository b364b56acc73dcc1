# SPDX-License-Identifier: Apache-2.0
"""One request through each front end of a server, in words that all have in common: what became of
it is "allowed", "denied" (by a limit or by what is known of the caller), or "unread"."""

import json

from daemon import grpc as wire
from daemon.grpc import Stub
from daemon.http import Client
from daemon.redis import Error


def verdict_of(status):
    return {200: "allowed", 204: "allowed", 404: "allowed", 400: "unread", 413: "unread"}.get(
        status, "denied")


class Front:
    def __init__(self, weir):
        self.weir = weir

    def ask(self, *fields, ip="192.0.2.1", path="/", host="shop.example"):
        """`fields` are pairs of name and value; a name may come more than once."""
        raise NotImplementedError


class Check(Front):
    """/v1/check, where members of `headers` may be repeated as fields may."""

    def ask(self, *fields, ip="192.0.2.1", path="/", host="shop.example"):
        headers = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in fields)
        said = {"path": path} | ({"ip": ip} if ip else {}) | ({"host": host} if host else {})
        body = json.dumps(said)[:-1] + f',"headers":{{{headers}}}}}'
        with self.weir.client() as client:
            return verdict_of(client.request("POST", "/v1/check", body=body.encode()).status)


def send_fields(address, method, target, host, fields):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields]
    with Client(address) as client:
        client.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        return client.reply()


class Auth(Front):
    """/v1/auth, as Traefik asks."""

    def ask(self, *fields, ip="192.0.2.1", path="/", host="shop.example"):
        said = [("X-Forwarded-Uri", path)]
        said += [("X-Forwarded-Host", host)] if host else []
        said += [("X-Forwarded-For", ip)] if ip else []
        return verdict_of(send_fields(self.weir.http_address, "GET", "/v1/auth", "weir.internal",
                                      [*said, *fields]).status)


class Authz(Front):
    """Envoy's ext_authz over gRPC. What Envoy counts as a failure, and so lets pass with
    failure_mode_allow, raises."""

    def ask(self, *fields, ip="192.0.2.1", path="/", host="shop.example"):
        asked = wire.CheckRequest()
        http = asked.attributes.request.http
        http.path, http.host = path, host or ""
        for name, value in fields:
            one = http.header_map.headers.add()
            one.key, one.raw_value = name.lower(), value.encode()
        asked.attributes.source.address.socket_address.address = ip or ""
        with Stub(self.weir.grpc_address) as stub:
            answer = stub.call("AuthCheck", asked)
        if answer.status.code == 0:
            return "allowed"
        return verdict_of(answer.denied_response.status.code)


class Resp(Front):
    """WEIR.CHECK over the Redis protocol."""

    def ask(self, *fields, ip="192.0.2.1", path="/", host="shop.example"):
        words = ["path", path] + (["host", host] if host else []) + (["ip", ip] if ip else [])
        for name, value in fields:
            words += [f"header.{name}", value]
        with self.weir.redis() as redis:
            answer = redis.ask("WEIR.CHECK", *words)
        if isinstance(answer, Error):
            return "unread"
        return "allowed" if answer[1] == 1 else "denied"


FRONTS = [Check, Auth, Authz, Resp]


class NginxFront:
    """The module in nginx, whose answer to an allowed request is 200 or 404."""

    def __init__(self, nginx):
        self.nginx = nginx

    def ask(self, *fields, path="/", host="shop.example"):
        return verdict_of(send_fields(self.nginx.address, "GET", path, host, fields).status)
