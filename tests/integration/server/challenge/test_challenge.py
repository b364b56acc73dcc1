# SPDX-License-Identifier: Apache-2.0
"""The challenge: puzzles, solutions, tokens, over a real weir."""

import re

import pytest

from daemon.challenge import FORM, KEY, PAGE, PATH, ChallengeWeir, form_of, solve
from daemon.http import Client
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

CLIENT = {"X-Forwarded-For": "192.0.2.1"}


@pytest.fixture(name="weir", scope="module")
def fixture_weir(tmp_path_factory):
    with ChallengeWeir(tmp_path_factory.mktemp("weir")) as weir:
        yield weir


def puzzle_of(weir, fields=None):
    """A puzzle for a client of the API, and its solution."""
    reply = weir.challenge(fields=CLIENT | (fields or {}))
    assert reply.status == 403
    return reply.json["puzzle"], solve(reply.json["puzzle"], reply.json["difficulty"])


def token_of(weir, fields=None):
    puzzle, solution = puzzle_of(weir, fields)
    reply = weir.post({"puzzle": puzzle, "solution": solution}, CLIENT | (fields or {}))
    assert reply.status == 200
    return reply.json["token"]


def refused(reply):
    assert reply.status == 403 and reply["content-type"] == "application/problem+json"
    assert reply["set-cookie"] is None
    return reply.json["detail"]


def limit_of(weir, fields):
    """Which limit the request met."""
    return re.match(r'"(\w+)"', weir.auth(fields)["ratelimit"])[1]


def checked(weir, address, attributes):
    """The limits that /v1/check finds."""
    reply = weir.check(ip=address, attributes=attributes)
    return [limit["name"] for limit in reply.json["limits"]]


