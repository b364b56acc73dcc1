# SPDX-License-Identifier: Apache-2.0
"""The admin listener: health, metrics, limits, the most denied keys, one key's state."""

import re
import socket

import pytest

from daemon.http import Client
from daemon.weir import Weir, rules_of

LIMITS = [
    {"name": "api", "match": {"path": "/api"}, "key": ["user"], "algorithm": "gcra",
     "rate": "1/hour", "burst": 3},
    {"name": "net", "match": {"path": "/net"}, "key": ["client.ip/64"], "rate": "2/hour"},
    {"name": "game", "match": {"path": "/games/:id/move"}, "key": ["user", "path.id"],
     "rate": "1/hour"},
    {"name": "quiet", "match": {"path": "/quiet"}, "key": [], "rate": "1/hour", "shadow": True},
    {"name": "secret", "match": {"path": "/secret"}, "key": ["header.authorization"],
     "rate": "1/hour"},
    {"name": "planned", "match": {"path": "/planned"}, "key": ["user"], "rate": "plan"},
]
PLANS = {"plans": {"free": {"planned": "1/hour"}, "pro": {"planned": "5/hour"}},
         "default_plan": "free"}


def start(folder, **options):
    admin = options.pop("admin", {"address": "127.0.0.1:0", "token": "s3cret"})
    return Weir(folder, rules_of(*LIMITS, server={"admin": admin}, **PLANS), "--workers", "2",
                admin=None, **options)


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with start(tmp_path_factory.mktemp("weir")) as weir:
        yield weir


def get(weir, path, method="GET", token="s3cret", **fields):
    if token:
        fields["Authorization"] = "Bearer " + token
    with Client(weir.admin_address) as client:
        return client.request(method, path, fields)


def ask(weir, path, times=1, user="u", **fields):
    """Over connections of their own, so that both workers are asked."""
    return [weir.check(path=path, attributes={"user": user}, **fields).status
            for _ in range(times)]


def test_health_and_readiness(weir):
    for path in ("/healthz", "/readyz"):
        assert get(weir, path).status == 200
        assert get(weir, path, "POST").status == 405
    assert get(weir, "/nothing").status == 404


def test_metrics_are_well_formed_and_count(weir):
    before = weir.metrics()
    assert ask(weir, "/api", 5, "counted") == [200, 200, 200, 429, 429]
    ask(weir, "/quiet", 3)
    after = weir.metrics()

    def grown(name):
        return after[name] - before.get(name, 0)

    assert grown('weir_decisions_total{limit="api",result="allowed"}') == 3
    assert grown('weir_decisions_total{limit="api",result="denied"}') == 2
    assert grown('weir_decisions_total{limit="quiet",result="shadow_denied"}') == 2
    assert grown('weir_requests_total{front="http",route="check",code="200"}') == 6
    assert grown('weir_requests_total{front="http",route="check",code="429"}') == 2
    assert grown("weir_requests_decided_total") == 8
    assert after["weir_turn_seconds_count"] == after['weir_turn_seconds_bucket{le="+Inf"}']
    assert after["weir_workers"] == 2 and after["weir_limits"] == len(LIMITS)
    assert after["weir_table_inserts_total"] >= 2 and abs(after["weir_clock_offset_seconds"]) < 1


def test_every_series_of_the_metrics_has_its_type_and_help(weir):
    reply = get(weir, "/metrics")
    assert reply["content-type"].startswith("text/plain; version=0.0.4")
    kinds, seen = {}, set()
    assert reply.body.endswith(b"\n")
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)[3]) > 5
        else:
            match = re.fullmatch(r'(weir_\w+)(\{(?:\w+="[^"\\\n]*",?)+\})? (-?[\d.]+)', line)
            assert match, line
            assert line.rpartition(" ")[0] not in seen
            seen.add(line.rpartition(" ")[0])
            base = re.sub(r"_(bucket|sum|count)$", "", match[1])
            assert match[1] in kinds or kinds.get(base) == "histogram", line
            if kinds.get(match[1]) == "counter":
                assert match[1].endswith("_total")


