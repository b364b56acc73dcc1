# SPDX-License-Identifier: Apache-2.0
"""Transports of httpx2 over weir.client: what uses a client of httpx2 keeps to servers' rate limits.

    session = weir.client.Session(state="limits.map")
    with httpx2.Client(transport=weir.httpx2.Transport(session)) as client: ...
    async with httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(session)) as client: ...

A final answer comes as it is, also the last 429. Where there is none:
httpx2.PoolTimeout for a request that found no room under the limit in its time, httpx2.ReadTimeout, or
httpx2.ConnectError. A body is read whole before the answer is returned; httpx2's own timeouts, proxies
and certificates are not used. The session is the caller's to close.
"""

import httpx2

from weir._httpx import transports

__all__ = ["AsyncTransport", "Transport"]

Transport, AsyncTransport = transports(httpx2)
