#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast `weir replay` reads logs, in lines a second of CPU time (user and system), and its memory:
    bench/replay/run.py [LINES]
One limit by client; 100,000 clients, few of which send much; 20 lines a second. Each log runs three times, and the
fastest counts: on a machine that does other things as well, they take the caches."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WEIR = os.environ.get("WEIR", str(ROOT / "build" / "weir"))
RULES = """\
version: 1
limits:
  - {name: per-client, key: [client.ip/64], algorithm: token_bucket, rate: 20/min, burst: 10}
"""
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
          "curl/8.4.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)"]
PATHS = ["/", "/api/items/5", "/login", "/search?q=abc", "/static/app.css", "/api/v1/users/77/orders"]


def lines(count, combined):
    rng = random.Random(1)
    clients = [f"{rng.randint(1, 223)}.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"
               for _ in range(100_000)]
    stamp = ""
    for i in range(count):
        if i % 20 == 0:
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1_700_000_000 + i // 20))
        line = f'{clients[int(rng.random() ** 3 * len(clients))]} - - [{stamp}] "GET {rng.choice(PATHS)} HTTP/1.1" 200 ' \
               f"{rng.randint(100, 99999)}"
        yield f'{line} "-" "{rng.choice(AGENTS)}"\n' if combined else line + "\n"


def measure(*arguments):
    """CPU seconds and MB of RSS."""
    with subprocess.Popen([WEIR, "replay", *map(str, arguments)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = folder / "rules.yaml"
        rules.write_text(RULES, encoding="utf-8")
        for kind in "common", "combined":
            log = folder / f"{kind}.log"
            with open(log, "w", encoding="ascii") as out:
                out.writelines(lines(count, kind == "combined"))
        packed = folder / "combined.log.gz"
        with open(folder / "combined.log", "rb") as source, gzip.open(packed, "wb", 6) as out:
            while data := source.read(1 << 20):
                out.write(data)
        print(f"{'':34} {'M LINES/CPU-S':>14} {'CPU S':>7} {'RSS MB':>7} {'FILE MB':>8}")
        for title, log, options in [
                ("one limit, common", folder / "common.log", ["--config", rules]),
                ("one limit, combined", folder / "combined.log", ["--config", rules]),
                ("one limit, combined, gzip", packed, ["--config", rules]),
                ("--suggest, combined (read twice)", folder / "combined.log", ["--suggest"])]:
            seconds, megabytes = min(measure(*options, log) for _ in range(3))
            print(f"{title:34} {count / 1e6 / seconds:14.2f} {seconds:7.2f} {megabytes:7.0f} "
                  f"{log.stat().st_size / 1e6:8.0f}", flush=True)


if __name__ == "__main__":
    main()