def test_labels_never_come_from_traffic(weir):
    ask(weir, "/secret", 3, headers={"Authorization": "traffic-key"})
    with weir.client() as client:
        client.request("GET", "/traffic-path")
        client.request("TRAFFIC", "/v1/check")
    assert b"traffic" not in get(weir, "/metrics").body.lower()


def test_limits_are_listed(weir):
    limits = get(weir, "/v1/limits").json["limits"]
    assert [limit["name"] for limit in limits] == [limit["name"] for limit in LIMITS]
    api = limits[0]
    assert (api["algorithm"], api["key"], api["rate"]) == ("gcra", ["user"], 1)
    assert (api["window_ms"], api["capacity"], api["shadow"]) == (3600000, 3, False)
    assert limits[3]["shadow"] is True and limits[5]["by_plan"] is True


def test_top_tells_who_is_denied_most(weir):
    for user, times in (("loud", 12), ("louder", 22), ("a,b=c&d +%", 5)):
        ask(weir, "/api", times, user)
    keys = get(weir, "/v1/limits/api/top").json["keys"]
    assert [key["denied"] for key in keys][:2] == [19, 9]
    assert keys[0]["key"] == "user=louder" and keys[0]["error"] == 0
    assert len(get(weir, "/v1/limits/api/top?count=1").json["keys"]) == 1
    for key in keys:  # each says where its state is
        state = get(weir, key["state"])
        assert state.status == 200 and state.json["allowed"] is False, key


def test_secrets_are_shown_as_hashes_only(weir):
    ask(weir, "/secret", 3, headers={"Authorization": "hunter2"})
    reply = get(weir, "/v1/limits/secret/top")
    assert b"sha256:" in reply.body and b"hunter2" not in reply.body
    assert "state" not in reply.json["keys"][0]


def test_the_state_of_a_key_is_reported_and_not_touched(weir):
    ask(weir, "/api", 2, "watched")
    for _ in range(5):
        (limit,) = get(weir, "/v1/limits/api/state?key=watched").json["limits"]
        assert (limit["name"], limit["remaining"], limit["limit"]) == ("api", 1, 3)
    assert get(weir, "/v1/limits/api/state?key=nobody").json["limits"][0]["remaining"] == 3


def test_states_are_found_by_addresses_captures_and_plans(weir):
    assert weir.check(path="/net", ip="2001:db8::1").status == 200
    for text in ("2001:db8::1", "2001:db8::/64", "2001:db8::ffff"):
        (limit,) = get(weir, f"/v1/limits/net/state?key={text}").json["limits"]
        assert limit["remaining"] == 1, text
    ask(weir, "/games/7/move", 1, "player")
    state = "/v1/limits/game/state?key=player&key="
    assert get(weir, state + "7").json["allowed"] is False
    assert get(weir, state + "8").json["allowed"] is True
    assert weir.check(path="/planned", attributes={"user": "p", "plan": "pro"}).status == 200
    pro = get(weir, "/v1/limits/planned/state?key=p&plan=pro").json["limits"][0]
    assert (pro["limit"], pro["remaining"]) == (5, 4)


@pytest.mark.parametrize("query,status", [
    ("", 400), ("?key=", 200), ("?key=a&key=b", 400), ("?key=%zz", 400), ("?user=a", 400),
    ("?key=a&plan=none", 400), ("?key=-", 400),
])
def test_wrong_questions_for_a_state_are_400(weir, query, status):
    assert get(weir, "/v1/limits/api/state" + query).status == status
    assert get(weir, "/v1/limits/net/state?key=nonsense").status == 400
    assert get(weir, "/v1/limits/nothing/state?key=a").status == 404
    assert get(weir, "/v1/limits/api/nothing").status == 404


