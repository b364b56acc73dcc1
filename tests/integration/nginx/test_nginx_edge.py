# SPDX-License-Identifier: Apache-2.0
"""Edge and origin: `weir serve` shows what nginx decides on the same state file, of workers that
live, end and are killed, and over its own restarts."""

import os
import signal

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.waiting import wait_until
from daemon.weir import Weir

pytestmark = needs_module

RULES = """version: 1
state: {{ file: {folder}/run/state, size: 4MiB }}
limits:
  - {{ name: two, match: {{ path: /a.txt }}, key: [header.x-key], rate: 2/30d,
       algorithm: fixed_window }}
  - {{ name: all, key: [header.x-key], rate: 1000000/30d, algorithm: fixed_window }}
"""
SERVER = """
    location / { weir on; }
"""


def start_weir(folder):
    (folder / "run").mkdir(exist_ok=True)
    (folder / "weir").mkdir(exist_ok=True)
    return Weir(folder / "weir", RULES.format(folder=folder), "--workers", "2")


def start_nginx(folder):
    return Nginx(folder, RULES.format(folder=folder), SERVER)


def decided(weir, front="nginx"):
    """Requests that a front has allowed and denied."""
    metrics = weir.metrics()
    return tuple(int(metrics[f'weir_edge_decisions_total{{front="{front}",result="{result}"}}'])
                 for result in ("allowed", "denied"))


def of_limit(weir, name):
    metrics = weir.metrics()
    return tuple(int(metrics.get(
        f'weir_edge_limit_decisions_total{{limit="{name}",result="{result}"}}', 0))
        for result in ("allowed", "denied"))


def series(weir, **query):
    with weir.admin() as client:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return client.request("GET", f"/v1/series?count=600&{text}").json["values"]


def ask(nginx, key, count):
    return [nginx.get("/a.txt", X_KEY=key).status for _ in range(count)]


def test_the_server_shows_what_nginx_decides_beside_what_it_decides(tmp_path):
    with start_weir(tmp_path) as weir, start_nginx(tmp_path) as nginx:
        assert decided(weir) == (0, 0)
        assert ask(nginx, "a", 5) == [200, 200, 429, 429, 429]
        with weir.client() as client:
            assert not client.check(path="/a.txt", attributes={"header.x-key": "a"}).json["allowed"]
            assert client.check(path="/b.txt", attributes={"header.x-key": "a"}).json["allowed"]
        assert decided(weir) == (2, 3)
        assert decided(weir, "library") == (0, 0)
        assert of_limit(weir, "two") == (2, 3)
        assert of_limit(weir, "all") == (5, 0)
        metrics = weir.metrics()
        assert metrics['weir_decisions_total{limit="two",result="denied"}'] == 1  # its own

        def sums(*fields, **query):
            values = series(weir, **query)
            return [sum(values[field]) for field in fields]
        wait_until(lambda: sums("nginx", "library", "http") == [5, 0, 2], what="the series by front")
        wait_until(lambda: sums("edge_allowed", "edge_denied") == [2, 3], what="those of requests")
        wait_until(lambda: sums("edge_allowed", "edge_denied", "allowed", "denied", limit="two")
                   == [2, 3, 0, 1], what="those of the limit")


def test_counts_of_killed_workers_are_neither_lost_nor_counted_twice(tmp_path):
    with start_weir(tmp_path) as weir, start_nginx(tmp_path) as nginx:
        asked = 0
        for _ in range(3):
            ask(nginx, "a", 20)
            asked += 20
            pids = set(nginx.pids())
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda gone=pids: len(nginx.pids()) == nginx.workers
                       and not gone & set(nginx.pids()), what="new workers")
        nginx.reload()
        ask(nginx, "a", 20)
        asked += 20
        assert decided(weir) == (2, asked - 2)
        assert of_limit(weir, "two") == (2, asked - 2)
    assert (tmp_path / "run" / "state.edge").stat().st_size == 4096 + (4 << 20)


def test_counts_go_on_over_restarts_of_the_server_and_begin_no_series(tmp_path):
    with start_nginx(tmp_path) as nginx:
        assert ask(nginx, "a", 4) == [200, 200, 429, 429]  # no server has run yet
        with start_weir(tmp_path) as weir:
            assert decided(weir) == (2, 2)
            ask(nginx, "a", 1)
            wait_until(lambda: sum(series(weir)["nginx"]) == 1, what="what it decided since")
        ask(nginx, "a", 2)
        with start_weir(tmp_path) as weir:
            assert decided(weir) == (2, 5)
            assert sum(series(weir)["nginx"]) == 0


