# SPDX-License-Identifier: Apache-2.0
"""Rules with penalties by outcome, for a `weir serve` and a program of a binding on one state file."""


def guessing_rules(folder):
    """A third 401 within an hour suspends a user, a third 403 or 5xx its network."""
    (folder / "run").mkdir(exist_ok=True)
    return f"""version: 1
headers: [draft]
server: {{ trusted_proxies: [10.0.0.0/8] }}
state: {{ file: {folder}/run/state, size: 4MiB }}
standing: {{ by: [client.ip/64, header.x-user], file: {folder}/standing.db }}
limits:
  - {{ name: all, key: [client.ip/64], rate: 1000/30d, algorithm: fixed_window }}
penalties:
  - {{ name: guess, key: [header.x-user], strikes: 2/h, for: [], outcomes: [401],
       ladder: [suspend 1h] }}
  - {{ name: network, key: [client.ip/64], strikes: 2/h, for: [], outcomes: [403, 5xx],
       ladder: [suspend 1h] }}
"""