def test_a_state_is_removed_with_the_token_only(weir):
    assert ask(weir, "/api", 4, "sorry") == [200, 200, 200, 429]
    path = "/v1/limits/api/state?key=sorry"
    assert get(weir, path, "DELETE", None).status == 401
    assert get(weir, path, "DELETE", "wrong").status == 401
    assert ask(weir, "/api", 1, "sorry") == [429]
    assert get(weir, path, "DELETE", "s3cret").json == {"removed": True}
    assert ask(weir, "/api", 1, "sorry") == [200]
    assert get(weir, "/v1/limits/api/state?key=never-seen", "DELETE", "s3cret").status == 404


# --- Who may ask ---------------------------------------------------------------------------------

READS = ["/metrics", "/v1/limits", "/v1/limits/api/top", "/v1/limits/api/state?key=u"]


def machine_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


def test_without_a_token_changes_are_for_unix_sockets(tmp_path):
    with start(tmp_path, admin={"address": "127.0.0.1:0"}) as weir:
        ask(weir, "/api", 1)
        reply = get(weir, "/v1/limits/api/state?key=u", "DELETE", None)
        assert reply.status == 403 and "server.admin.token" in reply.json["detail"]
    with start(tmp_path, admin={"address": f"unix:{tmp_path}/admin.sock"}) as weir:
        ask(weir, "/api", 1)
        assert get(weir, "/v1/limits/api/state?key=u", "DELETE", None).status == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "127.0.0.1:0", "unix:admin.sock"])
def test_with_a_token_everything_but_health_needs_it(tmp_path, address):
    address = address.replace("unix:", f"unix:{tmp_path}/")
    with start(tmp_path, admin={"address": address, "token": "s3cret"}) as weir:
        weir.admin_address = weir.admin_address.replace("0.0.0.0", "127.0.0.1")
        assert ask(weir, "/api") == [200]
        for path in ("/healthz", "/readyz"):
            assert get(weir, path, token=None).status == 200
        for path in READS:
            refused = get(weir, path, token=None)
            assert refused.status == 401 and refused["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer" in refused.json["detail"]
            assert get(weir, path, token="wrong").status == 401
            assert get(weir, path).status == 200
        assert get(weir, READS[3], "DELETE", None).status == 401
        assert get(weir, READS[3], "DELETE").status == 200


def test_a_token_in_a_file_is_read_again_by_a_reload(tmp_path):
    (tmp_path / "token").write_text("s3cret\n", encoding="ascii")
    with start(tmp_path, admin={"address": "127.0.0.1:0", "token_file": "token"}) as weir:
        assert get(weir, "/v1/limits").status == 200
        assert get(weir, "/v1/limits", token=None).status == 401
        (tmp_path / "token").write_text("other\n", encoding="ascii")
        assert get(weir, "/v1/limits").status == 200
        weir.reload()
        assert get(weir, "/v1/limits", token="other").status == 200
        assert get(weir, "/v1/limits").status == 401


def test_metrics_may_be_open_beside_a_token(tmp_path):
    admin = {"address": "127.0.0.1:0", "token": "s3cret", "metrics_open": True}
    with start(tmp_path, admin=admin) as weir:
        assert get(weir, "/metrics", token=None, Host="prometheus.example").status == 200
        for path in READS[1:]:
            assert get(weir, path, token=None).status == 401


@pytest.mark.parametrize("host", ["localhost", "LocalHost.:9090", "127.0.0.1", "127.1.2.3:80",
                                  "[::1]:9090", "weir.internal:9090", "10.9.8.7", ""])
def test_a_host_that_is_the_listeners_is_served(tmp_path, host):
    admin = {"address": "127.0.0.1:0", "hosts": ["Weir.Internal", "10.9.8.7"]}
    with start(tmp_path, admin=admin) as weir:
        for path in READS:
            assert get(weir, path, token=None, Host=host).status == 200


@pytest.mark.parametrize("token", [None, "s3cret"])
@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:9090", "localhost.example",
                                  "127.0.0.1.example", "192.0.2.1", "[2001:db8::1]:9090"])
