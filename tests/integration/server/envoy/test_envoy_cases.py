# SPDX-License-Identifier: Apache-2.0
"""The cases of envoyproxy/ratelimit's own tests, through a real gRPC client. The numbers are those of
the list that docs/envoy.md gives; times that need a clock of one's own are in the unit tests."""

import itertools
import time
from contextlib import ExitStack

import grpc
import pytest

from daemon.envoy import (OK, OVER_LIMIT, UNLIMITED, Service, ask, begin_window, configuration,
                          rule, tell)
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until

CONFIG_A = configuration(
    "test-domain",
    rule("key1", None, None, rule("subkey1", "second", 5),
         rule("subkey1", "second", 10, value="subvalue1"), value="value1"),
    rule("key2", "minute", 20),
    rule("key2", "minute", 30, value="value2"),
    rule("key2", value="value3"),
    rule("key3", "hour", 1),
    rule("key4", "day", 1, limit={"name": "key4_rate_limit"}),
    rule("key5", "day", 15, rule("subkey5", "day", 25, value="subvalue5"), value="value5"),
    rule("key6", limit={"unlimited": True}),
    rule("key7", "minute", 70, detailed_metric=True))

CONFIG_WILD = configuration(
    "wild",
    rule("wild", "hour", 20, value="foo*"),
    rule("noWild", "hour", 30, value="foo"),
    rule("midWild", "hour", 20, value="bar*b"),
    rule("multiWild", "hour", 10, value="foo*bar*baz"),
    rule("nestedWild", None, None, rule("wild", "hour", 20, value="goo*"), value="val1"),
    rule("file", "hour", 50, value="test1"),
    rule("file", "hour", 100, value="test*"),
    rule("files", "hour", 10, value="files/*", share_threshold=True),
    rule("files_no_share", "hour", 10, value="files/*"),
    rule("path", None, None, rule("file", None, None, rule("type", "hour", 120), value="file/*"),
         value="path/*", share_threshold=True),
    rule("api", "hour", 9, value="/api*v1", share_threshold=True),
    rule("svc", "hour", 9, value="svc*ep*rpc", share_threshold=True))

CONFIG_METRICS = configuration(
    "metrics",
    rule("route", None, None, rule(
        "http_method", None, None, rule("subject_id", "hour", 60),
        rule("subject", "hour", 60, detailed_metric=True), value_to_metric=True),
        value_to_metric=True),
    rule("action", "hour", 60, value="read*", value_to_metric=True),
    rule("share", "hour", 60, value="a*", share_threshold=True, value_to_metric=True),
    rule("service", None, None, rule("endpoint", "hour", 60, value="get", detailed_metric=True),
         value="svc/*", share_threshold=True))

CONFIG_MODES = configuration(
    "modes",
    rule("shadow", "hour", 1, shadow_mode=True),
    rule("shadow", "hour", 1, value="not"),
    rule("plain", "hour", 1),
    rule("plain2", "hour", 2),
    rule("quota1", "hour", 1, quota_mode=True),
    rule("quota2", "hour", 2, quota_mode=True),
    rule("banned", "hour", 0, limit={"name": "banned_limit"}),
    rule("source", "hour", 1, limit={"name": "source_limit"}),
    rule("special", "hour", 2, limit={"replaces": [{"name": "banned_limit"}]}),
    rule("both", "hour", 4, limit={"replaces": [{"name": "banned_limit"},
                                                {"name": "source_limit"}]}))

CONFIG_BASIC = """
# basic.yaml and another.yaml of its integration tests
domain: basic
descriptors:
  - key: key1
    rate_limit:
      unit: second
      requests_per_unit: 50
  - key: one_per_minute
    rate_limit:
      unit: minute
      requests_per_unit: 1
"""

CONFIG_ANOTHER = configuration(
    "another", rule("key2", "minute", 20), rule("key3", "hour", 10), rule("key4", "day", 20))

fresh = map("v{}".format, itertools.count())  # values that nobody has used


