# SPDX-License-Identifier: Apache-2.0
"""/v1/auth: what reverse proxies ask, and whom it believes."""

import pytest

from daemon.weir import Weir, rules_of

LIMITS = [
    {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip/64"],
     "algorithm": "sliding_log", "rate": "2/hour"},
    {"name": "host", "match": {"host": "api.example.org"}, "key": ["client.ip"], "rate": "1/hour"},
    {"name": "agent", "match": {"path": "/agent"}, "key": ["header.user-agent", "header.x-tag"],
     "rate": "1/hour"},
    {"name": "each", "match": {"path": "/each"}, "key": ["client.ip"], "rate": "1/hour"},
    {"name": "cost", "match": {"path": "/cost"}, "key": [], "rate": "10/hour"},
    {"name": "slots", "match": {"path": "/slots"}, "key": [], "algorithm": "concurrency",
     "limit": 1, "life": "1h"},
]


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(*LIMITS)) as weir:
        yield weir


def test_allowed_is_200_without_a_body_and_denied_429_with_a_problem(weir):
    with weir.client() as client:
        replies = [client.auth("/login", "POST", "192.0.2.1") for _ in range(3)]
    allowed, denied = replies[0], replies[2]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert allowed.body == b"" and allowed["ratelimit"].startswith('"login";r=1;t=')
    assert allowed["content-type"] is None
    assert denied["content-type"] == "application/problem+json"
    assert denied["cache-control"] == "no-store" and int(denied["retry-after"]) > 0
    problem = denied.json
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert problem["status"] == 429 and problem["violated-policies"] == ["login"]


@pytest.mark.parametrize("status", [401, 403, 429])
def test_the_status_of_a_denial_can_be_chosen(weir, status):
    with weir.client() as client:
        for _ in range(3):
            reply = client.auth("/login", "POST", f"198.51.100.{status % 200}",
                                f"?deny_status={status}")
    assert reply.status == status and reply.json["status"] == status
    assert reply["x-ratelimit-status"] == (None if status == 429 else "429")
    assert int(reply["retry-after"]) > 0


def test_options_that_make_no_sense_are_400(weir):
    with weir.client() as client:
        for query in ("?deny_status=200", "?deny_status=", "?deny_status=503", "?cost=-1", "?cost=",
                      "?cost=99999999999999999999", "?denystatus=403", "?x",
                      "?cost=1&cost=2", "?deny_status=403&deny_status=403"):
            assert client.auth("/", query=query).status == 400, query


def test_a_cost_can_be_given(weir):
    with weir.client() as client:
        assert [client.auth("/cost", query="?cost=4").status for _ in range(3)] == [200, 200, 429]
        assert client.auth("/cost", query="?cost=2").status == 200
        assert client.auth("/cost", query="?cost=0").status == 200


@pytest.mark.parametrize("fields", [
    {"X-Original-Method": "POST", "X-Original-URI": "/login?next=/"},
    {"X-Original-Method": "POST", "X-Original-URL": "https://example.org/login?next=/"},
    {"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/a/../login"},
    {"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/login", "X-Original-Method": "POST",
     "X-Original-URL": "https://example.org/login"},
    {"x-forwarded-method": "POST", "x-forwarded-uri": "//login"},
    {"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/login;jsessionid=1?next=/"},
    {"X-Original-Method": "POST", "X-Original-URL": "https://example.org/login%3bx"},
])
def test_the_fields_of_all_proxies_are_read(weir, fields):
    with weir.client() as client:
        reply = client.request("GET", "/v1/auth", fields)
        assert reply.status in (200, 429) and '"login"' in reply["ratelimit"]


def test_a_method_of_the_request_itself_counts_where_no_field_tells_one(weir):
    with weir.client() as client:
        reply = client.request("POST", "/v1/auth", {"X-Forwarded-Uri": "/login"}, b"ignored body")
        assert '"login"' in reply["ratelimit"]
        assert client.request("GET", "/v1/auth", {"X-Forwarded-Uri": "/login"})["ratelimit"] is None


def test_a_field_that_comes_twice_is_refused(weir):
    with weir.client() as client:
        for name in ("X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"):
            reply = client.request("GET", "/v1/auth", {name: "/a", name.lower(): "/b"})
            assert reply.status == 400 and name.lower() in reply.json["detail"]


