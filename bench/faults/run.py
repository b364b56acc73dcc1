#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How late answers are while a shared store fails, and how soon nodes use it again afterwards.

    bench/faults/run.py [--weir build/weir] [--fault NAME]

The scenes are those of tests/integration/store/redis/test_distributed_faults.py: three weir nodes
with a deadline of 20 ms for Redis, eighteen clients, and each way in which Redis or the way to it
fails.
Prints for each, over the answers from the fault's beginning on, the median, p99 and longest time,
and the time from the fault's end until every node reached the store again; and the same of a run
without a fault. Aimed at, on a machine that does nothing else: p99 within 5 ms of the deadline,
recovery within 2 s. Exit status 1 when that is missed.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTEGRATION = ROOT / "tests" / "integration"
sys.path[:0] = [str(INTEGRATION), str(INTEGRATION / "store" / "redis")]

DEADLINE_MS, MARGIN_MS, RECOVERY_S = 20, 5, 2.0


def measure(fault, mode="exact"):
    """One row; whether it is as good as aimed at."""
    from daemon.load import percentile
    from test_distributed_faults import KINDS, Scene, through
    with tempfile.TemporaryDirectory() as folder, Scene(Path(folder), mode) as scene:
        began, _, _, ended, up = through(scene, fault)
        during = [answer for kind in KINDS for answer in scene.of(kind, began)]
    late = percentile(during, 0.99)
    name = type(fault).__name__ if mode == "exact" else f"{type(fault).__name__}, {mode}"
    print(f"{name:20} {len(during):8} {percentile(during, 0.5):8.1f} {late:8.1f} "
          f"{percentile(during, 1):8.1f} {up - ended:8.2f}", flush=True)
    return late <= DEADLINE_MS + MARGIN_MS and up - ended <= RECOVERY_S


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"))
    parser.add_argument("--fault", help="one of them only")
    options = parser.parse_args()
    os.environ["WEIR"] = options.weir
    import test_distributed_faults as tests
    faults = [fault for fault in [tests.Fault, *tests.FAULTS]
              if options.fault in (None, fault.__name__)]
    if not faults:
        sys.exit(f"no fault {options.fault} (" +
                 ", ".join(fault.__name__ for fault in tests.FAULTS) + ")")
    print(f"{'':20} {'answers':>8} {'p50 ms':>8} {'p99 ms':>8} {'last ms':>8} {'back s':>8}")
    good = [measure(fault()) for fault in faults]
    if options.fault in (None, "Partition"):
        good.append(measure(tests.Partition(), "leased"))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