@pytest.fixture(scope="module", params=["memory", "redis", "redis_compat"])
def service(request, tmp_path_factory):
    """The same answers (60) with states here, in Redis, and in Redis as the original has them."""
    files = {"a.yaml": CONFIG_A, "wild.yaml": CONFIG_WILD, "metrics.yaml": CONFIG_METRICS,
             "modes.yaml": CONFIG_MODES, "basic.yaml": CONFIG_BASIC,
             "more/another.yaml": CONFIG_ANOTHER}
    folder = tmp_path_factory.mktemp("cases")
    with ExitStack() as stack:
        store = {}
        if request.param != "memory":
            redis = stack.enter_context(RedisServer(folder / "redis"))
            store = {"store": {"redis": redis.url, "deadline": "5s"},
                     "redis_compat": request.param == "redis_compat"}
        running = stack.enter_context(Service(folder, files, "--workers", 2, **store))
        if store:
            running.wait_event("store_up")
        yield running


@pytest.fixture(scope="module")
def stub(service):
    with service.stub() as made:
        yield made


# --- Matching ------------------------------------------------------------------------------------

NONE = ("OK", None, 0)


@pytest.mark.parametrize("number, domain, descriptor, expected, stat", [
    (1, "foo_domain", "key1=value1", NONE, None),
    (2, "test-domain", "key1=something", NONE, None),
    (3, "test-domain", "key1=value1", NONE, None),
    (4, "test-domain", "key2=value2,subkey=subvalue", NONE, None),
    (5, "test-domain", "key5=value5,subkey5=subvalue", NONE, None),
    (6, "test-domain", "key1=value1,subkey1=something", ("OK", "5/SECOND", 4),
     "key1_value1.subkey1"),
    (7, "test-domain", "key1=value1,subkey1=subvalue1", ("OK", "10/SECOND", 9),
     "key1_value1.subkey1_subvalue1"),
    (8, "test-domain", "key2=something", ("OK", "20/MINUTE", 19), "key2"),
    (9, "test-domain", "key2=value2", ("OK", "30/MINUTE", 29), "key2_value2"),
    (10, "test-domain", "key2=value3", NONE, None),
    (11, "test-domain", "key3=foo", ("OK", "1/HOUR", 0), "key3"),
    (12, "test-domain", "key4=foo", ("OK", "1/DAY", 0), "key4"),
    (13, "test-domain", "key6=foo", ("OK", None, UNLIMITED), "key6"),
    (14, "test-domain", "key7=unspecified_value", ("OK", "70/MINUTE", 69),
     "key7_unspecified_value"),
    (15, "test-domain", "key5=value5", ("OK", "15/DAY", 14), "key5_value5"),
    (15, "test-domain", "key5=value5,subkey5=subvalue5", ("OK", "25/DAY", 24),
     "key5_value5.subkey5_subvalue5"),
])
def test_a_descriptor_meets_its_limit(service, stub, number, domain, descriptor, expected, stat):
    del number
    assert tell(stub, domain, descriptor) == [expected]
    if stat:
        counts = service.counts(f"{domain}.{stat}")
        assert counts["total_hits"] >= 1 and counts["within_limit"] == counts["total_hits"]


def test_names_of_limits_and_unknown_domains_are_reported(service, stub):
    answer = ask(stub, "test-domain", "key4=other")  # 12
    assert answer.statuses[0].current_limit.name == "key4_rate_limit"
    before = service.stats().get("ratelimit.service.rate_limit.nowhere.domain_not_found", 0)  # 1
    assert ask(stub, "nowhere", "a=b").overall_code == OK
    assert service.stats()["ratelimit.service.rate_limit.nowhere.domain_not_found"] == before + 1
    ask(stub, "nowhere", "a=b", "c=d", "a=b")  # it is looked up for each
    assert service.stats()["ratelimit.service.rate_limit.nowhere.domain_not_found"] == before + 4


def test_an_override_goes_before_the_configuration(service, stub):
    def override(domain, requests, unit, value="something"):
        return tell(stub, domain, {"entries": f"key1=value1,subkey1={value}",
                                   "limit": (requests, unit)})

    assert override("foo_domain", 10, 4) == [NONE]  # 16
    assert override("test-domain", 10, 4) == [("OK", "10/DAY", 9)]  # 17
    # Not an hour: in the compatible names its window is the day's between 00:00 and 01:00 UTC.
    assert override("test-domain", 42, 2) == [("OK", "42/MINUTE", 41)]
    assert service.counts("test-domain.key1_value1.subkey1_something")["total_hits"] == 2
    assert override("test-domain", 10, 4, "other") == [("OK", "10/DAY", 9)]  # 18
    assert service.counts("test-domain.key1_value1.subkey1_other")["total_hits"] == 1