@pytest.mark.parametrize("ours, theirs", [
    ({"X-Original-Method": "POST", "X-Original-URI": "/login"}, {"X-Forwarded-Uri": "/free"}),
    ({"X-Original-Method": "POST", "X-Original-URI": "/login"}, {"X-Forwarded-Method": "GET"}),
    ({"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/login"}, {"X-Original-URI": "/free"}),
    ({"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/login"}, {"X-Original-URL": "http://a/b"}),
])
def test_a_client_cannot_contradict_its_proxy_with_the_fields_of_another(weir, ours, theirs):
    """nginx that sets X-Original-URI passes the client's X-Forwarded-Uri on, and so do others."""
    with weir.client() as client:
        for fields in ({**ours, **theirs}, {**theirs, **ours}):
            reply = client.request("GET", "/v1/auth", fields)
            assert reply.status == 400 and "headers differ" in reply.json["detail"]


def test_the_host_is_read_and_normalised(weir):
    with weir.client() as client:
        first = client.auth(client="203.0.113.1", X_Forwarded_Host="API.Example.org:443")
        assert '"host"' in first["ratelimit"]
        second = client.auth(client="203.0.113.1", X_Forwarded_Host="api.example.org.")
        assert second.status == 429


def test_all_fields_of_the_request_are_attributes_and_repeated_ones_join(weir):
    with weir.client() as client:
        asked = {"User_Agent": "curl/8", "X_Tag": "a, b"}
        assert client.auth("/agent", **asked).status == 200
        assert client.auth("/agent", **asked).status == 429
        client.send(b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Forwarded-Uri: /agent\r\n"
                    b"user-agent: curl/8\r\nX-Tag: a\r\nx-tag: b\r\n\r\n")
        assert client.reply().status == 429
        assert client.auth("/agent", User_Agent="curl/8", X_Tag="a").status == 200


@pytest.mark.parametrize("fields,client_address", [
    ({"X-Forwarded-For": "192.0.2.50"}, "192.0.2.50"),
    ({"X-Forwarded-For": "1.1.1.1, 192.0.2.51"}, "192.0.2.51"),
    ({"X-Forwarded-For": "1.1.1.1, 192.0.2.52, 127.0.0.1"}, "192.0.2.52"),
    ({"X-Forwarded-For": "192.0.2.53:5555"}, "192.0.2.53"),
    ({"X-Forwarded-For": "::ffff:192.0.2.54"}, "192.0.2.54"),
    ({"X-Forwarded-For": "[2001:db8::1]:80"}, "2001:db8::1"),
    ({"X-Forwarded-For": "192.0.2.55", "Forwarded": "for=1.1.1.1"}, "192.0.2.55"),
    ({"Forwarded": 'for=1.1.1.1, for="192.0.2.56:80";proto=http'}, "192.0.2.56"),
    ({"Forwarded": 'for="[2001:db8:0:1::2]"'}, "2001:db8:0:1::2"),
    ({"X-Forwarded-For": "fe80::9%eth0, 127.0.0.1"}, "fe80::9"),
    ({"X-Forwarded-For": ""}, "127.0.0.1"),
    ({}, "127.0.0.1"),
])
def test_the_client_is_the_right_most_untrusted_hop(tmp_path, fields, client_address):
    with Weir(tmp_path, rules_of(LIMITS[3])) as weir, weir.client() as client:
        reply = client.request("GET", "/v1/auth", {"X-Forwarded-Uri": "/each", **fields})
        assert reply.status == 200
        again = weir.check(path="/each", ip=client_address)
        assert again.status == 429, f"{client_address} was not the client"


def test_others_than_trusted_proxies_get_403(tmp_path):
    rules = rules_of(*LIMITS, server={"trusted_proxies": ["192.0.2.0/24"]})
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        reply = client.auth("/login")
        assert reply.status == 403 and reply["content-type"] == "application/problem+json"
        assert client.check(path="/each", ip="192.0.2.1").status == 200


def test_a_unix_socket_is_trusted_only_where_the_list_says_so(tmp_path):
    path = f"unix:{tmp_path}/http.sock"
    for trusted, status in ((["unix"], 200), (["127.0.0.0/8"], 403)):
        rules = rules_of(*LIMITS, server={"trusted_proxies": trusted})
        with Weir(tmp_path, rules, http=path) as weir, weir.client() as client:
            assert client.auth("/each", client=f"192.0.2.{status % 200}").status == status
            weir.stop()


