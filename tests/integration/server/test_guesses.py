# SPDX-License-Identifier: Apache-2.0
"""Guessing passwords and tokens: a few are answered, the rest slowly or not at all; it is counted and
logged; and a client that knows the password is not in the way of it. No test looks at a clock: what is
counted is what was answered."""

import grpc
import pytest

from daemon.grpc import Stub
from daemon.http import connect
from daemon.redis import Error, Redis, RedisWeir, command_bytes
from daemon.waiting import wait_until
from daemon.weir import rules_of

API = {"name": "api", "key": ["client.ip"], "rate": "1000000/h"}
TOKEN = {"token": "sesame"}
WRONG = "WRONGPASS invalid username-password pair or user is disabled."
REFUSED = "ERR too many wrong passwords from this address: try again later"
FREE, TRIES, WAITING = 5, 5, 5  # of an address at once; of a connection; that wait their turn


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    rules = rules_of(API, server={"redis": {"address": "127.0.0.1:0", **TOKEN},
                                  "http": {"address": "127.0.0.1:0", **TOKEN},
                                  "grpc": {"address": "127.0.0.1:0", **TOKEN},
                                  "admin": {"address": "127.0.0.1:0", **TOKEN}})
    with RedisWeir(tmp_path, rules, "--workers", "2", http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        yield weir


def failures(weir, front, result="wrong"):
    with weir.admin() as client:
        lines = client.request("GET", "/metrics",
                               {"Authorization": "Bearer sesame"}).body.decode().splitlines()
    name = f'weir_auth_failures_total{{front="{front}",result="{result}"}} '
    return next(int(line[len(name):]) for line in lines if line.startswith(name))


def replies_until_closed(redis):
    replies = []
    try:
        while True:
            replies.append(redis.reply())
    except (EOFError, ConnectionResetError):
        return replies


def authenticated(weir):
    redis = weir.redis()
    reply = redis.ask("AUTH", "sesame")
    if reply == "OK":
        return redis
    assert reply == REFUSED
    redis.socket.close()
    return None


@pytest.mark.parametrize("command", [("AUTH", "guess"), ("AUTH", "default", "guess"),
                                     ("HELLO", 3, "AUTH", "default", "guess")])
def test_a_connection_has_five_guesses_and_what_it_sent_after_them_is_not_run(weir, command):
    with weir.redis() as redis:
        redis.send(command_bytes(*command) * 1000 + command_bytes("AUTH", "sesame"))
        assert replies_until_closed(redis) == [WRONG] * TRIES
    assert failures(weir, "redis") == TRIES
    line = weir.wait_event("auth_failed")
    assert "front=redis peer=127.0.0.1 count=1" in line


def test_a_right_password_between_wrong_ones_starts_anew(weir):
    with weir.redis() as redis:
        for _ in range(TRIES - 2):
            assert redis.ask("AUTH", "guess") == WRONG
        assert redis.ask("AUTH", "sesame") == "OK"
        assert redis.ask("AUTH", "guess") == WRONG
        assert redis.ask("PING") == "PONG"  # as in Redis: an open session stays open


def test_new_connections_do_not_help_and_whoever_is_in_goes_on(weir):
    guesses = 400
    with weir.redis() as friend:
        assert friend.ask("AUTH", "sesame") == "OK"
        crowd = [weir.redis() for _ in range(guesses)]
        for redis in crowd:
            redis.send(command_bytes("AUTH", "guess"))
        assert friend.ask("CL.THROTTLE", "k", 1, 1, 60)[0] == 0
        replies = [redis.reply() for redis in crowd]
        for redis in crowd:
            redis.socket.close()
        looked_at = replies.count(WRONG)
        assert set(replies) == {WRONG, REFUSED}
        assert looked_at >= FREE + WAITING
        assert looked_at == failures(weir, "redis")
        assert len(replies) - looked_at == failures(weir, "redis", "refused")
        assert weir.text().count("event=auth_failed") == 1
        assert friend.ask("PING") == "PONG"
        # and with time the right password is let in again
        with wait_until(lambda: authenticated(weir), what="the end of the debt") as late:
            assert late.ask("PING") == "PONG"


def test_a_connection_whose_answer_is_held_back_harms_nobody(weir):
    """Clients that are gone, and one that is reset, while their answers wait; a shutdown does too."""
    def begin():
        redis = weir.redis()
        redis.send(command_bytes("AUTH", "guess") + command_bytes("PING"))
        return redis

    crowd = [begin() for _ in range(FREE + WAITING)]
    for redis in crowd[::2]:
        redis.socket.close()
    kept = crowd[1::2]
    assert [redis.reply() for redis in kept] == [WRONG] * len(kept)
    assert [redis.reply() for redis in kept] == ["NOAUTH Authentication required."] * len(kept)
    for redis in kept:
        redis.socket.close()
    last = begin()
    assert weir.stop() == 0
    last.socket.close()


def guess_bytes(headers):
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["GET /v1/auth HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def guess_http(weir, headers):
    """Guesses on one connection until it is closed; the statuses."""
    statuses = []
    with weir.client() as client:
        try:
            while len(statuses) < 100:
                client.send(guess_bytes(headers))
                reply = client.reply()
                statuses.append(reply.status)
                if reply["connection"] == "close":
                    break
        except (EOFError, ConnectionResetError, BrokenPipeError):
            pass
    return statuses


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer guess"}, {"X-Weir-Token": "guess"}])
def test_an_http_connection_has_five_guesses_and_right_tokens_never_wait(weir, headers):
    assert guess_http(weir, headers) == [401] * TRIES
    assert failures(weir, "http") == TRIES
    assert "front=http peer=127.0.0.1" in weir.wait_event("auth_failed")
    crowd = [weir.client() for _ in range(40)]
    for client in crowd:  # more than wait their turn
        client.send(guess_bytes(headers))
    with weir.client() as client:
        for _ in range(100):
            assert client.request("GET", "/v1/auth", {"X-Weir-Token": "sesame"}).status == 200
            assert client.request("GET", "/v1/auth", {"Authorization": "Bearer other",
                                                      "X-Weir-Token": "sesame"}).status == 200
    wait_until(lambda: failures(weir, "http") + failures(weir, "http", "refused") == TRIES + 40,
               what="the count of all guesses")
    assert failures(weir, "http", "refused") > 0
    reply = crowd[-1].reply()  # after a while
    assert (reply.status, reply["connection"]) == (401, "close")
    for client in crowd:
        client.close()


def test_requests_without_a_token_are_no_guesses(weir):
    with weir.client() as client:
        for _ in range(50):
            assert client.request("GET", "/v1/auth").status == 401
            assert client.request("GET", "/v1/auth", {"Authorization": "Basic eDp5"}).status == 401
    assert failures(weir, "http") == 0


def test_changes_over_the_admin_listener_are_guarded_likewise(weir):
    statuses = []
    with weir.admin() as client:
        for _ in range(TRIES):
            reply = client.request("DELETE", "/v1/limits/api/state?key=192.0.2.1",
                                   {"Authorization": "Bearer guess"})
            statuses.append((reply.status, reply["connection"]))
    assert statuses == [(401, None)] * (TRIES - 1) + [(401, "close")]
    assert failures(weir, "admin") == TRIES


def test_a_pipeline_of_http_guesses_is_cut(weir):
    with weir.client() as client:
        client.send(guess_bytes({"X-Weir-Token": "guess"}) * 500)
        statuses = [client.reply().status for _ in range(TRIES)]
        assert statuses == [401] * TRIES
        with pytest.raises((EOFError, ConnectionResetError)):
            client.reply()
    assert failures(weir, "http") == TRIES


def test_a_grpc_connection_has_five_guesses(weir):
    def ask(stub, token):
        with pytest.raises(grpc.RpcError) as failed:  # a right one finds no configuration
            stub.limit("d", [("a", "b")], metadata=[("authorization", f"Bearer {token}")])
        return failed.value.code().name

    with Stub(weir.grpc_address) as stub:
        for _ in range(2 * TRIES):
            assert ask(stub, "guess") in ("UNAUTHENTICATED", "UNAVAILABLE")
        assert ask(stub, "sesame") == "UNKNOWN"
    with weir.admin() as client:
        text = client.request("GET", "/metrics", {"X-Weir-Token": "sesame"}).body.decode()
    assert "\nweir_connections_accepted_total 3\n" in text
    assert failures(weir, "grpc") >= 2 * TRIES - 2  # the last of a connection may be sent again


def behind_a_proxy(**server):
    return rules_of(API, server={"trusted_proxies": ["127.0.0.1"],
                                 "redis": {"address": "127.0.0.1:0", "proxy_protocol": True,
                                           **TOKEN}, **server})


def dial(weir, client):
    """A connection on which the proxy names a client."""
    sock = connect(weir.redis_address)
    family, proxy = ("6", "2001:db8::200") if ":" in client else ("4", "192.0.2.200")
    sock.sendall(f"PROXY TCP{family} {client} {proxy} 1000 6379\r\n".encode())
    redis = Redis.__new__(Redis)
    redis.socket, redis.buffer = sock, b""
    return redis


@pytest.mark.parametrize("server,guesses,other", [
    ({}, "8.8.8.8", "64:ff9b::808:808"), ({}, "64:ff9b::808:808", "8.8.8.8"),
    ({"nat64": ["2001:db8:64::/96"]}, "2001:db8:64::808:808", "8.8.8.8")])
def test_behind_a_translator_it_is_the_ipv4_client_who_waits(tmp_path, server, guesses, other):
    """Who guesses at one of his two addresses is refused at the other; his neighbour within the
    translator's /64 is not."""
    neighbour = guesses.replace("808:808", "808:809") if ":" in guesses else "64:ff9b::808:809"
    with RedisWeir(tmp_path, behind_a_proxy(**server), "--workers", "1") as weir:
        crowd = []

        def same_is_refused():
            for _ in range(10 * FREE):
                crowd.append(dial(weir, guesses))
                crowd[-1].send(command_bytes("AUTH", "guess"))
            with dial(weir, other) as same:  # in debt, so that its right one is not looked at
                return same.ask("AUTH", "sesame") == REFUSED
        wait_until(same_is_refused, what="a refusal")
        with dial(weir, neighbour) as beside:
            assert beside.ask("AUTH", "sesame") == "OK"
        for redis in crowd:
            redis.socket.close()


def test_behind_a_proxy_it_is_the_client_who_waits(tmp_path):
    with RedisWeir(tmp_path, behind_a_proxy(), "--workers", "1") as weir:
        crowd = [dial(weir, "192.0.2.1") for _ in range(50)]
        for redis in crowd:
            redis.send(command_bytes("AUTH", "guess"))
        with dial(weir, "192.0.2.2") as other:
            assert other.ask("AUTH", "sesame") == "OK"
        assert REFUSED in [redis.reply() for redis in crowd]
        for redis in crowd:
            redis.socket.close()
        assert "peer=192.0.2.1 " in weir.wait_event("auth_failed")


def test_a_state_of_nothing_is_counted_as_zero(weir):
    for front in ("redis", "http", "grpc", "admin"):
        assert failures(weir, front) == failures(weir, front, "refused") == 0
    with weir.redis() as redis:
        assert isinstance(redis.ask("AUTH", "a", "b", "c"), Error)  # no guess: it is no AUTH
    assert failures(weir, "redis") == 0
