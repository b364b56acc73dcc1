# SPDX-License-Identifier: Apache-2.0
"""Envoy's rate limit service as a whole: errors, reload, health, /json, counters and where they go,
the environment of the original, states in Redis."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading

import grpc
import pytest

from daemon import grpc as wire
from daemon.envoy import OK, OVER_LIMIT, Service, ask, configuration, rule, tell
from daemon.http import Client
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import ROOT, weir_path

BASIC = configuration("basic", rule("key1", "second", 50), rule("hour", "hour", 2))
SERVING, NOT_SERVING = 1, 2


def status_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code(), error.value.details()


def loads(service):
    stats = service.stats()
    return (stats["ratelimit.service.config_load_success"],
            stats["ratelimit.service.config_load_error"])


# --- Errors --------------------------------------------------------------------------------------

def test_errors_have_the_originals_words(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}) as service, service.stub() as stub:
        unknown = grpc.StatusCode.UNKNOWN  # 92
        assert status_of(lambda: ask(stub, "", "a=b")) == (
            unknown, "rate limit domain must not be empty")
        assert status_of(lambda: ask(stub, "basic")) == (
            unknown, "rate limit descriptor list must not be empty")
        errors = service.stats()["ratelimit.service.call.should_rate_limit.service_error"]
        assert errors == 2


def test_an_override_without_a_unit_ends_nothing(tmp_path):
    """Defect 1 of the original: it ends the process."""
    with Service(tmp_path, {"a.yaml": BASIC}) as service, service.stub() as stub:
        for unit in 0, 99:
            code, details = status_of(lambda unit=unit: ask(
                stub, "basic", {"entries": "a=b", "limit": (5, unit)}))
            assert code == grpc.StatusCode.UNKNOWN and "unknown unit of time" in details
        assert tell(stub, "basic", "hour=x") == [("OK", "2/HOUR", 1)]
        body = {"limit": {"requestsPerUnit": 5}, "entries": [{"key": "a"}]}
        with service.client() as client:
            assert client.post("/json", {"domain": "basic", "descriptors": [body]}).status == 400
            assert client.request("GET", "/healthcheck").status == 200


@pytest.mark.parametrize("files, message", [
    ({"a.yaml": "descriptors: []"}, "a.yaml: config file cannot have empty domain"),  # 19
    ({"a.yaml": "domain: d", "b.yaml": "domain: d"},
     "b.yaml: duplicate domain 'd' in config file"),
    ({"a.yaml": "'''\n"},
     "a.yaml: error loading config file: yaml: line 2: found unexpected end of stream"),
    ({"a.yaml": "domain: d\ndescriptors: [a, b, c]"},
     "a.yaml: config error, yaml file contains list of type other than map: a"),
    ({"sub/a.yaml": configuration("d", rule("a", "foo", 1))},
     "sub.a.yaml: invalid rate limit unit 'foo'"),
])
def test_a_first_configuration_that_fails_lets_it_start(tmp_path, files, message):
    with Service(tmp_path, files) as service, service.stub() as stub:
        line = service.wait_event("envoy_config_error")
        assert message in line.replace('\\"', '"')
        assert status_of(lambda: ask(stub, "d", "a=b")) == (
            grpc.StatusCode.UNKNOWN, "no rate limit configuration loaded")
        assert loads(service) == (0, 1)
        shutil.rmtree(service.envoy_folder)
        service.envoy_folder.mkdir()
        service.write("a.yaml", BASIC)
        service.wait_event("envoy_config_loaded")
        wait_until(lambda: tell(stub, "basic", "key1=x")[0][1] == "50/SECOND")


# --- Reload --------------------------------------------------------------------------------------

def test_files_that_come_change_and_go_are_loaded(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}) as service, service.stub() as stub:
        assert tell(stub, "reload", "key1=x") == [("OK", None, 0)]  # 62
        service.write("reload.yaml", configuration("reload", rule("key1", "hour", 50)))
        service.wait_event("envoy_config_loaded", 2)
        assert tell(stub, "reload", "key1=x") == [("OK", "50/HOUR", 49)]
        # A changed limit keeps what was used.
        service.write("reload.yaml", configuration("reload", rule("key1", "hour", 40)))
        service.wait_event("envoy_config_loaded", 3)
        assert tell(stub, "reload", "key1=x") == [("OK", "40/HOUR", 38)]
        (service.envoy_folder / "reload.yaml").unlink()
        service.wait_event("envoy_config_loaded", 4)
        assert tell(stub, "reload", "key1=x") == [("OK", None, 0)]
        # What is wrong changes nothing, and is logged once.
        service.write("reload.yaml", "domain: [")
        line = service.wait_event("envoy_config_error")
        assert "reload.yaml: error loading config file: yaml: line 1: did not find" in line
        assert tell(stub, "basic", "key1=y")[0][1] == "50/SECOND"
        assert loads(service) == (4, 1)  # 92
        service.write("reload.yaml", configuration("reload", rule("key1", "hour", 30)))
        service.wait_event("envoy_config_loaded", 5)
        assert tell(stub, "reload", "key1=x")[0][1] == "30/HOUR"
        assert "reload.key1: unit=HOUR requests_per_unit=30, shadow_mode: false, quota_mode: " \
               "false\n" in service.get("/rlconfig")


def test_a_configmap_of_kubernetes_is_swapped_as_a_whole(tmp_path):
    """Links to files in ..data, a link that is renamed over: no half of two configurations."""
    folder = tmp_path / "envoy"
    folder.mkdir()

    def publish(number, limit):
        version = folder / f"..2026_{number}"
        version.mkdir()
        for name in "one", "two":
            (version / f"{name}.yaml").write_text(configuration(name, rule("k", "hour", limit)))
        link = folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(folder / "..data")

    publish(1, 10)
    for name in "one", "two":
        (folder / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
    with Service(tmp_path, {}) as service, service.stub() as stub:
        assert tell(stub, "one", "k=a") == [("OK", "10/HOUR", 9)]
        publish(2, 20)
        service.wait_event("envoy_config_loaded", 2)
        assert [tell(stub, name, "k=a")[0][1] for name in ("one", "two")] == ["20/HOUR"] * 2


def test_a_root_that_is_a_link_is_swapped(tmp_path):
    for number, limit in (1, 10), (2, 20):
        folder = tmp_path / f"release{number}" / "config"
        folder.mkdir(parents=True)
        (folder / "a.yaml").write_text(configuration("d", rule("k", "hour", limit)))
    current = tmp_path / "current"
    current.symlink_to("release1")
    rules = rules_of(server={"grpc": "127.0.0.1:0"}, envoy={"config": str(current / "config")})
    with Service(tmp_path, {}, rules=rules) as service, service.stub() as stub:
        assert tell(stub, "d", "k=a")[0][1] == "10/HOUR"
        beside = tmp_path / "beside"
        beside.symlink_to("release2")
        beside.rename(current)
        service.wait_event("envoy_config_loaded", 2)
        assert tell(stub, "d", "k=a")[0][1] == "20/HOUR"


def test_domains_of_several_files_are_merged_where_asked_for(tmp_path):
    files = {"1.yaml": configuration("d", rule("key1", "hour", 10, value="value1")),
             "2.yaml": configuration("d", rule("key2", "hour", 20, value="value2"))}
    with Service(tmp_path, files, merge_domains=True) as service, service.stub() as stub:
        assert tell(stub, "d", "key1=value1", "key2=value2") == [  # 34
            ("OK", "10/HOUR", 9), ("OK", "20/HOUR", 19)]
        service.write("3.yaml", files["1.yaml"])
        line = service.wait_event("envoy_config_error")
        assert "3.yaml: duplicate descriptor composite key 'd.key1_value1'" in line


def test_wildcards_of_merged_files_follow_the_files_names(tmp_path):
    narrow = configuration("d", rule("path", "hour", 10, value="/a/b*"))
    wide = configuration("d", rule("path", "hour", 20, value="/a*"))
    files = {"2.yaml": wide, "1.yaml": narrow}  # written in the order that is not asked for
    with Service(tmp_path, files, merge_domains=True) as service, service.stub() as stub:
        assert tell(stub, "d", "path=/a/b/c")[0][1] == "10/HOUR"
        service.write("0.yaml", wide)
        (service.envoy_folder / "2.yaml").unlink()
        service.wait_event("envoy_config_loaded", 2)
        assert tell(stub, "d", "path=/a/b/c")[0][1] == "20/HOUR"


def test_settings_of_the_rules_file_are_read_again(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}) as service, service.stub() as stub:
        ask(stub, "basic", "hour=x", hits_addend=3)
        assert ask(stub, "basic", "hour=x").overall_code == OVER_LIMIT
        service.write_rules(rules_of(server={"grpc": "127.0.0.1:0"}, envoy={
            "config": str(service.envoy_folder), "shadow_mode": True}))
        assert "event=reloaded" in service.reload()
        wait_until(lambda: ask(stub, "basic", "hour=x").overall_code == OK)


def test_calls_go_on_while_configurations_change(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}, "--workers", 2) as service, service.stub() as stub:
        stop, failures = threading.Event(), []

        def load():
            while not stop.is_set():
                try:
                    limit = tell(stub, "basic", "key1=x")[0][1]
                    assert limit in ("50/SECOND", "60/SECOND")
                except Exception as error:  # whatever it is, it is one too many
                    failures.append(error)
                    return

        thread = threading.Thread(target=load)
        thread.start()
        for i in range(3):
            service.write("a.yaml", configuration("basic", rule("key1", "second", 60 - 10 * (i % 2))))
            service.wait_event("envoy_config_loaded", i + 2)
        stop.set()
        thread.join()
        assert not failures


# --- Health --------------------------------------------------------------------------------------

def healthy(service, stub):
    with service.client() as client:
        reply = client.request("GET", "/healthcheck")
    assert reply.body == (b"OK" if reply.status == 200 else b"")
    return reply.status, stub.health("ratelimit")


def test_health_may_need_domains(tmp_path):
    with Service(tmp_path, {}, healthy_with_domains=True) as service, service.stub() as stub:
        assert healthy(service, stub) == (500, NOT_SERVING)  # 94
        service.write("a.yaml", BASIC)
        service.wait_event("envoy_config_loaded", 2)
        assert healthy(service, stub) == (200, SERVING)
        (service.envoy_folder / "a.yaml").unlink()
        service.wait_event("envoy_config_loaded", 3)
        assert healthy(service, stub) == (500, NOT_SERVING)
        assert stub.health("") == SERVING


def test_health_needs_nothing_otherwise(tmp_path):
    with Service(tmp_path, {}) as service, service.stub() as stub:
        assert healthy(service, stub) == (200, SERVING)


# --- /json ---------------------------------------------------------------------------------------

def test_json_answers_as_protobuf_would(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}) as service:
        reply = service.json("basic", [("hour", "x")])  # 93
        assert reply.status == 200 and reply["content-type"] == "application/json"
        status = reply.json["statuses"][0]
        assert re.fullmatch(r"\d+s", status.pop("durationUntilReset"))
        assert status == {"code": "OK", "limitRemaining": 1,
                          "currentLimit": {"requestsPerUnit": 2, "unit": "HOUR"}}
        service.json("basic", [("hour", "x")])
        reply = service.json("basic", [("hour", "x")], [("none", "y")])
        assert reply.status == 429 and reply.json["overallCode"] == "OVER_LIMIT"
        assert [one["code"] for one in reply.json["statuses"]] == ["OVER_LIMIT", "OK"]
        with service.client() as client:
            for body in b"", b"}", b"[]", b'{"other": 1}', b'{"domain": "d"}':
                reply = client.request("POST", "/json", body=body)
                assert (reply.status, reply.body) == (400, b"Bad Request\n")
                assert reply["content-type"] == "text/plain; charset=utf-8"
            body = b'{"domain":"basic","descriptors":[{"entries":[{"key":"key1"}]}]}'
            for method in "GET", "PUT", "DELETE":
                assert client.request(method, "/json", body=body).status == 200


def test_a_mark_is_in_both_directions_of_both_protocols(tmp_path):
    marked = configuration("d", {**rule("a", "hour", 2), "weir": {"mark": "99%"}})
    with Service(tmp_path, {"a.yaml": marked}) as service, service.stub() as stub:
        answers = [ask(stub, "d", "a=x") for _ in range(3)]
        replies = [service.json("d", [("a", "y")]).json for _ in range(3)]
    by_call = [([(one.key, one.value) for one in answer.response_headers_to_add],
                     [(one.key, one.value) for one in answer.request_headers_to_add])
                    for answer in answers]
    mark, reject = [("X-Weir-Action", "mark")], [("X-Weir-Action", "reject")]
    assert by_call == [([], []), (mark, mark), (reject, [])]
    assert [reply["overallCode"] for reply in replies] == ["OK", "OK", "OVER_LIMIT"]
    assert [[[(one["key"], one["value"]) for one in reply.get(name, [])]
             for name in ("responseHeadersToAdd", "requestHeadersToAdd")]
            for reply in replies] == [[[], []], [mark, mark], [reject, []]]


def test_json_and_calls_may_be_large_and_cut_short(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}, "--workers", 1) as service, service.stub() as stub:
        many = [[("hour", f"{i}" * 100)] for i in range(1000)]
        reply = service.json("basic", *many)
        assert reply.status == 200 and len(reply.json["statuses"]) == 1000
        body = json.dumps({"domain": "basic", "descriptors": [
            {"entries": [{"key": "hour", "value": "y"}]}] * 500}).encode()
        head = f"POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for size in 10, len(body) // 2, len(body):  # and the client is gone before the answer
            client = service.client()
            client.send(head + body[:size])
            client.close()
        assert tell(stub, "basic", "key1=z")[0][1] == "50/SECOND"


def test_without_a_configuration_there_is_no_such_page(tmp_path):
    with Weir(tmp_path, rules_of()) as weir:
        for path in "/json", "/healthcheck":
            with weir.client() as client:
                assert client.request("GET", path).status == 404
        for path in "/rlconfig", "/stats":
            with weir.admin() as client:
                assert client.request("GET", path).status == 404
        with weir.admin() as client:
            assert client.request("GET", "/")["content-type"].startswith("text/html")


# --- Counters ------------------------------------------------------------------------------------

def test_prometheus_has_the_originals_names(tmp_path):
    files = {"a.yaml": configuration(
        "d", rule("a", "hour", 2, rule("b", None, None, rule("c", "hour", 1), rule("e", "hour", 1)),
                  value="10.1.2.3"))}
    with Service(tmp_path, files, prometheus={"address": "127.0.0.1:0", "path": "/m"}) as service, \
            service.stub() as stub:
        for _ in range(3):
            ask(stub, "d", "a=10.1.2.3", "a=10.1.2.3,b=1,c=2", "a=10.1.2.3,b=1,e=2")
        address = re.search(r"front=prometheus address=(\S+)", service.text()).group(1)
        text = service.get("/m", address)
        name = "ratelimit_service_rate_limit_"
        assert f'{name}total_hits{{domain="d",key1="a_10_1_2_3"}} 3\n' in text
        assert f'{name}over_limit{{domain="d",key1="a_10_1_2_3"}} 1\n' in text
        # Deeper levels are one series, as in the original.
        assert f'{name}total_hits{{domain="d",key1="a_10_1_2_3",key2="b"}} 6\n' in text
        assert 'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3\n' in text
        assert 'ratelimit_service_config_load_success 1\n' in text
        # Times are not whole milliseconds, as they are there (its defect 8).
        count = 'ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 3\n'
        assert count in text
        total = re.search(r'response_time_seconds_sum{[^}]*} (\S+)', text).group(1)
        assert 0 < float(total) < 3
        assert text in service.get("/metrics")


def test_a_listener_for_prometheus_hides_no_requests_of_the_admin_listener(tmp_path):
    with Service(tmp_path, {"a.yaml": BASIC}, prometheus={"address": "127.0.0.1:0"}) as service:
        address = re.search(r"front=prometheus address=(\S+)", service.text()).group(1)
        service.get("/healthz")
        service.get("/readyz")
        service.get("/metrics", address)
        text = service.get("/metrics")
        for front, route in ("admin", "healthz"), ("admin", "readyz"), ("prometheus", "prometheus"):
            assert f'weir_requests_total{{front="{front}",route="{route}",code="200"}} ' in text


def test_values_beyond_ascii_have_counters_of_their_own(tmp_path):
    """Except what could end a line of statsd or /stats: the original lets a value write lines."""
    files = {"a.yaml": configuration("d", rule("v", "hour", 9, value_to_metric=True))}
    with Service(tmp_path, files, prometheus={"address": "127.0.0.1:0"}) as service, \
            service.stub() as stub:
        for value in "\u00e4", "\u00f6", "\u65e5\u672c", "a b", "a\nb", "a:b":
            ask(stub, "d", f"v={value}")
        ask(stub, "d", {"entries": "", "limit": (5, 3)})
        stats = service.stats()
        for value in "\u00e4", "\u00f6", "\u65e5\u672c", "a b":
            assert stats[f"ratelimit.service.rate_limit.d.v_{value}.total_hits"] == 1
            line = f'_total_hits{{domain="d",key1="v_{value}"}} 1\n'
            assert line in service.get("/metrics")
        assert stats["ratelimit.service.rate_limit.d.v_a_b.total_hits"] == 2
        assert '_total_hits{domain="d",key1="v_a_b"} 2\n' in service.get("/metrics")
        assert stats["ratelimit.service.rate_limit.d..total_hits"] == 1
        text = service.get("/metrics")
        assert '_total_hits{domain="d",key1=""} 1\n' in text
        series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[0] != "#"]
        assert len(series) == len(set(series))


def test_no_series_of_prometheus_is_there_twice(tmp_path):
    """Which would fail the whole scrape: levels below key2 are summed, whatever sorts between."""
    files = {"a.yaml": configuration("d", rule("a", None, None, rule(
        "b", "hour", 9, rule("c", "hour", 9)), rule("b-z", "hour", 9), rule("b z", "hour", 9)))}
    with Service(tmp_path, files) as service, service.stub() as stub:
        ask(stub, "d", "a=1,b=1", "a=1,b-z=1", "a=1,b z=1", "a=1,b=1,c=1")
        lines = [line for line in service.get("/metrics").splitlines() if "_total_hits{" in line]
        name = 'ratelimit_service_rate_limit_total_hits{domain="d",key1="a",key2='
        assert sorted(lines) == [f'{name}"b z"}} 1', f'{name}"b"}} 2', f'{name}"b-z"}} 1']


def test_calls_are_counted_as_the_original_does(tmp_path):
    """Those of gRPC, also health's Check, also those that fail; none of /json."""
    with Service(tmp_path, {"a.yaml": BASIC}) as service, service.stub() as stub:
        assert stub.health("ratelimit") == stub.health("") == SERVING
        assert service.json("basic", [("key1", "x")]).status == 200
        assert service.json("", [("key1", "x")]).status == 400
        ask(stub, "basic", "key1=x")
        status_of(lambda: ask(stub, "", "a=b"))
        stats = service.stats()
        assert stats["ratelimit_server.ShouldRateLimit.total_requests"] == 2
        assert stats["ratelimit_server.Check.total_requests"] == 2
        assert stats["ratelimit.service.call.should_rate_limit.service_error"] == 2
        text = service.get("/metrics")
        name = "ratelimit_service_total_requests"
        assert f'{name}{{grpc_method="ShouldRateLimit"}} 2\n' in text
        assert f'{name}{{grpc_method="Check"}} 2\n' in text
        assert 'response_time_seconds_count{grpc_method="ShouldRateLimit"} 2\n' in text


