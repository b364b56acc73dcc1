# SPDX-License-Identifier: Apache-2.0
"""Transports of httpx over weir.client: what uses a client of httpx keeps to servers' rate limits.

    session = weir.client.Session(state="limits.map")
    with httpx.Client(transport=weir.httpx.Transport(session)) as client: ...
    async with httpx.AsyncClient(transport=weir.httpx.AsyncTransport(session)) as client: ...

A final answer comes as it is, also the last 429. Where there is none:
httpx.PoolTimeout for a request that found no room under the limit in its time, httpx.ReadTimeout, or
httpx.ConnectError. An answer is returned when it has begun, and its body read while it arrives
(httpx.ReadError: it broke off); httpx's own timeouts, proxies and certificates are not used. The session
is the caller's to close.
"""

import httpx

from weir._httpx import transports

__all__ = ["AsyncTransport", "Transport"]

Transport, AsyncTransport = transports(httpx)
