# SPDX-License-Identifier: Apache-2.0
"""Counters with a life, and MULTI: random commands to weir and to a real Redis get the same bytes."""

import random
import shutil
import time

import pytest

from daemon.redis import Error, Redis, RedisWeir, command_bytes
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until

PTTL_MS_MAX = 60_000  # both servers are asked one after the other, on a busy machine
KEYS = ["a", "b", "c", "d"]
LIVES_S = 100_000, 900_000  # so long that no key ends during the test


class Raw(Redis):
    """Replies as bytes."""

    def reply(self):
        line = self._line() + b"\r\n"
        kind, text = line[:1], line[1:-2]
        if kind in b"$" and text != b"-1":
            size = int(text) + 2
            while len(self.buffer) < size:
                self._more()
            data, self.buffer = self.buffer[:size], self.buffer[size:]
            return line + data
        if kind == b"*" and text != b"-1":
            return line + b"".join(self.reply() for _ in range(int(text)))
        return line


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir")) as weir:
        yield weir


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory):
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


def number(rng):
    return rng.choice([rng.randint(-10, 10), rng.randint(-10**6, 10**6), 2**53 - 1, -2**53, 2**53,
                       2**63 - 1, -2**63, 2**62, 2**31, 0, 1])


def wrong(rng):
    """What Redis takes for no number."""
    return rng.choice(["x", "", "1.5", "+1", "01", " 1", str(2**63), str(-2**63 - 1)])


def life(rng, name):
    """A time for a command of this name, ahead of now or behind it."""
    now = time.time()
    value = rng.choice([rng.randint(*LIVES_S)] * 6 + [0, -1, -2**62, 2**63 - 1])
    if name.endswith("AT") and 0 < value < 10**9:
        value += int(now)
    if name.startswith("P") and 0 < value < 10**11:
        value *= 1000
    return rng.choice([value] * 20 + [wrong(rng)])


def set_command(rng, key):
    options = []
    for option in rng.sample(["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"],
                             rng.choice([0, 0, 1, 1, 2, 3])):
        options.append(rng.choice([option, option.lower()]))
        if option[:2] in ("EX", "PX"):
            options.append(life(rng, option))
    return ["SET", key, number(rng), *options]


