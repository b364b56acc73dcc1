# SPDX-License-Identifier: Apache-2.0
"""A server that counts requests, and says of its limit what a test wants: the truth, or lies."""

import collections
import email.utils
import math
import re
import threading
import time

from daemon.proxies import Application, Handler


class Counting(Application):
    """Admits `limit` requests in a window of `seconds`, aligned to the clock, and says what `fields`
    makes of (limit, remaining, seconds to the reset)."""

    def __init__(self, limit=20, seconds=1.0, fields=None, storm=0):
        self.paths, self.statuses, self.keys = [], collections.Counter(), []
        lock, used = threading.Lock(), collections.Counter()
        outer = self

        class Limited(Handler):
            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(size)
                with lock:
                    now = time.time()
                    window = int(now / seconds)
                    good = used[window] < limit and len(outer.paths) >= storm
                    used[window] += good
                    left, reset = limit - used[window], seconds - now % seconds
                    status = self.status(good)
                    outer.paths.append(self.path)
                    outer.statuses[status] += 1
                    outer.keys.append(self.headers.get("Idempotency-Key"))
                body = f"{self.path}\n".encode()
                self.send_response(status)
                for name, value in (fields(limit, left, reset, good) if fields else {}).items():
                    self.send_header(name, str(value))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def status(self, good):
                """/status/503 always, /once/503 for the first time only."""
                made = re.match(r"/(status|once)/(\d+)", self.path)
                if made and (made[1] == "status" or self.path not in outer.paths):
                    return int(made[2])
                return 200 if good else 429

            do_GET = do_POST = do_PUT = answer

        super().__init__(Limited)

    def urls(self, count):
        return [f"http://{self.address}/thing/{number}" for number in range(count)]


def draft(limit, left, reset, _):
    return {"RateLimit-Policy": f'"a";q={limit};w=1', "RateLimit": f'"a";r={left};t={math.ceil(reset)}'}


def lies_high(*_):
    return {"X-RateLimit-Limit": 10**9, "X-RateLimit-Remaining": 10**8, "X-RateLimit-Reset": 1}


def lies_past(_limit, _left, reset, good):
    past = {"X-RateLimit-Remaining": -3, "X-RateLimit-Reset": int(time.time()) - 86400}
    return past if good else past | {"Retry-After": "Thu, 01 Jan 1998 00:00:00 GMT"}


def lies_text(*_):
    return {"RateLimit": '"open;r=1', "X-RateLimit-Reset": "soon", "Retry-After": "\x7f-1"}


def clock_off(limit, left, reset, _):
    """An hour ahead, in Date and in what counts from it."""
    ahead = time.time() + 3600
    return {"Date": email.utils.formatdate(ahead, usegmt=True), "X-RateLimit-Limit": limit,
            "X-RateLimit-Remaining": left, "X-RateLimit-Reset": int(ahead + reset) + 1}


LIES = [None, lies_high, lies_past, lies_text, clock_off]
