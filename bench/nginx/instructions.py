#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of nginx for one request, with ngx_http_weir_module, with limit_req and without a limit.

    bench/nginx/instructions.py [--module FILE] [--requests 2000]

The same nginx and rules as bench/nginx/run.py, under valgrind, which counts the instructions of a
process outside the kernel. So the figures hardly depend on the machine and not on what else it does,
and a change of a hundred instructions shows; what a miss of a cache costs does not. Each location is
measured with `requests` and with twice as many requests over one connection, and the difference divided
by `requests`.
"""

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
import configured  # noqa: E402
from processes import free_port, listens, wait_for  # noqa: E402
from run import HTTP, RULES, SERVER  # noqa: E402

LOCATIONS = ("/plain", "/limit_req", "/weir1", "/weir3")
END = b";"  # of the GIF


def ask(port, path, count):
    """One request after the other, as wrk sends them."""
    request = f"GET {path}?k=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode("ascii")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        for _ in range(count):
            client.sendall(request)
            reply = b""
            while b"GIF89a" not in reply or not reply.endswith(END):
                more = client.recv(65536)
                if not more:
                    sys.exit(f"bench/nginx: {path} closed its connection")
                reply += more
            if not reply.startswith(b"HTTP/1.1 200 "):
                sys.exit(f"bench/nginx: {path} answered {reply[:40]!r}")


def instructions(module, path, count):
    """Of an nginx that starts, answers `count` requests and ends."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        command = configured.write(folder, module, port, RULES.replace("@HEADERS@", "draft"), HTTP, SERVER,
                                   main="master_process off;")
        with open(folder / "valgrind.log", "wb") as log:
            nginx = subprocess.Popen(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts",
                 *command], stderr=log)
            try:
                wait_for(nginx, lambda: listens(port))
                ask(port, path, count)
            finally:
                nginx.terminate()
                nginx.wait()
        counts = (folder / "counts").read_text(encoding="utf-8", errors="replace")
        return int(re.search(r"^(?:summary|totals): (\d+)", counts, re.M).group(1))


def main():
    parser = argparse.ArgumentParser(description="instructions of limits inside nginx")
    configured.add_module(parser)
    parser.add_argument("--requests", type=int, default=2000)
    options = parser.parse_args()
    module = configured.module_of(options)
    if not shutil.which("valgrind"):
        sys.exit("bench/nginx: no valgrind; install it with script/bootstrap bench")
    plain = None
    print(f"{'':12} {'a request':>10} {'above plain':>12}")
    for path in LOCATIONS:
        once, twice = (instructions(module, path, times * options.requests)
                       for times in (1, 2))
        each = (twice - once) / options.requests
        plain = each if plain is None else plain
        print(f"{path:12} {each:10.0f} {each - plain:12.0f}", flush=True)


if __name__ == "__main__":
    main()
