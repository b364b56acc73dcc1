# SPDX-License-Identifier: Apache-2.0
"""Envoy's rate limit service for a test: its configuration, calls over gRPC, what it has counted."""

import json
import time
from pathlib import Path

from daemon.grpc import Stub
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of

OK, OVER_LIMIT = 1, 2
UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "MONTH": 30 * 86400,
         "YEAR": 365 * 86400, "WEEK": 7 * 86400}
UNIT_NAMES = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"]
UNLIMITED = 2**32 - 1


class Service(Weir):
    """weir with a folder of Envoy's configuration: `files` are texts by name; JSON is YAML."""

    def __init__(self, folder, files, *options, rules=None, store=None, server=None, **envoy):
        self.envoy_folder = Path(folder) / "envoy"
        self.envoy_folder.mkdir(exist_ok=True)
        for name, text in files.items():
            self.write(name, text)
        parts = {"envoy": {"config": str(self.envoy_folder), **envoy}}
        if store is not None:
            parts["store"] = store
        server = {"grpc": "127.0.0.1:0", **(server or {})}
        super().__init__(folder, rules or rules_of(server=server, **parts), *options)

    def write(self, name, text):
        path = self.envoy_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")

    def stub(self):
        return Stub(self.grpc_address)

    def get(self, path, address=None):
        """The body of an admin page, or of one at another address."""
        from daemon.http import Client
        with Client(address or self.admin_address) as client:
            reply = client.request("GET", path)
        assert reply.status == 200
        return reply.body.decode()

    def stats(self):
        """Everything that was counted: {name: value}."""
        lines = (line.rsplit(": ", 1) for line in self.get("/stats").splitlines())
        return {name: int(value) for name, value in lines}

    def counts(self, key):
        """The counts of a key that are not 0: {"total_hits": 1, …}."""
        prefix = f"ratelimit.service.rate_limit.{key}."
        return {name[len(prefix):]: value for name, value in self.stats().items()
                if name.startswith(prefix) and "." not in name[len(prefix):] and value}

    def json(self, domain, *descriptors, **fields):
        """POST /json: the reply."""
        body = {"domain": domain, "descriptors": [
            {"entries": [{"key": key, "value": value} for key, value in one]}
            for one in descriptors], **fields}
        with self.client() as client:
            return client.post("/json", body)


def configuration(domain, *descriptors):
    """A file of the configuration; JSON is YAML."""
    return json.dumps({"domain": domain, "descriptors": list(descriptors)})


def rule(key, unit=None, requests=None, *children, value=None, limit=None, **more):
    """One descriptor."""
    one = {"key": key, **({"value": value} if value is not None else {}), **more}
    if unit or limit:
        one["rate_limit"] = {**({"unit": unit, "requests_per_unit": requests} if unit else {}),
                             **(limit or {})}
    if children:
        one["descriptors"] = list(children)
    return one


def entries(text):
    """"a=b,c=d" as entries."""
    return [tuple(part.split("=", 1)) for part in text.split(",")] if text else []


def ask(stub, domain, *descriptors, **more):
    """ShouldRateLimit; descriptors as "a=b,c=d", or mappings whose `entries` are so."""
    given = [{**one, "entries": entries(one["entries"])} if isinstance(one, dict) else entries(one)
             for one in descriptors]
    return stub.limit(domain, *given, **more)


def result(status):
    """A status as (code, "requests/UNIT", remaining); the reset is checked against the clock."""
    code = {OK: "OK", OVER_LIMIT: "OVER"}[status.code]
    if not status.HasField("current_limit"):
        assert not status.HasField("duration_until_reset")
        return code, None, status.limit_remaining
    limit = status.current_limit
    unit = UNIT_NAMES[limit.unit]
    assert status.duration_until_reset.nanos == 0
    assert 1 <= status.duration_until_reset.seconds <= UNITS[unit]
    return code, f"{limit.requests_per_unit}/{unit}", status.limit_remaining


def tell(stub, domain, *descriptors, **more):
    """What the answer says of each descriptor."""
    return [result(one) for one in ask(stub, domain, *descriptors, **more).statuses]


def begin_window(unit, needed_s=5):
    """Waits, where that is needed, until a window has still so many seconds to go."""
    wait_until(lambda: UNITS[unit] - time.time() % UNITS[unit] >= needed_s,
               needed_s + SECONDS_MAX, f"a new {unit}")
