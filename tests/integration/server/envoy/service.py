# SPDX-License-Identifier: Apache-2.0
"""weir with a control plane in place of a folder of Envoy's configuration."""

from daemon.grpc import Stub
from daemon.weir import Weir, rules_of


class Service(Weir):
    """weir that takes Envoy's configuration from a control plane."""

    def __init__(self, folder, address, *options, xds=None, server=None, **envoy):
        parts = {"envoy": {"xds": {"server": address, "retry": "100ms", "backoff": "100ms", "backoff_max": "200ms",
                                   **(xds or {})}, **envoy}}
        super().__init__(folder, rules_of(server={"grpc": "127.0.0.1:0", **(server or {})}, **parts), *options)

    def ask(self, domain, *entries):
        with Stub(self.grpc_address) as stub:
            return stub.limit(domain, list(entries)).overall_code