def test_entries_count_in_their_order_and_case(stub):
    assert tell(stub, "test-domain", "subkey1=subvalue1,key1=value1", "KEY2=value2",
                "key2=Value2") == [NONE, NONE, ("OK", "20/MINUTE", 19)]


@pytest.mark.parametrize("descriptor, expected", [
    ("wild=foo1", "20/HOUR"), ("wild=foo2", "20/HOUR"),  # 36
    ("wild=bar", None), ("noWild=foo1", None),  # 37, 38
    ("midWild=barab", "20/HOUR"), ("midWild=bar123b", "20/HOUR"), ("midWild=barb", "20/HOUR"),
    ("midWild=bara", None), ("midWild=xbarb", None),  # 39
    ("multiWild=foo123bar456baz", "10/HOUR"), ("multiWild=foobarbaz", "10/HOUR"),
    ("multiWild=foo123baz", None), ("multiWild=bar456baz", None),  # 40
    ("nestedWild=val1,wild=goo2", "20/HOUR"),  # 41
    ("file=test1", "50/HOUR"), ("file=test2", "100/HOUR"), ("file=test23", "100/HOUR"),
    ("file=test123", "100/HOUR"),  # 42
    ("api=/api/v2", None), ("svc=svceprpc", "9/HOUR"), ("svc=svcABCrpc", None),  # 51
])
def test_patterns_match_whole_values(stub, descriptor, expected):
    (code, limit, _), = tell(stub, "wild", descriptor)
    assert (code, limit) == ("OK", expected)


def test_patterns_name_the_counters(service, stub):
    ask(stub, "wild", "wild=foo9", "nestedWild=val1,wild=goo9")
    assert service.counts("wild.wild_foo*")["total_hits"] >= 1
    assert service.counts("wild.nestedWild_val1.wild_goo*")["total_hits"] >= 1
    assert tell(stub, "wild", "wild=fooX", "wild=fooY", "wild=fooX") == [  # 43
        ("OK", "20/HOUR", 19), ("OK", "20/HOUR", 19), ("OK", "20/HOUR", 18)]


def test_values_share_a_threshold_where_asked_for(service, stub):
    for _ in range(10):  # 44, 46
        assert ask(stub, "wild", "files=files/a.pdf").overall_code == OK
    for value in "files/b.csv", "files/subdir/f.txt":
        assert tell(stub, "wild", f"files={value}") == [("OVER", "10/HOUR", 0)]
    for i in range(10):  # 45
        assert tell(stub, "wild", f"files_no_share=files/{i}") == [("OK", "10/HOUR", 9)]
    seen = [tell(stub, "wild", f"path=path/{i},file=file/{j},type=x")[0][2]  # 49
            for i, j in ((1, 1), (2, 1), (2, 2))]
    assert seen == [119, 118, 119]
    assert service.counts("wild.path_path/*.file_file/*.type")["total_hits"] == 3
    assert [tell(stub, "wild", f"api={value}")[0][2]  # 51
            for value in ("/api/v1", "/api-beta-v1", "/apiXYZv1")] == [8, 7, 6]


@pytest.mark.parametrize("descriptor, stat", [  # 50, 52
    ("route=draw,http_method=GET,subject_id=123", "route_draw.http_method_GET.subject_id"),
    ("route=,http_method=GET,subject_id=123", "route.http_method_GET.subject_id"),
    ("route=draw,http_method=GET,subject=123", "route_draw.http_method_GET.subject_123"),
    ("action=readfile", "action_readfile"),
    ("share=abc", "share_a*"),
    ("service=svc/1,endpoint=get", "service_svc/*.endpoint_get"),
])
def test_values_stand_in_names_where_asked_for(service, stub, descriptor, stat):
    ask(stub, "metrics", descriptor)
    assert service.counts(f"metrics.{stat}")["total_hits"] == 1


# --- Counting ------------------------------------------------------------------------------------

def test_the_integration_basics(service, stub):
    answer = ask(stub, "foo", "hello=world")  # 53
    assert answer.overall_code == OK and len(answer.statuses) == 1
    assert not answer.response_headers_to_add and not answer.HasField("dynamic_metadata")
    assert tell(stub, "basic", f"key1={next(fresh)}") == [("OK", "50/SECOND", 49)]  # 54
    before = service.counts("another.key2")
    begin_window("MINUTE")
    value = next(fresh)
    for i in range(1, 26):  # 55
        assert tell(stub, "another", f"key2={value}") == [
            ("OK", "20/MINUTE", 20 - i) if i <= 20 else ("OVER", "20/MINUTE", 0)]
    after = service.counts("another.key2")
    assert after["total_hits"] - before.get("total_hits", 0) == 25
    assert after["over_limit"] - before.get("over_limit", 0) == 5
    assert after["near_limit"] - before.get("near_limit", 0) == 4
    assert after["within_limit"] - before.get("within_limit", 0) == 20