def received(sock, found):
    """Lines from a socket until they are what is waited for."""
    sock.settimeout(SECONDS_MAX)
    text = ""
    while not found(text):
        data = sock.recv(65536)
        assert data
        text += data.decode()
    return text


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_statsd_gets_what_has_been_counted_since(tmp_path, kind):
    listening = socket.socket(type=socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    address = f"{kind}://127.0.0.1:{listening.getsockname()[1]}"
    statsd = {"address": address, "interval": "100ms", "tags": {"foo": "bar", "a": "b"}}
    if kind == "udp":
        statsd["format"] = "dogstatsd"
    else:
        listening.listen()
    with listening, Service(tmp_path, {"a.yaml": BASIC}, statsd=statsd) as service, \
            service.stub() as stub:
        for _ in range(3):
            ask(stub, "basic", "hour=x")
        sock = listening if kind == "udp" else listening.accept()[0]
        name, tags = "ratelimit.service.rate_limit.basic.hour", "|#foo:bar,a:b"
        total = rf"{name}\.total_hits:(\d+)\|c{re.escape(tags)}\n"
        over = f"{name}.over_limit:1|c{tags}\n"
        if kind == "tcp":  # 61
            total = rf"{name}\.total_hits\.__foo=bar\.__a=b:(\d+)\|c\n"
            over = f"{name}.over_limit.__foo=bar.__a=b:1|c\n"

        def sum_of(text):
            return sum(map(int, re.findall(total, text)))

        text = received(sock, lambda text: sum_of(text) == 3)
        assert over in text
        assert re.search(r"ratelimit_server\.ShouldRateLimit\.response_time\S*:\d+\.\d+\|ms\|@", text)
        ask(stub, "basic", "hour=x", hits_addend=4)
        assert sum_of(received(sock, lambda text: sum_of(text) > 0)) == 4
        if kind == "tcp":
            sock.close()


def test_statsd_that_is_not_there_yet_gets_everything_when_it_is(tmp_path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))  # and does not listen
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        statsd = {"address": address, "interval": "100ms"}
        with Service(tmp_path, {"a.yaml": BASIC}, statsd=statsd) as service, \
                service.stub() as stub:
            for _ in range(7):
                ask(stub, "basic", "key1=x")
            wait_until(lambda: service.counts("basic.key1")["total_hits"] == 7)
            listening.listen()
            listening.settimeout(SECONDS_MAX)
            sock, _ = listening.accept()
            with sock:
                line = "ratelimit.service.rate_limit.basic.key1.total_hits:7|c\n"
                received(sock, lambda text: line in text)