def test_envoys_form_takes_path_method_and_host_of_the_request_itself(weir):
    with weir.client() as client:
        fields = {"X-Forwarded-For": "203.0.113.77", "X-Forwarded-Uri": "/another",
                  "X-Forwarded-Method": "GET"}
        replies = [client.request("POST", "/v1/auth/login?x=1", fields, b"") for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]


def test_a_malformed_path_is_400_and_head_gets_no_body(weir):
    with weir.client() as client:
        assert client.auth("/%zz").status == 400
        assert client.auth("/x/..;/login").status == 400
        for _ in range(3):
            reply = client.request("HEAD", "/v1/auth", {"X-Forwarded-Uri": "/login",
                                                        "X-Forwarded-Method": "POST",
                                                        "X-Forwarded-For": "203.0.113.80"})
        assert reply.status == 429 and reply.body == b"" and int(reply["content-length"]) > 0
        assert client.auth("/").status == 200


def test_a_lease_is_reported_in_a_field(weir):
    with weir.client() as client:
        first = client.auth("/slots")
        assert first.status == 200
        assert client.auth("/slots").status == 429
        assert client.post("/v1/release", {"lease": first["x-weir-lease"]}).status == 200
        assert client.auth("/slots").status == 200


# --- PROXY protocol ------------------------------------------------------------------------------

PROXY = {"http": {"address": "127.0.0.1:0", "proxy_protocol": True}}
V2 = b"\r\n\r\n\0\r\nQUIT\n"


def proxied(weir, header, split=False):
    """The client that /v1/auth finds behind a PROXY header, or None when it was not served."""
    with weir.client() as client:
        data = header + b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Forwarded-Uri: /each\r\n\r\n"
        if split:
            for i in range(len(data)):
                client.send(data[i:i + 1])
        else:
            client.send(data)
        try:
            return client.reply().status
        except (EOFError, ConnectionResetError):
            return None


def test_proxy_protocol_tells_the_peer(tmp_path):
    rules = rules_of(LIMITS[3], server={**PROXY, "trusted_proxies": ["127.0.0.0/8", "10.0.0.0/8"]})
    with Weir(tmp_path, rules, http=None) as weir:
        v1 = b"PROXY TCP4 10.1.1.1 10.0.0.1 5 80\r\n"
        v2 = V2 + b"\x21\x11\x00\x0c" + bytes([10, 1, 1, 2, 10, 0, 0, 1, 0, 5, 0, 80])
        local = V2 + b"\x20\x00\x00\x00"
        assert proxied(weir, v1) == 200
        assert proxied(weir, v1) == 429
        assert proxied(weir, v2) == 200
        assert proxied(weir, v2, split=True) == 429
        assert proxied(weir, local) == 200
        assert proxied(weir, b"PROXY UNKNOWN\r\n") == 429  # LOCAL and UNKNOWN: the peer itself
        untrusted = b"PROXY TCP4 192.0.2.1 10.0.0.1 5 80\r\n"
        assert proxied(weir, untrusted) == 403


@pytest.mark.parametrize("header", [
    b"", b"PROXY TCP4 300.1.1.1 1.1.1.1 1 2\r\n", b"PROXY TCP4 1.1.1.1\r\n",
    b"PROXY TCP4 " + b"1" * 200, V2 + b"\x31\x11\x00\x0c" + bytes(12), V2 + b"\x22\x11\x00\x00",
    V2 + b"\x21\x11\x00\x04" + bytes(4),
])
def test_a_connection_without_a_well_formed_proxy_header_is_closed(tmp_path, header):
    with Weir(tmp_path, rules_of(LIMITS[3], server=PROXY), http=None) as weir:
        assert proxied(weir, header) is None
        assert proxied(weir, b"PROXY UNKNOWN\r\n") == 200


def test_a_proxy_header_from_an_untrusted_peer_is_not_served(tmp_path):
    rules = rules_of(LIMITS[3], server={**PROXY, "trusted_proxies": ["192.0.2.0/24"]})
    with Weir(tmp_path, rules, http=None) as weir:
        assert proxied(weir, b"PROXY TCP4 10.1.1.1 10.0.0.1 5 80\r\n") is None


def test_a_proxy_header_is_not_guessed_where_it_is_not_configured(weir):
    assert proxied(weir, b"PROXY TCP4 10.1.1.1 10.0.0.1 5 80\r\n") == 400
