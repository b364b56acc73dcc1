# SPDX-License-Identifier: Apache-2.0
"""Reservations, settlements and grants of many clients at one time, while the process is killed, or
its calls to Redis are lost: what is used then is what the answers say, except what was in flight.

A settlement whose answer was lost is made again. Where it charged (a true cost above the estimate),
the record came with the charge, so it is known to have been charged once. Where it gives back, the
record came first: it may have kept what was reserved, and gave it back at most once."""

import random
import threading
from contextlib import ExitStack

from daemon.fault_proxy import FaultProxy
from daemon.nodes import shared_rules
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

LIMIT = {"name": "daily", "key": ["client.ip"], "algorithm": "fixed_window",
         "rate": "100000000/300d", "on_store_error": "closed"}
BEGIN = 1000000  # used at the beginning, so that a grant never finds less than it gives
ROUNDS, CLIENTS = 8, 4
LOST = (OSError, EOFError)


class Books:
    """What is used, as far as answers tell: between `least` and `most`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.least = self.most = BEGIN
        self.done = self.lost = self.kept = self.failed = 0
        self.again = []  # settlements to make again: (token, estimate, truth)

    def add(self, least, most):
        with self.lock:
            self.least += least
            self.most += most
            self.done += 1
            self.lost += least != most


class Teller(threading.Thread):
    """A client that does what it likes until it has to stop, or its connection ends."""

    def __init__(self, weir, books, seed):
        super().__init__()
        self.weir, self.books, self.choose = weir, books, random.Random(seed)
        self.tokens, self.stopped, self.failed = [], threading.Event(), False
        self.wrong = None

    def run(self):
        try:
            with self.weir.client() as client, self.weir.admin() as admin:
                while not self.stopped.is_set():
                    what = self.choose.random()
                    if what < 0.1:
                        self.grant(admin)
                    elif what < 0.5 and self.tokens:
                        index = self.choose.randrange(len(self.tokens))
                        self.settle(client, *self.tokens.pop(index))
                    else:
                        self.reserve(client)
                    if self.failed:  # what follows at once the breaker would refuse, unasked
                        used(self.weir)
                        self.failed = False
        except LOST:
            pass
        except AssertionError as wrong:  # which a thread tells nobody
            self.wrong = wrong

    def fail(self):
        self.failed = True
        with self.books.lock:
            self.books.failed += 1

    def ask(self, least, most, call):
        """Returns the answer; None, or an exception, where it is lost: then all is possible."""
        reply = None
        try:
            reply = call()
        finally:
            if reply is None or reply.status != 200:
                self.books.add(least, most)
                self.fail()
        return reply if reply.status == 200 else None

    def reserve(self, client):
        cost = self.choose.randint(1, 50)
        reply = self.ask(0, cost, lambda: client.post(
            "/v1/reserve", {"ip": "192.0.2.1", "cost": cost, "life": 3600}))
        if reply:
            self.books.add(cost, cost)
            self.tokens.append((reply.json["reservation"], cost))

    def settle(self, client, token, cost):
        truth = self.choose.randint(0, 100)
        answer = None
        try:
            answer = client.post("/v1/settle", {"reservation": token, "cost": truth})
        finally:
            if answer is None or answer.status != 200:
                self.fail()
                with self.books.lock:
                    self.books.again.append((token, cost, truth))
        if answer.status == 200:
            assert answer.json["settled"] and not answer.json["repeated"]
            self.books.add(truth - cost, truth - cost)

    def grant(self, admin):
        units = self.choose.randint(1, 20)
        path = f"/v1/limits/daily/grant?key=192.0.2.1&units={units}"
        if self.ask(-units, 0, lambda: admin.request(
                "POST", path, {"Authorization": "Bearer s3cret"})):
            self.books.add(-units, -units)


def settle(weir, token, truth):
    """Returns whether it was settled before. Each worker finds out by itself that the store is back,
    and asks it nothing till then."""
    def ask():
        with weir.client() as client:
            reply = client.post("/v1/settle", {"reservation": token, "cost": truth})
        assert reply.status in (200, 503), reply.body
        return reply.json if reply.status == 200 else None
    return wait_until(ask, what="an answer by the store")["repeated"]


def settle_again(weir, books):
    """All that may have been settled."""
    while books.again:
        token, cost, truth = books.again.pop()
        unknown = settle(weir, token, truth) and truth < cost
        books.add(truth - cost, 0 if unknown else truth - cost)
        books.kept += unknown


def used(weir):
    """As a dry run answers, once the store answers."""
    reply = wait_until(lambda: next(
        (reply for reply in [weir.check(ip="192.0.2.1", dry_run=True, cost=0)]
         if reply.status == 200), None), what="an answer by the store")
    return reply.json["limits"][0]["limit"] - reply.json["limits"][0]["remaining"]


def a_round(weir, books, seed, disturb):
    """Returns the tokens that nobody has settled."""
    tellers = [Teller(weir, books, f"{seed}-{i}") for i in range(CLIENTS)]
    for teller in tellers:
        teller.start()
    disturb(tellers)
    for teller in tellers:
        teller.stopped.set()
    for teller in tellers:
        teller.join()
        assert teller.wrong is None, teller.wrong
    return [token for teller in tellers for token in teller.tokens]


def enough(books, count):
    goal = books.done + count
    wait_until(lambda: books.done >= goal, what="the clients' work")


def begin(weir):
    for _ in range(BEGIN // 1000000):
        assert weir.check(ip="192.0.2.1", cost=1000000).status == 200
    assert used(weir) == BEGIN


def settle_the_rest(weir, books, tokens):
    """What a crash left open is still settled to the unit."""
    before = used(weir)
    for token, cost in tokens:
        assert not settle(weir, token, 0)
        books.add(-cost, -cost)
        before -= cost
    assert used(weir) == before


def test_killed_while_clients_reserve_settle_and_are_granted_nothing_is_gained_or_leaks(tmp_path):
    state = {"file": str(tmp_path / "state"), "size": "1MiB"}
    rules = rules_of(LIMIT, state=state, server={"admin": {"token": "s3cret"}})
    books, choose, tokens = Books(), random.Random(6), []
    with Weir(tmp_path, rules, "--workers", "2") as weir:
        begin(weir)

        def kill(_):
            enough(books, choose.randint(20, 300))
            weir.kill()

        for number in range(ROUNDS):
            tokens += a_round(weir, books, number, kill)
            weir.start()
            settle_again(weir, books)
            assert books.least <= used(weir) <= books.most
        settle_the_rest(weir, books, tokens)
        assert books.least <= used(weir) <= books.most
    assert books.done > 20 * ROUNDS and books.lost > 0
    assert books.most - books.least <= ROUNDS * CLIENTS * 50  # one request of each client a kill


def test_where_calls_to_redis_are_lost_nothing_is_gained_or_leaks(tmp_path):
    books, choose, tokens = Books(), random.Random(7), []
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(tmp_path / "redis"))
        proxy = stack.enter_context(FaultProxy(redis.port))
        weir = stack.enter_context(Weir(
            tmp_path, shared_rules(proxy.url, LIMIT, deadline="1s",
                                   server={"admin": {"token": "s3cret"}}), "--workers", "2"))
        wait_until(lambda: weir.metrics().get("weir_store_up") == 1, what="the store")
        begin(weir)

        def lose(tellers):
            for _ in range(3):
                enough(books, choose.randint(20, 100))
                if choose.random() < 0.5:
                    proxy.tell("cut")
                else:
                    before = books.failed
                    proxy.tell("tear", choose.randint(1, 40))
                    wait_until(lambda: books.failed > before or
                               all(teller.failed for teller in tellers), what="a lost answer")
                    proxy.tell("pass")

        for number in range(ROUNDS // 2):
            tokens += a_round(weir, books, number, lose)
            settle_again(weir, books)
            assert books.least <= used(weir) <= books.most
        settle_the_rest(weir, books, tokens)
        assert books.least <= used(weir) <= books.most
    assert books.done > 50 * ROUNDS and books.failed > ROUNDS
    assert books.most - books.least <= 50 * books.failed