def test_a_browser_gets_a_page_that_loads_nothing(weir):
    reply = weir.challenge(target=f"{PATH}?to=/shop?a=1&b=%22", fields=CLIENT | PAGE)
    assert reply.status == 200 and reply["content-type"] == "text/html; charset=utf-8"
    assert len(reply.body) < 10_000
    text = reply.body.decode()
    values, difficulty = form_of(reply.body)
    assert values["to"] == "/shop?a=1&b=%22" and difficulty == 8
    assert "a=1&amp;b=%22" in text and "<noscript>" in text
    assert not re.search(r"https?:|//\w|src=|@import|url\(", text)
    assert reply["cache-control"] == "no-store" and reply["vary"] == "Accept, Accept-Language"
    assert reply["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in reply["content-security-policy"]


def test_a_solution_sets_a_cookie_that_passes(weir):
    values, difficulty = form_of(weir.challenge(target=f"{PATH}?to=/shop?a=1",
                                                fields=CLIENT | PAGE).body)
    values["solution"] = solve(values["puzzle"], difficulty)
    reply = weir.post(values, CLIENT | PAGE)
    assert reply.status == 303 and reply["location"] == "/shop?a=1"
    match = re.fullmatch(r"__Host-weir=([\w-]{64}); Path=/; Max-Age=3600; HttpOnly; Secure; "
                         r"SameSite=Lax", reply["set-cookie"])
    cookie = f"__Host-weir={match[1]}"
    assert limit_of(weir, CLIENT | {"Cookie": f"a=b; {cookie}; c=d"}) == "passed"
    assert limit_of(weir, CLIENT | {"Cookie": cookie + "x"}) == "unproven"
    assert limit_of(weir, {"X-Forwarded-For": "192.0.2.2", "Cookie": cookie}) == "unproven"


def test_a_client_of_the_api_gets_a_problem_document_and_a_token(weir):
    reply = weir.challenge(fields=CLIENT)
    assert reply["content-type"] == "application/problem+json"
    assert reply.json["status"] == 403 and "X-Weir-Challenge" in reply.json["detail"]
    token = token_of(weir)
    assert limit_of(weir, CLIENT | {"X-Weir-Challenge": token}) == "passed"
    assert limit_of(weir, CLIENT | {"X-Weir-Challenge": token[:-1]}) == "unproven"
    assert checked(weir, "192.0.2.1", {"header.x-weir-challenge": token}) == ["passed"]


def test_no_request_can_say_that_it_has_passed(weir):
    for attributes in ({"challenge": "passed"}, {"header.challenge": "passed"}):
        assert checked(weir, "192.0.2.77", attributes) == ["unproven"]


def test_a_solution_is_taken_once(weir):
    puzzle, solution = puzzle_of(weir)
    values = {"puzzle": puzzle, "solution": solution}
    assert weir.post(values, CLIENT).status == 200
    assert refused(weir.post(values, CLIENT)) == "The solution was used before."
    page = weir.post(values, CLIENT | PAGE)
    assert page.status == 403 and b"The check may have been passed already" in page.body
    assert page["content-security-policy"] and page["set-cookie"] is None


def test_what_is_no_solution_is_refused_with_its_reason(weir):
    puzzle, solution = puzzle_of(weir)
    flipped = ("B" if puzzle[-1] == "A" else "A")
    cases = [({"puzzle": puzzle}, "malformed"),
             ({"solution": solution}, "malformed"),
             ({"puzzle": puzzle[:-1], "solution": solution}, "malformed"),
             ({"puzzle": puzzle, "solution": f"0{solution}"}, "malformed"),
             ({"puzzle": puzzle[:-1] + flipped, "solution": solution}, "forged"),
             ({"puzzle": puzzle, "solution": solve(puzzle, 8, right=False)}, "wrong")]
    for values, reason in cases:
        assert reason in refused(weir.post(values, CLIENT))
    other = {"X-Forwarded-For": "192.0.2.9"}
    assert "another network" in refused(weir.post({"puzzle": puzzle, "solution": solution}, other))
    assert weir.post({"puzzle": puzzle, "solution": solution}, CLIENT).status == 200


def test_a_network_of_64_bits_is_one_client(weir):
    puzzle, solution = puzzle_of(weir, {"X-Forwarded-For": "2001:db8:1:2::1"})
    reply = weir.post({"puzzle": puzzle, "solution": solution},
                      {"X-Forwarded-For": "2001:db8:1:2:ffff::2"})
    token = {"X-Weir-Challenge": reply.json["token"]}
    assert limit_of(weir, {"X-Forwarded-For": "2001:db8:1:2:3::4"} | token) == "passed"
    assert limit_of(weir, {"X-Forwarded-For": "2001:db8:1:3::1"} | token) == "unproven"


@pytest.mark.parametrize("to", ["//evil.example", "/\\evil.example", "https://evil.example/",
                                "evil", "\\\\evil.example", "javascript:alert(1)", "/%09/\n", ""])
def test_a_client_returns_to_a_path_of_the_same_origin_only(weir, to):
    puzzle, solution = puzzle_of(weir)
    reply = weir.post({"puzzle": puzzle, "solution": solution, "to": to}, CLIENT | PAGE)
    assert reply.status == 400 and reply["location"] is None and reply["set-cookie"] is None
    encoded = "".join(f"%{byte:02X}" for byte in to.encode())
    for target in (encoded, *([] if "\n" in to or "\\" in to else [to])):
        assert weir.challenge(target=f"{PATH}?to={target}", fields=CLIENT | PAGE).status == 400


def test_a_path_may_be_encoded_and_is_escaped(weir):
    page = weir.challenge(target=f"{PATH}?to=%2Fa%3Fb%3D%22%3E%3Cscript%3E", fields=CLIENT | PAGE)
    assert form_of(page.body)[0]["to"] == '/a?b="><script>'
    assert b"<script>" in page.body and page.body.count(b"<script") == 2


def test_the_listener_serves_nothing_else(weir):
    for method, target, status in (("GET", "/", 404), ("GET", "/metrics", 404),
                                   ("POST", "/v1/check", 404), ("GET", PATH + "/x", 404),
                                   ("PUT", PATH, 405), ("DELETE", PATH, 405)):
        assert weir.challenge(method, target, CLIENT).status == status
    assert weir.challenge("POST", PATH, CLIENT | {"Content-Type": "text/plain"}, b"x").status == 415
    assert weir.challenge("POST", PATH, CLIENT | {"Content-Type": FORM}, b"a" * 9000).status == 403


def test_metrics_and_the_log_tell_of_refusals(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        puzzle, solution = puzzle_of(weir)
        values = {"puzzle": puzzle, "solution": solution}
        statuses = [weir.post(values, CLIENT).status for _ in range(3)]
        assert statuses == [200, 403, 403]
        refused(weir.post({"puzzle": "x", "solution": "1"}, CLIENT))
        line = weir.wait_event("challenge_refused", 3)
        assert "client=192.0.2.1 reason=malformed" in line
        metrics = weir.metrics()
    answered = 'weir_requests_total{front="challenge",route="challenge",code="%d"}'
    assert [metrics[answered % code] for code in (200, 403)] == [1, 4]
    assert metrics["weir_challenges_served_total"] == 1
    assert metrics["weir_challenges_solved_total"] == 1
    assert metrics['weir_challenges_refused_total{reason="replayed"}'] == 2
    assert metrics['weir_challenges_refused_total{reason="malformed"}'] == 1
    assert metrics['weir_challenges_refused_total{reason="forged"}'] == 0


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_nodes_that_share_a_store_take_a_solution_once(tmp_path, mode):
    with RedisServer(tmp_path / "redis") as redis:
        store = {"redis": {"url": redis.url, "mode": mode}, "nodes": 2, "deadline": "5s"}
        with ChallengeWeir(tmp_path / "a", store=store) as first, \
                ChallengeWeir(tmp_path / "b", store=store) as second:
            wait_until(lambda: first.metrics()["weir_store_up"] == 1 ==
                       second.metrics()["weir_store_up"])
            puzzle, solution = puzzle_of(first)
            values = {"puzzle": puzzle, "solution": solution}
            token = first.post(values, CLIENT).json["token"]
            assert "used before" in refused(second.post(values, CLIENT))
            assert limit_of(second, CLIENT | {"X-Weir-Challenge": token}) == "passed"


def test_a_solution_is_taken_while_the_store_is_away(tmp_path):
    with RedisServer(tmp_path / "redis") as redis:
        store = {"redis": {"url": redis.url}, "nodes": 2}
        with ChallengeWeir(tmp_path / "a", store=store) as weir:
            wait_until(lambda: weir.metrics()["weir_store_up"] == 1)
            redis.kill()
            puzzle, solution = puzzle_of(weir)
            values = {"puzzle": puzzle, "solution": solution}
            assert [weir.post(values, CLIENT).status for _ in range(2)] == [200, 403]


def test_a_solution_is_taken_where_the_table_has_no_room_for_its_record(tmp_path):
    with ChallengeWeir(tmp_path, difficulty=1, state={"size": "256KiB"}) as weir, \
            Client(weir.challenge_address) as client:
        count = 0
        while count % 500 or weir.metrics()["weir_table_overflows_total"] < 500:
            puzzle = client.request("GET", PATH).json["puzzle"]
            reply = client.request("POST", PATH, {"Content-Type": FORM},
                                   f"puzzle={puzzle}&solution={solve(puzzle, 1)}".encode())
            assert reply.status == 200, (count, reply.body)
            count += 1


def test_keys_are_changed_by_a_reload_without_losing_tokens(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        old = {"X-Weir-Challenge": token_of(weir)}
        weir.key_file.write_text("f" * 64 + "\n" + KEY + "\n", encoding="ascii")
        assert "event=reloaded" in weir.reload()
        new = {"X-Weir-Challenge": token_of(weir)}
        assert limit_of(weir, CLIENT | old) == limit_of(weir, CLIENT | new) == "passed"
        weir.key_file.write_text("f" * 64 + "\n", encoding="ascii")
        assert "event=reloaded" in weir.reload()
        assert limit_of(weir, CLIENT | old) == "unproven"
        assert limit_of(weir, CLIENT | new) == "passed"


def test_the_client_is_the_peer_where_it_is_no_trusted_proxy(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        weir.write_rules(rules_of(*weir.limits, challenge=weir.section,
                                  server={"trusted_proxies": ["10.0.0.1"]}))
        assert "event=reloaded" in weir.reload()
        puzzle, solution = puzzle_of(weir)
        reply = weir.post({"puzzle": puzzle, "solution": solution},
                          {"X-Forwarded-For": "198.51.100.7"})
        assert reply.status == 200


def test_a_cookie_for_tests_goes_over_plain_http(tmp_path):
    with ChallengeWeir(tmp_path, cookie="weir-test", secure=False, life="2min") as weir:
        puzzle, solution = puzzle_of(weir)
        reply = weir.post({"puzzle": puzzle, "solution": solution}, CLIENT)
        assert re.fullmatch(r"weir-test=[\w-]+; Path=/; Max-Age=120; HttpOnly; SameSite=Lax",
                            reply["set-cookie"])
        assert reply.json["expires_in"] == 120


def test_without_the_section_there_is_no_listener(tmp_path):
    with Weir(tmp_path, rules_of()) as weir:
        assert "front=challenge" not in weir.text()
        assert not any(name.startswith("weir_challenge") for name in weir.metrics())
