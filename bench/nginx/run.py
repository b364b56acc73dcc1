#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ngx_http_weir_module beside limit_req and an nginx without limits: CPU time of a worker per request.

    bench/nginx/run.py [--module FILE] [--runs 9] [--seconds 2] [--connections 64] [--pin]

One nginx with one worker answers with a small static answer (`empty_gif`) in locations without a
limit, with limit_req, and with one and three limits of weir; each with one key, and with a million
keys that requests choose at random. wrk drives them in turn, so that what else the machine does falls
on all of them. CPU time is user and system time of the worker from /proc, divided by the requests
that wrk counted. Every request is admitted. Prints each run, the medians, the least, and what each
limit costs above the same requests without one. On a busy machine the least is nearer to what the
machine can do: other work only ever adds. The targets are at most 1.0 us for one limit of weir and 1.5 us
for three.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import configured  # noqa: E402
from processes import cpu_seconds, free_port, listens, pinned, wait_for  # noqa: E402

RULES = """version: 1
server: { headers: [@HEADERS@] }
limits:
  - { name: one, match: { path: /weir1 }, key: [k], rate: 4000000000/s, algorithm: gcra }
  - { name: first, match: { path: /weir3 }, key: [k], rate: 4000000000/s, algorithm: gcra }
  - { name: second, match: { path: /weir3 }, key: [k], rate: 4000000000/min,
      algorithm: sliding_window }
  - { name: third, match: { path: /weir3 }, key: [], rate: 4000000000/h,
      algorithm: fixed_window }
"""

HTTP = """keepalive_requests 100000000;
    limit_req_zone $arg_k zone=z:200m rate=1000000000r/s;
    weir_state @DIR@/run/state size=128m;"""

SERVER = """location = /plain { empty_gif; }
        location = /limit_req { limit_req zone=z burst=1000000 nodelay; empty_gif; }
        location = /weir1 { weir on; empty_gif; }
        location = /weir3 { weir on; empty_gif; }
        location = /return { return 200; }"""

SCRIPT = """
local keys = %d
request = function()
    return wrk.format("GET", "%s?k=" .. (keys > 1 and math.random(keys) or 1))
end
"""


def worker_of(master):
    children = Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii").split()
    for pid in children:
        if b"worker process" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    return None


def drive(folder, port, path, keys, options):
    """One run of wrk. Returns the requests that were answered 200."""
    script = folder / "request.lua"
    script.write_text(SCRIPT % (keys, path), encoding="ascii")
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "-s", str(script),
               f"http://127.0.0.1:{port}/"]
    done = subprocess.run(pinned(command, 1, options.pin), capture_output=True, text=True,
                          check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        sys.exit(f"bench/nginx: not every request to {path} was answered 200\n" + done.stdout)
    return int(re.search(r"(\d+) requests in", done.stdout).group(1))


def run(options, folder, port, worker):
    paths = ["/plain", "/limit_req", "/weir1", "/weir3"]
    cases = [(path, keys) for keys in (1, 1000000) for path in paths] + [("/return", 1)]
    results = {case: [] for case in cases}
    for _ in range(options.runs):
        for case in cases:
            before = cpu_seconds(worker)
            requests = drive(folder, port, *case, options)
            cost = (cpu_seconds(worker) - before) / requests * 1e6
            results[case].append(cost)
            print(f"{case[0]:12} {case[1]:9,} keys {cost:9.3f} us", flush=True)
    medians = {case: statistics.median(values) for case, values in results.items()}
    print(f"\n{'':12} {'keys':>9} {'median us':>12} {'above plain':>12} {'least us':>12} "
          f"{'above plain':>12}")
    for (path, keys), median in medians.items():
        above = statistics.median(a - b for a, b in zip(results[path, keys],
                                                        results["/plain", keys]))
        least = min(results[path, keys])
        print(f"{path:12} {keys:9,} {median:12.3f} {above:12.3f} {least:12.3f} "
              f"{least - min(results['/plain', keys]):12.3f}")


def main():
    parser = argparse.ArgumentParser(description="limits inside nginx")
    configured.add_module(parser)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--headers", default="draft", help="dialects of header fields; '': none")
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    options.seconds = int(options.seconds)
    module = configured.module_of(options)
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        command = configured.write(folder, module, port, RULES.replace("@HEADERS@", options.headers),
                                   HTTP, SERVER)
        master = subprocess.Popen(pinned(command, 0, options.pin))
        try:
            wait_for(master, lambda: listens(port) and worker_of(master.pid))
            run(options, folder, port, worker_of(master.pid))
        finally:
            master.terminate()
            master.wait()


if __name__ == "__main__":
    main()