def test_another_host_is_refused_so_that_no_page_can_rebind_its_name(tmp_path, host, token):
    admin = {"address": "127.0.0.1:0"} | ({"token": token} if token else {})
    with start(tmp_path, admin=admin) as weir:
        for path in READS:
            refused = get(weir, path, token=token, Host=host)
            assert refused.status == 403
            assert host in refused.json["detail"] and "server.admin.hosts" in refused.json["detail"]
            assert get(weir, path, token=token).status == 200
        assert get(weir, READS[3], "DELETE", token, Host=host).status == 403
        assert get(weir, "/healthz", token=None, Host=host).status == 200


@pytest.mark.parametrize("origin,status", [
    ("http://localhost:9090", 200), ("https://127.0.0.1", 200), ("http://weir.internal", 200),
    ("http://rebound.example", 403), ("http://rebound.example:9090", 403), ("null", 403),
    ("rebound.example", 403), ("", 403), ("http://", 403),
])
def test_an_origin_must_be_the_listeners_too(tmp_path, origin, status):
    admin = {"address": "127.0.0.1:0", "token": "s3cret", "hosts": "weir.internal"}
    with start(tmp_path, admin=admin) as weir:
        for path in READS:
            assert get(weir, path, Origin=origin).status == status
        forget = get(weir, "/v1/limits/api/state?key=u", "DELETE", Origin=origin)
        assert forget.status == (404 if status == 200 else 403)


def test_a_unix_socket_is_asked_by_any_host_but_by_pages_of_its_own_only(tmp_path):
    """Only browsers send an Origin. A page's host may be a name that its owner lets point here."""
    admin = {"address": f"unix:{tmp_path}/admin.sock", "hosts": ["weir.example"]}
    with start(tmp_path, admin=admin) as weir:
        for path in READS:
            assert get(weir, path, token=None, Host="any.example").status == 200
            assert get(weir, path, token=None, Host="weir.example",
                       Origin="https://weir.example").status == 200
            for host, origin in (("weir.example", "other.example"), ("any.example", "any.example")):
                assert get(weir, path, token=None, Host=host,
                           Origin=f"https://{origin}").status == 403


def test_http_1_0_without_a_host_is_served(tmp_path):
    with start(tmp_path, admin={"address": "127.0.0.1:0"}) as weir, weir.admin() as client:
        client.send(b"GET /v1/limits HTTP/1.0\r\n\r\n")
        assert client.reply().status == 200


def test_without_a_token_reads_are_for_this_machine(tmp_path):
    address = machine_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with start(tmp_path, admin={"address": "0.0.0.0:0", "open": True}) as weir:
        port = weir.admin_address.rpartition(":")[2]
        weir.admin_address = f"127.0.0.1:{port}"
        for path in READS:
            assert get(weir, path, token=None).status == 200
        weir.admin_address = f"{address}:{port}"  # the peer's address is then this one too
        for path in READS:
            refused = get(weir, path, token=None, Host=f"{address}:{port}")
            assert refused.status == 403 and "server.admin.token" in refused.json["detail"]
        assert get(weir, "/healthz", token=None).status == 200


def test_the_peer_is_whom_the_proxy_protocol_names(tmp_path):
    admin = {"address": "127.0.0.1:0", "proxy_protocol": True}
    with start(tmp_path, admin=admin) as weir:
        for source, status in (("127.0.0.1", 200), ("203.0.113.9", 403)):
            with weir.admin() as client:
                client.send(f"PROXY TCP4 {source} 127.0.0.1 1 2\r\n".encode())
                assert client.request("GET", "/v1/limits").status == status


def test_the_address_that_was_listened_on_is_a_host(tmp_path):
    address = machine_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    admin = {"address": "0.0.0.0:0", "token": "s3cret"}
    with start(tmp_path, admin=admin) as weir:
        port = weir.admin_address.rpartition(":")[2]
        weir.admin_address = f"{address}:{port}"
        assert get(weir, "/metrics", Host=f"{address}:{port}").status == 200
        assert get(weir, "/metrics", Host=f"192.0.2.1:{port}").status == 403