def test_descriptors_are_counted_each_for_itself(stub):
    begin_window("MINUTE")
    value = next(fresh)
    for i in range(1, 16):  # 57
        answer = ask(stub, "another", f"key2={value}", f"key3={value}")
        assert answer.overall_code == (OK if i <= 10 else OVER_LIMIT)
        assert answer.statuses[0].code == OK
        assert answer.statuses[0].limit_remaining == 20 - i
        assert answer.statuses[1].limit_remaining == max(10 - i, 0)


def test_the_reset_comes_nearer(stub):
    begin_window("DAY")
    value, before = next(fresh), time.time()
    first = ask(stub, "another", f"key4={value}").statuses[0].duration_until_reset.seconds  # 59
    earliest, latest = (86400 - int(now) % 86400 for now in (before, time.time()))
    assert latest - 2 <= first <= earliest + 2

    def later():
        answer = ask(stub, "another", f"key4={value}").statuses[0]
        return answer.duration_until_reset.seconds < first

    wait_until(later, what="the next second")


def test_hits_are_the_descriptors_own_or_the_requests(stub):
    a, b = next(fresh), next(fresh)
    peek = {"entries": f"key4={a}", "hits_addend": 0}
    assert tell(stub, "another", peek, {"entries": f"key3={b}", "hits_addend": 1}) == [  # 67
        ("OK", "20/DAY", 20), ("OK", "10/HOUR", 9)]
    assert tell(stub, "another", f"key4={a}", hits_addend=7) == [("OK", "20/DAY", 13)]
    assert tell(stub, "another", f"key4={a}") == [("OK", "20/DAY", 12)]
    assert tell(stub, "another", f"key4={a}", hits_addend=12) == [("OK", "20/DAY", 0)]
    assert tell(stub, "another", peek) == [("OK", "20/DAY", 0)]
    assert tell(stub, "another", f"key4={a}", hits_addend=2**32 - 1) == [("OVER", "20/DAY", 0)]
    assert tell(stub, "another", peek) == [("OVER", "20/DAY", 0)]


def test_hits_can_be_given_back(service, stub):
    value = next(fresh)
    tell(stub, "another", f"key4={value}", hits_addend=8)
    back = {"entries": f"key4={value}", "hits_addend": 5, "is_negative_hits": True}
    assert tell(stub, "another", back) == [("OK", "20/DAY", 17)]
    assert tell(stub, "another", back) == [("OK", "20/DAY", 20)]
    assert service.counts("another.key4")["total_negative_hits"] == 10


def test_hits_near_and_over_the_limit(service, stub):
    cases = [  # limit, before, hits, over, near: 64, 65, 71 to 77
        (10, 4, 1, 0, 0), (10, 10, 1, 1, 0), (20, 2, 3, 0, 0), (8, 5, 2, 0, 1), (20, 16, 3, 0, 3),
        (20, 19, 3, 2, 1), (20, 15, 7, 2, 4), (10, 27, 3, 3, 0), (5, 2, 5, 2, 1)]
    for limit, before, hits, over, near in cases:
        value = next(fresh)
        one = {"entries": f"near={value}", "limit": (limit, 4)}
        ask(stub, "another", one, hits_addend=before)
        then = service.counts(f"another.near_{value}")
        ask(stub, "another", one, hits_addend=hits)
        now = service.counts(f"another.near_{value}")
        assert now.get("over_limit", 0) - then.get("over_limit", 0) == over
        assert now.get("near_limit", 0) - then.get("near_limit", 0) == near


def test_the_same_descriptor_twice_counts_twice(stub):
    value = next(fresh)
    assert tell(stub, "another", f"key3={value}", f"key3={value}") == [
        ("OK", "10/HOUR", 9), ("OK", "10/HOUR", 8)]


def test_many_descriptors_in_one_request(stub):
    value = next(fresh)
    answer = ask(stub, "another", *[f"key4={value}"] * 100)
    assert [one.code for one in answer.statuses] == [OK] * 20 + [OVER_LIMIT] * 80
    with pytest.raises(grpc.RpcError) as error:
        ask(stub, "another", *["a=b"] * 1025)
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.value.details() == "more than 1024 descriptors"


