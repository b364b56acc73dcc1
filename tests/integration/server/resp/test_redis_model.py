# SPDX-License-Identifier: Apache-2.0
"""Random commands through the socket, against the exact models (model/redis_commands.py)."""

import random

import pytest

from daemon.redis import RedisWeir
from model.redis_commands import KEYS, play


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir"), None, "--workers", "1") as weir:
        yield weir


@pytest.mark.parametrize("seed", range(5))
def test_one_limit_a_run_is_decided_as_the_model_decides(weir, seed):
    rng = random.Random(seed)
    limit = (rng.randrange(1, 40), rng.randrange(1, 10), rng.randrange(10**5, 10**7))
    play(weir, seed, [limit])


@pytest.mark.parametrize("seed", range(5, 10))
def test_limits_that_change_keep_what_was_used(weir, seed):
    """Windows of one length, so that the model's pieces of tokens convert without a remainder."""
    rng = random.Random(seed)
    period = rng.randrange(10**6, 10**7)
    limits = [(rng.randrange(1, 40), rng.randrange(1, 10), period) for _ in range(4)]
    play(weir, seed, limits)


def test_windows_count_as_the_model_counts(weir):
    rng, states = random.Random(11), {}
    day = 86400
    with weir.redis() as client:
        for _ in range(600):
            key, bound = rng.choice(KEYS), rng.choice([5, 10, 20])
            cost = rng.choice([0, 1, 1, 2, 7])
            new, added = client.ask("INCREX", key, "BYINT", cost, "UBOUND", bound, "EX", 300 * day,
                                    "ENX")
            count = states.get(key, 0)
            fits = count + cost <= bound
            assert (new, added) == ((count + cost, cost) if fits else (count, 0))
            states[key] = new
            if rng.random() < 0.02:
                client.ask("DEL", key)
                states.pop(key)
