# SPDX-License-Identifier: Apache-2.0
"""Random commands through the socket, against the exact models.

Time passes while they are sent, and nobody knows at which nanosecond one was decided. So a reply
must be one that the model gives at some time between sending and receiving: the model answers for
both ends, and what it tells (all of it monotonic in time, nothing else happening) bounds the reply.
Rates are slow enough that a verdict is the same at both ends."""

import random
import time

from daemon.redis import Error, command_bytes

from . import algorithms

SECOND_NS = 10**9
KEYS = [f"key{i}" for i in range(6)]
PIPELINE = 40
ROUNDS = 60


class Keys:
    """What the commands of one family have used: one exact state a key."""

    def __init__(self, limits):
        rates = [count / period for _, count, period in limits]
        self.states = {}
        self.slowest = 0  # ns: a state was charged so much later than its model at most,
        self.stretch = max(rates) / min(rates)  # which is longer under the slowest of the rates
        self.all = 0  # ns: that long it was not known, over all rounds, at which rate keys refilled

    def early_and_late(self):
        """How far the model may be ahead and behind, in ns."""
        if self.stretch == 1:
            return self.slowest, 0
        return [int(self.all * self.stretch)] * 2

    def bucket(self, key, burst, count, period, t):
        """The key's state under these numbers; what was used stays used, in tokens."""
        state = algorithms.Bucket(count, period * SECOND_NS, burst)
        state.time = t
        old = self.states.get(key)
        if old is not None:
            used = old.full - old.level_at(t)  # in 1/W of a token
            state.level = state.full - used * state.window // old.window
        self.states[key] = state
        return state


def seconds(ns):
    return -1 if ns == algorithms.NEVER else -(-ns // SECOND_NS)


def left(state, t):
    return algorithms.remaining(state, t) if state.level_at(t) >= 0 else 0


def result(state, t, cost, allowed, crab):
    """The five numbers at time t, after the decision."""
    retry = 0 if allowed else algorithms.retry_after(state, t, cost)
    reset = seconds(algorithms.reset_after(state, t))
    if not crab:
        return [0 if allowed else 1, state.capacity, left(state, t),
                -1 if allowed else seconds(retry), reset]
    if reset and state.capacity >= 2:
        more = state.window * (state.capacity - 2) // state.rate
        reset = max(reset, (algorithms.reset_after(state, t) + more) // SECOND_NS)
    return [1 if allowed else 0, state.capacity, left(state, t), reset,
            2**31 - 1 if retry == algorithms.NEVER else seconds(retry)]


class Asked:
    """One command, and how to judge its reply."""

    def __init__(self, rng, limits):
        self.key = rng.choice(KEYS)
        self.burst, self.count, self.period = rng.choice(limits)
        self.verb = rng.choice(["CL.THROTTLE", "CL.THROTTLE", "THROTTLE", "GCRA", "DEL"])
        self.cost = rng.choice([1, 1, 1, 0, 2, 5, self.burst, self.burst + 1])
        if self.verb == "CL.THROTTLE" and rng.random() < 0.15:
            self.cost = -rng.choice([1, 2, 100])
        if self.verb == "GCRA":
            self.cost = max(self.cost, 1)

    def bytes(self):
        if self.verb == "DEL":
            return command_bytes("DEL", self.key)
        if self.verb == "THROTTLE":
            return command_bytes("throttle", self.key, self.burst, self.count, self.period,
                                 self.cost)
        more = ("TOKENS", self.cost) if self.verb == "GCRA" else (self.cost,)
        return command_bytes(self.verb, self.key, self.burst - 1, self.count, self.period, *more)

    def judge(self, keys, reply, sent, received):
        assert not isinstance(reply, Error), reply
        if self.verb == "DEL":
            state = keys.states.pop(self.key, None)
            assert reply == (0 if state is None or state.is_fresh(received) else 1)
            return
        state = keys.bucket(self.key, self.burst, self.count, self.period, sent)
        allowed = self.cost < 0 or state.admits(sent, self.cost)
        assert allowed == (self.cost < 0 or state.admits(received, self.cost)), "the test is slow"
        if self.cost < 0:
            state.level = min(state.full, state.level - self.cost * state.window)
        elif allowed:
            state.charge(sent, self.cost)
        crab = self.verb == "THROTTLE"
        early, late = keys.early_and_late()
        ends = [result(state, t, self.cost, allowed, crab)
                for t in (sent - early, sent, received, received + late)]
        for got, *bounds in zip(reply, *ends):
            assert min(bounds) <= got <= max(bounds), (reply, ends)


def play(weir, seed, limits):
    rng, keys = random.Random(seed), Keys(limits)
    log = []
    with weir.redis() as client:
        for key in KEYS:
            client.ask("DEL", key)
        start = time.monotonic_ns()
        for _ in range(ROUNDS):
            batch = [Asked(rng, limits) for _ in range(rng.randrange(1, PIPELINE))]
            sent = time.monotonic_ns() - start
            client.send(b"".join(asked.bytes() for asked in batch))
            replies = [client.reply() for _ in batch]
            received = time.monotonic_ns() - start
            keys.slowest = max(keys.slowest, received - sent)
            keys.all += received - sent
            for asked, reply in zip(batch, replies):
                log.append((asked.bytes(), reply))
                try:
                    asked.judge(keys, reply, sent, received)
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}: {error}; before: {log[-8:]}") from error