# --- Modes ---------------------------------------------------------------------------------------

def test_a_rule_in_shadow_passes_and_is_counted(service, stub):
    value, before = next(fresh), service.counts("modes.shadow").get("shadow_mode", 0)
    ask(stub, "modes", f"shadow={value}")
    assert tell(stub, "modes", f"shadow={value}") == [("OK", "1/HOUR", 0)]  # 79
    assert service.counts("modes.shadow")["shadow_mode"] == before + 1
    ask(stub, "modes", "shadow=not")  # 35
    assert tell(stub, "modes", "shadow=not") == [("OVER", "1/HOUR", 0)]
    ask(stub, "modes", f"plain={value}")
    answer = ask(stub, "modes", f"shadow={value}", f"plain={value}")  # 81
    assert answer.overall_code == OVER_LIMIT
    assert [one.code for one in answer.statuses] == [OK, OVER_LIMIT]


def overall(stub, *descriptors, domain="modes"):
    return ask(stub, domain, *descriptors).overall_code


def test_quotas_are_over_when_all_of_them_are(stub):
    used = next(fresh)
    for key in "plain", "quota1", "quota2", "quota2":
        ask(stub, "modes", f"{key}={used}")
    assert overall(stub, f"plain={used}", f"quota1={next(fresh)}") == OVER_LIMIT  # 83
    assert overall(stub, f"plain={next(fresh)}", f"quota1={used}") == OVER_LIMIT  # 84
    assert overall(stub, f"quota1={used}", f"quota2={next(fresh)}") == OK  # 85
    assert overall(stub, f"quota1={used}", f"quota2={used}") == OVER_LIMIT
    value = next(fresh)
    assert [overall(stub, f"quota1={value}", f"quota2={value}") for _ in range(3)] == [
        OK, OK, OVER_LIMIT]  # 87


def test_a_peek_before_and_a_debit_after(stub):
    value, passed = next(fresh), []
    for _ in range(4):  # 88
        one = {"entries": f"quota2={value}", "hits_addend": 0}
        passed.append(ask(stub, "modes", one).overall_code)
        ask(stub, "modes", {**one, "hits_addend": 1})
    assert passed == [OK, OK, OK, OVER_LIMIT]


def test_limits_replace_others_by_name(service, stub):
    value = next(fresh)
    assert overall(stub, f"banned={value}") == OVER_LIMIT  # 90
    before = service.counts("modes.banned")
    assert [overall(stub, f"banned={value}", f"special={value}") for _ in range(3)] == [
        OK, OK, OVER_LIMIT]
    assert service.counts("modes.banned") == before
    passed = [overall(stub, f"banned={value}", f"source={value}", f"both={value}")
              for _ in range(5)]
    assert passed == [OK] * 4 + [OVER_LIMIT]
    assert tell(stub, "modes", f"source={value}") == [("OK", "1/HOUR", 0)]


def test_modes_and_headers_and_metadata_for_the_whole_service(tmp_path):
    files = {"modes.yaml": configuration(
        "modes",
        rule("a", "hour", 1, metadata={"name": "service_1", "x": {"p": 1}}),
        rule("b", "hour", 1, metadata={"name": "service_2", "x": {"q": True}, "l": [1, None, "s"]}),
        rule("d", "hour", 9, detailed_metric=True, metadata={"kept": "yes"}))}
    with Service(tmp_path, files, quota_mode=True, shadow_mode=True, dynamic_metadata=True,
                 response_headers=True) as service, service.stub() as stub:
        def headers(answer):
            return [(one.key, one.value) for one in answer.response_headers_to_add]

        def metadata(answer):
            from google.protobuf.json_format import MessageToDict
            return MessageToDict(answer.dynamic_metadata, descriptor_pool=None)

        first = ask(stub, "modes", "a=1", "b=1", hits_addend=1)
        assert headers(first)[:2] == [("RateLimit-Limit", "1"), ("RateLimit-Remaining", "0")]
        assert headers(first)[2][0] == "RateLimit-Reset" and 1 <= int(headers(first)[2][1]) <= 3600
        result = metadata(first)
        assert result["domain"] == "modes" and result["hitsAddend"] == 1
        assert [one["entries"] for one in result["descriptors"]] == [["a=1"], ["b=1"]]
        assert result["metadata"] == {"name": "service_1", "x": {"p": 1, "q": True},  # 89
                                    "l": [1, None, "s"]}
        assert metadata(ask(stub, "modes", "d=1"))["metadata"] == {"kept": "yes"}
        second = ask(stub, "modes", "a=1", "b=2")
        assert metadata(second)["metadata"]["name"] == "service_2"
        assert second.overall_code == OK
        third = ask(stub, "modes", "a=1", "b=2")  # 80, 86
        assert third.overall_code == OK
        assert [one.code for one in third.statuses] == [OVER_LIMIT, OVER_LIMIT]
        assert service.stats()["ratelimit.service.global_shadow_mode"] == 1
        assert "metadata" not in metadata(third)


