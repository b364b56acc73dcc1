# SPDX-License-Identifier: Apache-2.0
"""For the tests of a program: a limiter whose clock stands still until the test moves it.

    with weir.testing.open("weir.yaml") as limiter:
        ...                     # until a request is denied
        limiter.advance(60)     # a minute later

Its state is memory of the test, also where the rules name a file. Delays of requests and renewals of
leases go by real time.
"""

import os
import time

from weir._weir import Limiter

__all__ = ["open", "peer"]


def open(rules, *, at=None, **options):  # weir.testing.open, as weir.open
    """Opens a rules file. `at`: when the clock begins, a datetime or seconds of Unix time; None: now.
    `options` are those of weir.open, without a state file."""
    start = time.time() if at is None else at.timestamp() if hasattr(at, "timestamp") else at
    if not start > 0:
        raise ValueError("at: a datetime, or seconds of Unix time")
    return Limiter(os.path.abspath(rules), test_clock=start, **options)


def peer(app, address):
    """An ASGI application whose requests come from this address, for test clients that have none, such
    as Starlette's."""

    async def connected(scope, receive, send):
        if scope["type"] in ("http", "websocket"):
            scope = {**scope, "client": (address, 50000)}
        await app(scope, receive, send)

    return connected
