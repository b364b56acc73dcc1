# SPDX-License-Identifier: Apache-2.0
"""Waiting for a state, with a deadline that only a fault can reach."""

import time

SECONDS_MAX = 180


def wait_until(holds, seconds=SECONDS_MAX, what="the condition"):
    """Waits for a condition; returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        time.sleep(0.01)
