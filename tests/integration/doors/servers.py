# SPDX-License-Identifier: Apache-2.0
"""The doors of `weir serve`: /v1/check, /v1/auth, the Redis protocol, Envoy's ext_authz. Each has a trusted and
an untrusted listener, of two servers on one state."""

import json
import re

from daemon.grpc import Stub, message
from daemon.http import Client
from daemon.redis import Error, Redis

from .door import HOP, LINES, NAMED, Answer, Door


def octets(text):
    return text.encode("utf-8")


def head(method, target, host, fields):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in fields)]
    return octets("\r\n".join(lines)) + b"\r\n\r\n"


class Check(Door):
    name = "/v1/check"
    differs = (LINES,)

    def __init__(self, servers):
        self.servers = servers

    def __enter__(self):
        self.clients = {trusted: Client(weir.http_address) for trusted, weir in self.servers.items()}
        return self

    def __exit__(self, *_):
        for client in self.clients.values():
            client.close()

    def ask(self, request):
        asked = {"method": request.method, "path": request.target, "host": request.host, "ip": request.ip,
                 "headers": request.joined(), "attributes": request.named}
        reply = self.clients[request.trusted].post("/v1/check", asked)
        if reply.status in (400, 413):
            return Answer("unreadable")
        assert reply.status in (200, 429), reply.body
        return Answer.of_limits(reply.json["allowed"],
                                [(limit["name"], limit["remaining"]) for limit in reply.json["limits"]])


class Auth(Check):
    name = "/v1/auth"
    differs = (NAMED, HOP)

    def ask(self, request):
        fields = [("X-Forwarded-Method", request.method), ("X-Forwarded-Host", request.host),
                  ("X-Forwarded-Uri", request.target), ("X-Forwarded-For", request.ip), *request.fields]
        client = self.clients[request.trusted]
        client.send(head("GET", "/v1/auth", "weir", fields))
        reply = client.reply()
        return Answer.of_fields(reply.status, reply["RateLimit"])


class Resp(Door):
    name = "WEIR.CHECK"
    differs = (LINES,)

    def __init__(self, servers):
        self.servers = servers

    def __enter__(self):
        self.clients = {trusted: Redis(re.search(r"event=listening front=redis address=(\S+)", weir.text())[1])
                        for trusted, weir in self.servers.items()}
        for client in self.clients.values():
            client.ask("HELLO", "3")
        return self

    def __exit__(self, *_):
        for client in self.clients.values():
            client.socket.close()

    def ask(self, request):
        arguments = ["method", request.method, "path", request.target, "host", request.host, "ip", request.ip]
        given = {**request.named}
        for name, value in request.joined().items():
            # A command has no other way to give a field than by its name.
            given.setdefault(next((one for one in given if one.lower() == f"header.{name}"), f"header.{name}"), value)
        for name, value in given.items():
            arguments += [name, octets(value)]
        if not any(name.lower().startswith("header.") for name in given):
            arguments += ["header.x-none", "1"]  # the fields are known
        reply = self.clients[request.trusted].ask("WEIR.CHECK", *arguments)
        if isinstance(reply, Error):
            return Answer("unreadable")
        return Answer.of_limits(reply["allowed"], [(one["name"], one["remaining"]) for one in reply["limits"]])


class Authz(Door):
    name = "ext_authz"
    differs = ()

    def __init__(self, servers):
        self.servers = servers

    def __enter__(self):
        self.stubs = {trusted: Stub(weir.grpc_address).__enter__() for trusted, weir in self.servers.items()}
        return self

    def __exit__(self, *_):
        for stub in self.stubs.values():
            stub.__exit__()

    def ask(self, request):
        asked = message("envoy.service.auth.v3.CheckRequest")()
        http = asked.attributes.request.http
        http.method, http.path, http.host = request.method, request.target, request.host
        asked.attributes.source.address.socket_address.address = request.ip
        http.header_map.headers.add(key=":authority", raw_value=octets(request.host))
        for name, value in request.fields:
            http.header_map.headers.add(key=name.lower(), raw_value=octets(value))
        for name, value in request.named.items():
            asked.attributes.context_extensions[name] = value
        answer = self.stubs[request.trusted].call("AuthCheck", asked)
        if answer.status.code == 3:
            return Answer("unreadable")
        denied = answer.status.code != 0
        options = answer.denied_response.headers if denied else answer.ok_response.headers
        fields = {one.header.key.lower(): one.header.value for one in options}
        return Answer.of_fields(answer.denied_response.status.code if denied else 200, fields.get("ratelimit"))


def named_field(request):
    """What a program behind a door gives by name, in a field that no rule reads."""
    return ("X-Door-Named", json.dumps(request.named))