def expire_command(rng, key):
    name = rng.choice(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
    flags = rng.sample(["NX", "XX", "GT", "LT"], rng.choice([0, 0, 1, 1, 2]))
    return [name, key, life(rng, name), *flags]


def random_command(rng):
    key = rng.choice(KEYS)
    amount = rng.choice([number(rng)] * 10 + [wrong(rng)])
    return rng.choice([
        lambda: [rng.choice(["INCR", "DECR", "GET", "GETDEL", "PERSIST", "TTL", "PTTL"]), key],
        lambda: [rng.choice(["INCRBY", "DECRBY"]), key, amount],
        lambda: set_command(rng, key),
        lambda: expire_command(rng, key),
        lambda: [rng.choice(["SETEX", "PSETEX"]), key, life(rng, ""), number(rng)],
        lambda: ["SETNX", key, number(rng)],
        lambda: [rng.choice(["DEL", "UNLINK", "EXISTS"]), *rng.choices(KEYS, k=rng.randint(1, 3))],
        lambda: [rng.choice(["GET", "INCRBY", "EXPIRE", "SET", "PERSIST"])],  # too few arguments
    ])()


def alike(command, ours, theirs):
    if command[0] in ("TTL", "PTTL") and ours[:1] + theirs[:1] == b"::":
        mine, other = int(ours[1:]), int(theirs[1:])
        return abs(mine - other) <= (PTTL_MS_MAX if "P" in command[0] else PTTL_MS_MAX // 1000) \
            and (mine < 0) == (other < 0)
    return ours == theirs


def is_of_the_far_future(ours, theirs):
    """weir's counters end in 2116 at the latest, which docs/redis-protocol.md says."""
    return b"invalid expire time" in ours and not theirs.startswith(b"-")


@pytest.mark.parametrize("seed", range(4))
def test_random_commands_get_the_same_bytes(weir, redis, seed):
    rng = random.Random(seed)
    with Raw(weir.redis_address) as ours, Raw(f"127.0.0.1:{redis.port}") as theirs:
        for each in ours, theirs:
            each.ask("SELECT", seed)
        for i in range(3000):
            command = random_command(rng)
            mine, other = ours.ask(*command), theirs.ask(*command)
            if is_of_the_far_future(mine, other):
                for each in ours, theirs:
                    each.ask("DEL", command[1])
                continue
            assert alike(command, mine, other), (i, command, mine, other)


@pytest.mark.parametrize("seed", range(4))
def test_random_transactions_get_the_same_bytes(weir, redis, seed):
    """TTL and times beyond weir's are left out; all else is equal, errors inside EXEC too."""
    rng = random.Random(100 + seed)
    with Raw(weir.redis_address) as ours, Raw(f"127.0.0.1:{redis.port}") as theirs:
        for each in ours, theirs:
            each.ask("SELECT", 4 + seed)
        for i in range(400):
            commands = [random_command(rng) for _ in range(rng.randint(0, 6))]
            commands = [c for c in commands if "TTL" not in c[0] and 2**63 - 1 not in c]
            if rng.random() < 0.1:
                commands.insert(0, rng.choice([["NOPE"], ["MULTI"], ["PING"], ["ECHO", "x"],
                                               ["WATCH", "a"]]))
            last = rng.choice([["EXEC"]] * 5 + [["DISCARD"]])
            for command in [["MULTI"], *commands, last]:
                mine, other = ours.ask(*command), theirs.ask(*command)
                assert mine == other, (i, commands, command, mine, other)


# --- What is weir's own ---------------------------------------------------------------------------

def test_a_value_that_is_no_integer_is_refused(weir):
    with weir.redis() as client:
        reply = client.ask("SET", "text", "hello")
        assert isinstance(reply, Error) and "integers only" in reply
        assert client.ask("EXISTS", "text") == 0


def test_what_increx_counts_is_a_counter(weir):
    with weir.redis() as client:
        assert client.ask("INCREX", "w", "UBOUND", 5, "EX", 100000, "ENX") == [1, 1]
        assert client.ask("INCR", "w") == 2
        assert client.ask("GET", "w") == "2"
        assert client.ask("EXISTS", "w") == 1
        assert client.ask("SET", "w", 7) == "OK"
        assert client.ask("INCREX", "w", "UBOUND", 7) == [7, 0]
        assert client.ask("INCREX", "v", "UBOUND", 5, "EX", 100000, "ENX") == [1, 1]
        client.ask("MULTI")
        client.ask("DEL", "v")
        client.ask("INCR", "v")
        assert client.ask("EXEC") == [1, 1]


def test_a_counter_and_a_bucket_of_one_name_go_together(weir):
    with weir.redis() as client:
        client.ask("CL.THROTTLE", "both", 5, 10, 60)
        client.ask("INCR", "both")
        assert client.ask("EXISTS", "both") == 1
        assert client.ask("TTL", "both") == -1
        assert client.ask("DEL", "both") == 1
        assert client.ask("EXISTS", "both") == 0 and client.ask("GET", "both") is None


def test_a_counter_ends(weir):
    with weir.redis() as client:
        assert client.ask("SET", "short", 5, "PX", 1) == "OK"
        while client.ask("GET", "short") is not None:
            pass
        assert client.ask("INCR", "short") == 1
        assert client.ask("TTL", "short") == -1


def test_a_transaction_runs_other_commands_too(weir):
    with weir.redis() as client:
        client.ask("MULTI")
        for command in [("INCR", "mix"), ("THROTTLE", "mix:b", 10, 1, 100000), ("SELECT", 9),
                        ("INCR", "mix"), ("PING",)]:
            assert client.ask(*command) == "QUEUED"
        replies = client.ask("EXEC")
        assert replies[0] == 1 and replies[1][0] == 1 and replies[2:] == ["OK", 1, "PONG"]
        client.ask("SELECT", 0)
        assert client.ask("GET", "mix") == "1"


def test_a_transaction_has_more_keys_than_a_decision(weir):
    with weir.redis() as client:
        client.ask("MULTI")
        keys = [f"many:{i}" for i in range(100)]
        for key in keys:
            client.ask("INCR", key)
        client.ask("EXISTS", *keys)
        assert client.ask("EXEC") == [1] * 100 + [100]


@pytest.mark.parametrize("command, said", [
    (("HELLO", 3), "not allowed inside a transaction"),
    (("SET", "k", "x" * 300_000), "a transaction has at most"),
])
def test_what_a_transaction_cannot_have_aborts_it(weir, command, said):
    with weir.redis() as client:
        client.ask("MULTI")
        client.ask("INCR", "aborted")
        assert said in client.ask(*command)
        assert client.ask("EXEC").startswith("EXECABORT")
        assert client.ask("EXISTS", "aborted") == 0


def test_a_transaction_is_bounded(weir):
    with weir.redis() as client:
        client.ask("MULTI")
        for _ in range(500):
            assert client.ask("THROTTLE", "bounded", 1000, 1, 100000) == "QUEUED"
        assert "at most 500 commands" in client.ask("PING")
        assert client.ask("EXEC").startswith("EXECABORT")
        client.ask("MULTI")
        for _ in range(8):
            assert client.ask("DEL", *range(999)) == "QUEUED"
        assert "8000 arguments" in client.ask("PING")
        assert client.ask("DISCARD") == "OK"
        client.ask("MULTI")
        for _ in range(490):
            client.ask("THROTTLE", "bounded", 1000, 1, 100000)
        for _ in range(5):
            client.ask("DEL", *range(1000))
        replies = client.ask("EXEC")
        assert [reply[2] for reply in replies[:490]] == list(range(999, 509, -1))
        assert replies[490:] == [0] * 5


def test_watch_is_refused(weir):
    with weir.redis() as client:
        assert "not served" in client.ask("WATCH", "k")


def test_a_connection_may_close_with_commands_queued(weir):
    with weir.redis() as client:
        client.ask("MULTI")
        client.ask("INCR", "left")
    with weir.redis() as client:
        assert client.ask("EXISTS", "left") == 0


def test_transactions_of_many_clients_are_each_one(weir):
    """Two counters that every transaction changes alike are alike in every reply."""
    clients = [weir.redis() for _ in range(8)]
    text = b"".join(command_bytes(*c) for c in
                    [("MULTI",), ("INCR", "x"), ("INCR", "y"), ("EXPIRE", "x", 1000, "NX"), ("EXEC",)])
    for _ in range(50):
        for client in clients:
            client.send(text)
    seen = []
    for client in clients:
        for _ in range(50):
            replies = [client.reply() for _ in range(5)][-1]
            assert replies[0] == replies[1]
            seen.append(replies[0])
        client.socket.close()
    assert sorted(seen) == list(range(1, 401))


def test_beside_a_shared_store_counters_are_refused(tmp_path, redis):
    rules = f"version: 1\nstore: {{ redis: {{ url: 'redis://127.0.0.1:{redis.port}' }} }}\nlimits: []\n"
    with RedisWeir(tmp_path, rules) as weir, weir.redis() as client:
        wait_until(lambda: "event=store_up" in weir.text())
        assert "not kept beside store: redis" in client.ask("INCR", "k")
        client.ask("MULTI")
        assert client.ask("CL.THROTTLE", "bucket", 5, 10, 60) == "QUEUED"
        assert client.ask("INCR", "k") == "QUEUED"
        replies = client.ask("EXEC")
        assert replies[0][:3] == [0, 6, 5] and "store: redis" in replies[1]