def test_a_file_that_was_removed_is_made_again(tmp_path):
    with start_weir(tmp_path) as weir, start_nginx(tmp_path) as nginx:
        ask(nginx, "a", 3)
        assert decided(weir) == (2, 1)
        (tmp_path / "run" / "state.edge").unlink()

        def counts_again():
            ask(nginx, "b", 1)
            return sum(decided(weir)) > 0
        wait_until(counts_again, what="nginx to count in the new file")


def test_a_count_that_another_process_overwrites_is_shown_as_growth(tmp_path):
    with start_nginx(tmp_path) as nginx:
        ask(nginx, "a", 1)
    with start_weir(tmp_path) as weir:
        wait_until(lambda: decided(weir) == (1, 0), what="what nginx has decided")
        with (tmp_path / "run" / "state.edge").open("r+b") as file:
            file.seek(4096 + 64 + 8)  # of the first slot's first limit: the requests it has allowed
            file.write((2**64 - 2**30).to_bytes(8, "little"))  # 2^64 as a float
        wait_until(lambda: any(sum(series(weir, limit=limit).get("edge_allowed", [])) > 1e18
                               for limit in ("two", "all")), what="the growth")


# --- What could not be decided there --------------------------------------------------------------

STANDING = """standing: {{ by: [header.x-user], file: {folder}/weir/standing.db, map: {folder}/run/map,
            on_store_error: {how} }}
"""


def with_standing(folder, how):
    (folder / "run").mkdir(exist_ok=True)
    (folder / "weir").mkdir(exist_ok=True)
    return (RULES + STANDING).format(folder=folder, how=how)


@pytest.mark.parametrize("how,status", [("open", 200), ("closed", 403)])
def test_requests_without_a_map_of_standing_are_counted_and_logged(tmp_path, how, status):
    """A server has left its mark in the state, and the map is gone before nginx has seen it."""
    rules = with_standing(tmp_path, how)
    with Weir(tmp_path / "weir", rules) as weir:
        assert weir.metrics()["weir_edge_standing_unknown_total"] == 0
        assert weir.stop() == 0
    (tmp_path / "run" / "map").unlink()
    with Nginx(tmp_path, rules, SERVER) as nginx:
        assert {nginx.get("/b.txt", X_USER="ann", X_KEY="a").status for _ in range(7)} <= {status, 404}
        with Weir(tmp_path / "weir", rules) as weir:  # makes the map anew
            wait_until(lambda: weir.metrics()["weir_edge_standing_unknown_total"] == 7, what="the count")
            assert "requests=7" in weir.wait_event("edge_standing_unknown")

            def admitted_by_the_map():
                count = weir.metrics()["weir_edge_standing_unknown_total"]
                nginx.get("/a.txt", X_USER="ann", X_KEY="b")
                return weir.metrics()["weir_edge_standing_unknown_total"] == count
            wait_until(admitted_by_the_map, what="nginx to use the new map")


def test_requests_that_a_broken_state_left_to_on_store_error_are_counted(tmp_path):
    rules = RULES.format(folder=tmp_path) + "on_store_error: closed\n"
    (tmp_path / "run").mkdir()
    (tmp_path / "weir").mkdir()
    state = tmp_path / "run" / "state"
    with Weir(tmp_path / "weir", rules) as weir:
        assert weir.metrics().get('weir_edge_store_failed_total{front="nginx"}', 0) == 0
        assert weir.stop() == 0
    good = state.read_bytes()
    state.write_bytes(good[:100000])
    with Nginx(tmp_path, rules, SERVER) as nginx:
        assert {nginx.get("/a.txt", X_KEY="a").status for _ in range(5)} == {503}
        (tmp_path / "run" / "beside").write_bytes(good)
        (tmp_path / "run" / "beside").rename(state)
        wait_until(lambda: nginx.get("/b.txt", X_KEY="b").status != 503, what="the good state")
        with Weir(tmp_path / "weir", rules) as weir:
            metrics = weir.metrics()
            assert metrics['weir_edge_store_failed_total{front="nginx"}'] >= 5
            assert decided(weir)[1] >= 5, "they are denied requests, too"
