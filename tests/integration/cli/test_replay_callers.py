# SPDX-License-Identifier: Apache-2.0
"""One slow caller does not lower a limit that follows latency (`gradient2`), in a replay as on a server."""

import json
import re
import subprocess

from model.program import weir_path

RULES = """\
version: 1
adaptive:
  backend: { algorithm: gradient2, min: 50, max: 100 }
limits:
  - { name: api, key: [client.ip], algorithm: token_bucket, rate: 1000/s, burst: 1000, adaptive: backend }
"""
START, SECONDS, CALLERS = 1_700_000_000, 180, 20


def below_s(tmp_path, name, slow):
    """For how many seconds the limit was below 100 %, with so many requests of a slow caller a second."""
    rules, trace = tmp_path / "rules.yaml", tmp_path / f"{name}.jsonl"
    rules.write_text(RULES, encoding="utf-8")
    with trace.open("w", encoding="utf-8") as out:
        for second in range(SECONDS):
            requests = [(k / (3 * CALLERS), f"192.0.2.{k % CALLERS}", 20) for k in range(3 * CALLERS)]
            requests += [(k / slow, "198.51.100.1", 5000) for k in range(slow)]
            for part, ip, latency in sorted(requests):
                out.write(json.dumps({"t": START + second + part, "ip": ip, "status": 200, "latency_ms": latency}) + "\n")
    done = subprocess.run([weir_path(), "replay", "--config", rules, trace], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("LIMITS BY HEALTH"))
    line = lines[at + 1]
    assert line.startswith("api ") and " 50 %" in line
    parts = re.findall(r"(\d+)(min|s)\b", line)
    return sum(int(number) * (60 if unit == "min" else 1) for number, unit in parts)


def test_one_slow_caller_does_not_lower_a_limit_by_latency(tmp_path):
    alone = below_s(tmp_path, "alone", 0)
    assert 60 <= alone <= 70  # from 50 to 100 at 0.8 a second
    assert abs(below_s(tmp_path, "slow", 200) - alone) <= 2  # windows that begin a little earlier
