# SPDX-License-Identifier: Apache-2.0
"""Units bought above a limit (`weir grant --above`), as ngx_http_weir_module takes them from the
state that it shares with `weir serve`."""

import os
import random
import signal
import subprocess

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import weir_path
from test_nginx_exact import AskBoth, Crowd
from test_nginx_module import Back

pytestmark = needs_module

ADMIN = {"Authorization": "Bearer s3cret"}
RULES = """version: 1
server: {{ admin: {{ token: s3cret }} }}
state: {{ file: {folder}/run/state, size: 4MiB }}
limits:
  - {{ name: month, match: {{ path: [/, /settled, /refunded] }}, key: [header.x-user], rate: 5/360d,
       algorithm: fixed_window, top_up: 366d, refund_on: [5xx], refund_cap: 100% }}
  - {{ name: all, match: {{ header.x-both: "1" }}, key: [], rate: {everything}/360d,
       algorithm: fixed_window }}
"""


@pytest.fixture(scope="module", name="back")
def fixture_back():
    with Back() as back:
        yield back


@pytest.fixture(name="pair")
def fixture_pair(tmp_path, back, request):
    """`weir serve` and nginx on one state."""
    server = f"""
        location = /weir-status {{ weir_status; }}
        location / {{ weir on; weir_cost $http_x_cost; add_header X-Left $weir_remaining always; add_header X-Pid $pid always;
                      try_files /a.txt =404; }}
        location = /settled {{ weir on; weir_cost 6; weir_settle $upstream_http_x_cost;
                               proxy_pass http://{back.address}; }}
        location = /refunded {{ weir on; weir_cost 5; proxy_pass http://{back.address}; }}
    """
    for name in ("run", "weir"):
        (tmp_path / name).mkdir()
    rules = RULES.format(folder=tmp_path, everything=getattr(request, "param", 1000))
    with Weir(tmp_path / "weir", rules, "--workers", "2") as weir, \
            Nginx(tmp_path, rules, server) as nginx:
        yield weir, nginx


def give(weir, user, units):
    done = subprocess.run([weir_path(), "grant", "--admin", weir.admin_address, "--limit", "month",
                           "--key", user, "--units", str(units), "--above"], capture_output=True,
                          text=True, timeout=30, env={**os.environ, "WEIR_ADMIN_TOKEN": "s3cret"})
    assert done.returncode == 0, done.stderr


def bought(weir, user):
    with weir.admin() as client:
        return client.request("GET", f"/v1/limits/month/state?key={user}&above=true",
                              fields=ADMIN).json["bought"]


def ask(nginx, user, cost=1, **fields):
    return nginx.get("/", X_USER=user, X_COST=str(cost), **fields)


def test_nginx_takes_what_was_bought_once_its_limit_denies(pair):
    weir, nginx = pair
    assert [ask(nginx, "ann").status for _ in range(6)] == [200] * 5 + [429]
    give(weir, "ann", 4)
    reply = ask(nginx, "ann", 3)
    assert (reply.status, reply["X-Left"]) == (200, "1")
    assert reply["RateLimit"].startswith('"month";r=1') and reply["Retry-After"] is None
    assert bought(weir, "ann") == 1
    denied = ask(nginx, "ann", 2)
    assert denied.status == 429 and int(denied["Retry-After"]) > 86400
    assert ask(nginx, "ann").status == 200
    assert ask(nginx, "ann").status == 429 and ask(nginx, "bob", 6).status == 429
    assert bought(weir, "ann") == 0
    counts = nginx.metrics()
    assert counts['weir_decisions_total{front="nginx",limit="month",result="allowed"}'] == 7
    assert counts['weir_decisions_total{front="nginx",limit="month",result="denied"}'] == 4
    weir.admin_token = "s3cret"
    counts = weir.metrics()
    assert counts['weir_edge_bought_units_total{limit="month"}'] == 4
    assert counts['weir_bought_units_total{limit="month"}'] == 0
    assert not any(name.startswith("weir_edge_bought") and "all" in name for name in counts)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_and_grants_equal_the_model_through_nginx_and_the_server(pair, seed):
    weir, nginx = pair
    draw = random.Random(seed)
    used, units, taken = [0] * 3, [0] * 3, 0
    for _ in range(200):
        i, cost = draw.randrange(3), draw.choice([0, 1, 1, 2, 3, 7])
        user = f"u{i}"
        if draw.random() < 0.1:
            give(weir, user, cost + 1)
            units[i] += cost + 1
            continue
        own = used[i] + cost <= 5
        allowed = own or units[i] >= max(cost, 1)
        if draw.random() < 0.3:
            reply = weir.check(path="/", attributes={"header.x-user": user}, cost=cost)
        else:
            reply = ask(nginx, user, cost)
        assert reply.status == (200 if allowed else 429)
        used[i] += cost if own else 0
        units[i] -= cost if allowed and not own else 0
        taken += cost if allowed and not own else 0
    assert taken > 20
    assert [bought(weir, f"u{i}") for i in range(3)] == units


@pytest.mark.parametrize("pair", [7], indirect=True)
def test_what_another_limit_denies_in_nginx_takes_no_bought_units(pair):
    weir, nginx = pair
    give(weir, "ann", 6)
    assert ask(nginx, "ann", 5, X_BOTH="1").status == 200
    assert ask(nginx, "ann", 3, X_BOTH="1").status == 429  # 2 are left of all
    assert bought(weir, "ann") == 6
    assert ask(nginx, "ann", 2, X_BOTH="1").status == 200
    assert bought(weir, "ann") == 4


def test_settlements_and_refunds_of_nginx_go_back_to_what_was_bought(pair):
    weir, nginx = pair
    give(weir, "ann", 9)
    assert ask(nginx, "ann", 5).status == 200
    assert nginx.get("/settled", X_USER="ann").status == 200  # has cost 4 of 6
    wait_until(lambda: bought(weir, "ann") == 5, what="the settlement")
    give(weir, "ann", 1)
    assert nginx.get("/refunded", X_USER="ann").status == 503
    wait_until(lambda: bought(weir, "ann") == 6, what="the refund")
    assert nginx.get("/settled", X_USER="ann").status == 200
    wait_until(lambda: bought(weir, "ann") == 2, what="the settlement")


class AskUser(AskBoth):
    """Every other client asks `weir serve`, all as one customer."""

    def ask(self, client):
        if client.socket.getpeername()[1] == self.nginx.port:
            reply = client.request("GET", "/", fields={"X-User": "many"})
            return reply.status, int(reply["X-Pid"])
        reply = client.check(path="/", attributes={"header.x-user": "many"})
        return reply.status, 0


def kill_one(nginx):
    try:
        os.kill(nginx.pids()[0], signal.SIGKILL)
    except ProcessLookupError:  # it has ended since it was listed
        return False
    return True


def test_workers_that_die_and_a_reload_neither_lose_nor_invent_bought_units(pair):
    weir, nginx = pair
    give(weir, "many", 400)
    with Crowd(AskUser(nginx, weir), clients=6) as crowd:
        for wanted in (60, 120, 180):
            wait_until(lambda least=wanted: crowd.admitted() >= least, what="requests that pass")
            wait_until(lambda: kill_one(nginx), what="a worker to kill")
            wait_until(lambda: len(nginx.pids()) == nginx.workers, what="a new worker")
        nginx.reload()
        wait_until(lambda: crowd.denied() >= 100, what="denials")
    # Who lost its connection to a killed worker may have been admitted without an answer.
    assert 405 - crowd.lost <= crowd.admitted() <= 405
    assert bought(weir, "many") == 0