def test_headers_have_the_names_that_they_are_given(tmp_path):
    files = {"a.yaml": configuration("d", rule("a", "minute", 10), rule("b", "hour", 5),
                                     rule("q", "hour", 1, quota_mode=True))}
    names = {"limit": "A-Ratelimit-Limit", "remaining": "A-Ratelimit-Remaining",
             "reset": "A-Ratelimit-Reset"}
    with Service(tmp_path, files, response_headers=names) as service, service.stub() as stub:
        begin_window("MINUTE")
        ask(stub, "d", "a=1", hits_addend=11)
        answer = ask(stub, "d", "a=1", "b=1")  # 91
        limit, remaining, reset = answer.response_headers_to_add
        assert (limit.key, limit.value) == ("A-Ratelimit-Limit", "10")
        assert (remaining.key, remaining.value) == ("A-Ratelimit-Remaining", "0")
        assert reset.key == "A-Ratelimit-Reset"
        assert int(reset.value) == answer.statuses[0].duration_until_reset.seconds
        assert not ask(stub, "d", "none=1").response_headers_to_add


def test_nothing_is_charged_where_a_request_is_over(tmp_path):
    files = {"a.yaml": configuration("d", rule("key2", "hour", 20), rule("key3", "hour", 10))}
    with Service(tmp_path, files, charge="if_all_allow") as service, service.stub() as stub:
        for i in range(1, 16):  # 58
            answer = ask(stub, "d", "key2=x", "key3=x")
            assert answer.statuses[0].limit_remaining == (20 - i if i <= 10 else 10)
            assert answer.overall_code == (OK if i <= 10 else OVER_LIMIT)


def test_what_the_local_cache_would_have_known_is_counted(tmp_path):
    files = {"a.yaml": configuration("d", rule("key2", "hour", 20))}
    with Service(tmp_path, files, count_local_cache=True) as service, service.stub() as stub:
        for i in range(1, 26):  # 56
            ask(stub, "d", "key2=x")
            local = service.counts("d.key2").get("over_limit_with_local_cache", 0)
            assert local == max(i - 21, 0)


# --- What is better ------------------------------------------------------------------------------

def test_other_algorithms_and_several_limits(tmp_path):
    files = {"a.yaml": configuration(
        "d",
        rule("gcra", "hour", 60, weir={"algorithm": "gcra", "burst": 3}),
        rule("several", "day", 3, weir={"limits": [{"unit": "week", "requests_per_unit": 2}]}),
        rule("times", "hour", 5, weir={"unit_multiplier": 24, "cost": 2}),
        rule("all", "hour", 10, weir={"charge": "if_all_allow"}),
        rule("one", "hour", 1))}
    with Service(tmp_path, files) as service, service.stub() as stub:
        assert [one[0][0] for one in (tell(stub, "d", "gcra=x") for _ in range(4))] == [
            "OK", "OK", "OK", "OVER"]
        answer = ask(stub, "d", "gcra=x").statuses[0]
        assert 50 <= answer.duration_until_reset.seconds <= 60  # until one more is free
        assert [tell(stub, "d", "several=x")[0] for _ in range(3)] == [
            ("OK", "2/WEEK", 1), ("OK", "2/WEEK", 0), ("OVER", "2/WEEK", 0)]
        answers = [ask(stub, "d", "times=x").statuses[0] for _ in range(3)]
        assert [one.limit_remaining for one in answers] == [3, 1, 0]
        assert answers[2].code == OVER_LIMIT
        ask(stub, "d", "all=x", "one=x")
        for _ in range(3):
            answer = ask(stub, "d", "all=x", "one=x")
            assert (answer.overall_code, answer.statuses[0].limit_remaining) == (OVER_LIMIT, 9)
