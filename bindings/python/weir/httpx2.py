# SPDX-License-Identifier: Apache-2.0
"""As weir.httpx, for httpx2, whose classes and errors it has.

    session = weir.client.Session(state="limits.map")
    with httpx2.Client(transport=weir.httpx2.Transport(session)) as client: ...
"""

import httpx2

from weir._httpx import transports

__all__ = ["AsyncTransport", "Transport"]

Transport, AsyncTransport = transports(httpx2)