def test_what_clients_send_makes_a_bounded_number_of_counters(tmp_path):
    """Defect 9 of the original: unknown domains and overrides are counters for ever."""
    with Service(tmp_path, {"a.yaml": BASIC}, "--workers", 1) as service, service.stub() as stub:
        path, response = wire.UNARY["ShouldRateLimit"]
        call = stub.channel.unary_unary(path, None, response.FromString)
        for batch in range(24):
            request = wire.RateLimitRequest(domain="basic")
            for i in range(500):
                one = request.descriptors.add()
                one.entries.add(key="k", value=f"{batch}-{i}")
                one.limit.requests_per_unit, one.limit.unit = 5, 3
            assert call(request.SerializeToString(), timeout=SECONDS_MAX).overall_code == OK
        stats = service.stats()
        keys = [name for name in stats if name.startswith("ratelimit.service.rate_limit.basic.k_")
                and name.endswith(".total_hits")]
        assert len(keys) == 10000
        assert stats["ratelimit.service.rate_limit.other.total_hits"] == 2000
        assert ask(stub, "basic", "hour=x").overall_code == OK
        assert service.counts("basic.hour")["total_hits"] == 1


# --- The environment of the original -------------------------------------------------------------

class Ratelimit(Weir):
    """The program under the name `ratelimit`, with its environment."""

    def __init__(self, folder, **variables):
        super().__init__(folder)
        program = folder / "ratelimit"
        if not program.exists():
            program.symlink_to(os.path.abspath(weir_path()))
        self.command = [str(program), "--workers", "1"]
        self.env = {**os.environ, "HOST": "127.0.0.1", "PORT": "0", "GRPC_HOST": "127.0.0.1",
                    "GRPC_PORT": "0", "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": "0",
                    "DISABLE_STATS": "true", **variables}


