# SPDX-License-Identifier: Apache-2.0
"""Requests to a `weir serve` under valgrind, 16 at a time over one connection: what its worker executes.

What the worker observes for the dashboard is left out: the first 2,048 requests of a second, and then one
in so many, so that it depends on the speed of the machine.
"""

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from processes import free_port, listens, wait_for  # noqa: E402

TOGETHER = 16
RULES = """version: 1
server: {{ headers: [draft, x-delta], http: 127.0.0.1:{http}, redis: 127.0.0.1:{redis}, admin: "off" }}
limits:
  - {{ name: one, match: {{ path: /a }}, key: [user], rate: 1000000/s, algorithm: gcra }}
"""
BODY = b'{"path":"/a","attributes":{"user":"u00000"}}'
# The request, and what ends each answer.
CHECK = (b"POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n"
         b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY), b"}]}")
THROTTLE = (b"*5\r\n$11\r\nCL.THROTTLE\r\n$5\r\nuser7\r\n$2\r\n99\r\n$7\r\n1000000\r\n$1\r\n1\r\n", b"*5\r\n")
REQUESTS = {"http": CHECK, "redis": THROTTLE}
OBSERVED = "weir_observe"
WORKER = " weir_worker_run\n"


def ask(port, door, count):
    request, sign = REQUESTS[door]
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        for _ in range(count // TOGETHER):
            client.sendall(request * TOGETHER)
            reply = b""
            while reply.count(sign) < TOGETHER:
                more = client.recv(65536)
                if not more:
                    sys.exit(f"bench/instructions: {door} ended: {reply[:200]!r}")
                reply += more
            if b"HTTP/1.1 4" in reply or b"-ERR" in reply:
                sys.exit(f"bench/instructions: {door} answered {reply[:200]!r}")


def executed(counts):
    """What the worker executed, without calls of OBSERVED; 0: it is another thread."""
    text = counts.read_text(encoding="utf-8", errors="replace")
    if WORKER not in text:
        return 0
    total = int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])
    number = re.search(rf"^c?fn=\((\d+)\) {OBSERVED}$", text, re.M)
    if not number:
        return total
    calls = re.findall(rf"^cfn=\({number[1]}\).*\ncalls=.*\n\S+ (\d+)$", text, re.M)
    return total - sum(map(int, calls))


def total(program, door, count):
    """Instructions of the worker that answers `count` requests."""
    with tempfile.TemporaryDirectory() as name:
        folder, ports = Path(name), {door: free_port() for door in REQUESTS}
        (folder / "weir.yaml").write_text(RULES.format(**ports), encoding="ascii")
        command = ["valgrind", "--tool=callgrind", "--separate-threads=yes",
                   f"--callgrind-out-file={folder}/counts", str(program), "serve", "--config",
                   f"{folder}/weir.yaml", "--workers", "1"]
        with open(folder / "log", "wb") as log:
            weir = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                wait_for(weir, lambda: listens(ports[door]))
                ask(ports[door], door, count)
            finally:
                weir.terminate()
                weir.wait()
        return sum(executed(counts) for counts in folder.glob("counts-*"))
