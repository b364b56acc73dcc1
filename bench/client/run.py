#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `weir fetch` comes to a limit in real time, and how 50 clients spread that start at once.

    bench/client/run.py [--weir build/weir] [--limit 50] [--seconds 20] [--only PART]

Starts servers of its own: each admits `limit` requests in a window of one second that is aligned to
the clock, and says so in the fields of one dialect, or says nothing. Prints for each dialect the time
for limit * seconds requests beside the ideal, and the part of answers that were 429, in all and
after the first two seconds. Then starts 50 clients with 20 requests each under one limit of
200 in 10 s, and prints the most arrivals in a tenth of a second, beside the mean. Last, 100 clients
that know nothing of each other share one limit of 100 in 10 s with 40 requests each, in fixed windows,
beside 100 that back off exponentially with full jitter (100 ms, doubled, at most 20 s). --only takes a
part of a dialect's name, `clients` or `apart`.
"""

import argparse
import collections
import http.client
import http.server
import math
import random
import subprocess
import threading
import time

DIALECTS = {
    "RateLimit (draft 11)": lambda limit, left, reset: {
        "RateLimit-Policy": f'"a";q={limit};w=1', "RateLimit": f'"a";r={left};t={math.ceil(reset)}'},
    "X-RateLimit, seconds": lambda limit, left, reset: {
        "X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left,
        "X-RateLimit-Reset": math.ceil(reset)},
    "X-RateLimit-Reset-After": lambda limit, left, reset: {
        "X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left,
        "X-RateLimit-Reset-After": f"{reset:.3f}"},
    "nothing": lambda *_: {},
}


class Listener(http.server.ThreadingHTTPServer):
    """With the default of 5, connections that come together are dropped, and tried again by the kernel
    after a second."""

    request_queue_size = 128


class Server:
    """Counts in windows; `arrivals` are (time, admitted)."""

    def __init__(self, limit, seconds, fields):
        self.arrivals = []
        lock, used = threading.Lock(), collections.Counter()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with lock:
                    now = time.time()
                    window = int(now / seconds)
                    good = used[window] < limit
                    used[window] += good
                    outer.arrivals.append((now, good))
                    left, reset = limit - used[window], seconds - now % seconds
                self.send_response(200 if good else 429)
                for name, value in fields(limit, left, reset).items():
                    self.send_header(name, str(value))
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def urls(self, count):
        return "".join(f"http://127.0.0.1:{self.port}/{number}\n" for number in range(count))


def start(options, *more):
    return subprocess.Popen([options.weir, "fetch", "--input", "-", "--json", "--quiet", "--retry",
                             "99", *more], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def feed(process, text):
    process.stdin.write(text.encode())
    process.stdin.close()


def measure(options, name, fields):
    requests = options.limit * options.seconds
    with Server(options.limit, 1.0, fields) as server:
        process = start(options)
        feed(process, server.urls(requests))
        status = process.wait()
        first, last = server.arrivals[0][0], server.arrivals[-1][0]
        refused = sum(not good for _, good in server.arrivals)
        late = [good for at, good in server.arrivals if at > first + 2]
        print(f"{name:26} {last - first:7.2f} s, ideal {options.seconds} s, "
              f"{100 * (last - first) / options.seconds - 100:+5.1f} %; 429: "
              f"{100 * refused / len(server.arrivals):.2f} %, after 2 s "
              f"{100 * late.count(False) / max(1, len(late)):.2f} %; exit {status}", flush=True)


def spread(options):
    fields = DIALECTS["X-RateLimit-Reset-After"]
    with Server(200, 10.0, fields) as server:
        processes = [start(options) for _ in range(50)]
        for process in processes:
            feed(process, server.urls(20))
        for process in processes:
            process.wait()
        first, last = server.arrivals[0][0], server.arrivals[-1][0]
        bins = collections.Counter(int((at - first) * 10) for at, _ in server.arrivals)
        later = [count for tenth, count in bins.items() if tenth >= 20]
        refused = sum(not good for _, good in server.arrivals)
        print(f"50 clients, 1000 requests: {last - first:.1f} s, ideal 40 to 50 s; "
              f"429: {refused}; in one tenth of a second, after 2 s: at most {max(later)}, "
              f"mean {sum(later) / ((last - first - 2) * 10):.1f}")


def back_off(port, requests):
    """One client without a pace."""
    connection, wait = http.client.HTTPConnection("127.0.0.1", port), 0.1
    for _ in range(requests):
        while True:
            connection.request("GET", "/")
            with connection.getresponse() as answer:
                answer.read()
            if answer.status == 200:
                wait = 0.1
                break
            time.sleep(random.uniform(0, wait))
            wait = min(2 * wait, 20)


def apart(options):
    """Both kinds at the same time, each with a server of its own."""
    fields = DIALECTS["RateLimit (draft 11)"]
    tenth = lambda *given: {**fields(*given), "RateLimit-Policy": '"a";q=100;w=10'}
    with Server(100, 10.0, tenth) as server, Server(100, 10.0, tenth) as other:
        processes = [start(options) for _ in range(100)]
        threads = [threading.Thread(target=back_off, args=(other.port, 40)) for _ in range(100)]
        for process, thread in zip(processes, threads):
            feed(process, server.urls(40))
            thread.start()
        for process, thread in zip(processes, threads):
            process.wait()
            thread.join()
        for name, one in ("100 clients apart", server), ("100 that back off", other):
            refused = sum(not good for _, good in one.arrivals)
            took = one.arrivals[-1][0] - one.arrivals[0][0]
            print(f"{name}: {len(one.arrivals) - refused} admitted, {refused} refused; {took:.1f} s, "
                  f"{took / 400:.2f} of N/R", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="build/weir")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for name, fields in DIALECTS.items():
        if options.only in name:
            measure(options, name, fields)
    if options.only in "clients":
        spread(options)
    if options.only in "apart":
        apart(options)


if __name__ == "__main__":
    main()