def test_the_program_called_ratelimit_takes_its_environment(tmp_path):
    folder = tmp_path / "data" / "ratelimit" / "config"
    folder.mkdir(parents=True)
    (folder / "basic.yaml").write_text(BASIC)
    (folder / "wrong.yaml").write_text("domain: d\nkeys: []\n")
    variables = {"RUNTIME_ROOT": str(tmp_path / "data"), "RUNTIME_SUBDIRECTORY": "ratelimit",
                 "LIMIT_RESPONSE_HEADERS_ENABLED": "true", "REDIS_POOL_SIZE": "20"}
    with Ratelimit(tmp_path, **variables) as service, \
            wire.Stub(service.grpc_address) as stub:
        line = service.wait_event("envoy_config_error")
        assert "config.wrong.yaml: config error, unknown key 'keys'" in line
        assert "weir: REDIS_POOL_SIZE has no effect: " in service.text()
        (folder / "wrong.yaml").unlink()
        service.wait_event("envoy_config_loaded")
        answer = ask(stub, "basic", "hour=x")
        assert [one.key for one in answer.response_headers_to_add] == [
            "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
        with Client(service.http_address) as client:
            assert client.request("GET", "/healthcheck").body == b"OK"
        with Client(service.admin_address) as client:
            assert b"basic.hour: unit=HOUR" in client.request("GET", "/rlconfig").body
        assert service.stop() == 0


@pytest.mark.parametrize("variables, message", [
    ({"BACKEND_TYPE": "memcache"}, "BACKEND_TYPE: only redis is supported"),
    ({"CONFIG_TYPE": "CIRCUS"}, "CONFIG_TYPE is FILE or GRPC_XDS_SOTW"),
    ({"PORT": "http"}, "PORT is a number of 0 to 65535, not 'http'"),
])
def test_what_cannot_be_honoured_ends_the_start(variables, message):
    run = subprocess.run([weir_path(), "envoy"], env={**os.environ, **variables}, timeout=30,
                         capture_output=True, text=True, check=False)
    assert run.returncode == 1 and message in run.stderr


def test_a_folder_can_be_checked(tmp_path):
    def check(*command):
        return subprocess.run([*command], capture_output=True, text=True, timeout=30, check=False)

    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "a.yaml").write_text(BASIC)
    folder = str(tmp_path / "config")
    run = check(weir_path(), "validate", "--envoy-config", folder)
    assert (run.returncode, run.stdout) == (
        0, f"checking rate limit configs...\nloading config directory: {folder}\n"
           f"opening config file: {folder}/a.yaml\nall rate limit configs ok\n")
    (tmp_path / "config" / "b.yaml").write_text(BASIC)
    link = tmp_path / "ratelimit_config_check"
    link.symlink_to(os.path.abspath(weir_path()))
    for given, shown in ((folder, f"{folder}/"), (f"{folder}//", f"{folder}/"),
                         ("./config/", "config/")):
        run = subprocess.run([str(link), "-config_dir", given], capture_output=True, text=True,
                             timeout=30, check=False, cwd=tmp_path)
        assert (run.returncode, run.stdout) == (
            1, f"checking rate limit configs...\nloading config directory: {given}\n"
               f"opening config file: {shown}a.yaml\nopening config file: {shown}b.yaml\n"
               f"error loading rate limit configs: {shown}b.yaml: duplicate domain 'basic' "
               "in config file\n")
    run = subprocess.run([str(link), "-config_dir", "."], capture_output=True, text=True,
                         timeout=30, check=False, cwd=folder)
    assert "\nopening config file: a.yaml\nopening config file: b.yaml\n" in run.stdout
    run = check(weir_path(), "validate", "--quiet", "--envoy-config", folder)
    assert (run.stdout, run.stderr) == (
        "", f"weir: {folder}/b.yaml: duplicate domain 'basic' in config file\n")
    run = check(str(link), "-config_dir", folder, "-merge_domain_configs")
    assert "b.yaml: duplicate descriptor composite key 'basic.key1'" in run.stdout
    assert check(weir_path(), "validate", "--quiet", "--envoy-config", folder).stdout == ""


def test_the_example_runs(tmp_path):
    examples = ROOT / "examples" / "envoy"
    files = {"shop.yaml": (examples / "config" / "shop.yaml").read_text(encoding="utf-8")}
    run = subprocess.run([weir_path(), "validate", str(examples / "weir.yaml")], timeout=30,
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with Service(tmp_path, files) as service, service.stub() as stub:
        assert "envoy_config_warning" not in service.text()
        assert tell(stub, "shop", "remote_address=192.0.2.1", "path=/login/a,user=x",
                    "path=/search") == [("OK", "100/MINUTE", 99), ("OK", "20/HOUR", 19),
                                        ("OK", "50/SECOND", 49)]
        assert ask(stub, "shop", "api_key=k").statuses[0].limit_remaining == 49
