# SPDX-License-Identifier: Apache-2.0
"""TLS on every listener: versions, certificates of clients and their names, reload."""

import json
import ssl
import subprocess
import warnings

import pytest

from daemon.certificates import Authority
from daemon.http import Client, connect, request_bytes
from daemon.weir import Weir, rules_of

API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 100}
PEER = {"name": "peer", "key": ["tls.client.name"], "algorithm": "gcra", "rate": "1/hour",
        "burst": 2}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("certificates"))
    made.sign("server")
    made.sign("client", "DNS:client.example,URI:spiffe://weir/client", "the client")
    made.sign("other", "DNS:other.example", "another")
    return made


def tls_of(authority, base="server", **more):
    return {"cert": str(authority.folder / f"{base}.pem"),
            "key": str(authority.folder / f"{base}.key"), **more}


def shown(authority, base):
    return authority.folder / f"{base}.pem", authority.folder / f"{base}.key"


def listener(address="127.0.0.1:0", **more):
    return {"address": address, **more}


def start(folder, authority, *limits, tls=None, **listeners):
    """A daemon whose http listener has TLS."""
    server = {"http": listener(tls=tls or tls_of(authority)), **listeners}
    return Weir(folder, rules_of(*(limits or (API,)), server=server), http=None)


def check(weir, tls, **fields):
    with Client(weir.http_address, tls=tls) as client:
        return client.check(**fields)


def post(value):
    body = json.dumps(value).encode()
    return request_bytes("POST", "/v1/check", {"Content-Type": "application/json"}, body)


def refused(weir, tls):
    """Whether the server breaks the conversation off (with TLS 1.3 a client only learns so when it
    reads)."""
    try:
        check(weir, tls)
    except (ssl.SSLError, ConnectionError, EOFError, AssertionError):
        return True
    return False


# --- Listeners -----------------------------------------------------------------------------------

def test_http_is_answered_over_tls_1_2_and_1_3_and_nothing_older(tmp_path, authority):
    with start(tmp_path, authority) as weir:
        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            with Client(weir.http_address, tls=authority.client(versions=(version,) * 2)) as client:
                assert client.socket.version() == version.name.replace("_", ".")
                assert [client.check(ip="192.0.2.1").status for _ in range(3)] == [200] * 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old = authority.client(versions=(ssl.TLSVersion.TLSv1_1,) * 2)
            old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            check(weir, old)
        assert weir.metrics()["weir_tls_errors_total"] == 1


def test_the_same_answers_come_over_tls_and_in_clear(tmp_path, authority):
    (tmp_path / "plain").mkdir()
    with start(tmp_path, authority) as weir, Weir(tmp_path / "plain", rules_of(API)) as plain:
        secret = check(weir, authority.client(), ip="192.0.2.9")
        clear = plain.check(ip="192.0.2.9")
        assert (secret.status, secret.json, secret["ratelimit"]) == \
            (clear.status, clear.json, clear["ratelimit"])


def test_pipelined_requests_and_large_batches_come_through(tmp_path, authority):
    with start(tmp_path, authority) as weir:
        with Client(weir.http_address, tls=authority.client()) as client:
            client.send(post({"ip": "192.0.2.2"}) * 50)
            assert [client.reply().status for _ in range(50)] == [200] * 50
            batch = post([{"ip": "192.0.2.3"}] * 1000)
            for at in range(0, len(batch), 1000):
                client.send(batch[at:at + 1000])
            assert len(client.reply().json) == 1000


def test_curl_and_openssl_talk_to_it(tmp_path, authority):
    with start(tmp_path, authority) as weir:
        done = subprocess.run(
            ["curl", "-sS", "--cacert", authority.cert, "-w", "%{http_code}", "-d", "{}",
             f"https://{weir.http_address}/v1/check"], capture_output=True, text=True, timeout=30)
        assert done.stdout.endswith("200"), done.stderr
        done = subprocess.run(
            ["openssl", "s_client", "-connect", weir.http_address, "-CAfile", authority.cert,
             "-verify_return_error", "-alpn", "http/1.1", "-tls1_3"],
            input="", capture_output=True, text=True, timeout=30)
        assert "ALPN protocol: http/1.1" in done.stdout, done.stdout + done.stderr
        assert "Verify return code: 0 (ok)" in done.stdout


def test_redis_and_admin_listen_over_tls_too(tmp_path, authority):
    server = {"redis": listener(tls=tls_of(authority)), "admin": listener(tls=tls_of(authority))}
    with Weir(tmp_path, rules_of(API, server=server), admin=None) as weir:
        redis_address = [line.split("address=")[1].split()[0] for line in weir.lines
                         if "front=redis" in line][0]
        host, port = redis_address.split(":")
        done = subprocess.run(
            ["redis-cli", "-h", host, "-p", port, "--tls", "--cacert", authority.cert,
             "CL.THROTTLE", "user", "4", "10", "60"], capture_output=True, text=True, timeout=30)
        assert done.stdout.split()[:3] == ["0", "5", "4"], done.stderr
        with Client(weir.admin_address, tls=authority.client()) as client:
            assert client.request("GET", "/readyz").status == 200


def test_plain_speech_on_a_tls_listener_ends_at_once(tmp_path, authority):
    with start(tmp_path, authority) as weir:
        with connect(weir.http_address) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            data = sock.recv(100)
            assert data[:1] in (b"", b"\x15")  # nothing, or an alert
            while data:
                data = sock.recv(100)
        weir.wait_event("tls_failed")


def test_the_proxy_header_comes_before_the_handshake(tmp_path, authority):
    rules = rules_of(API, server={"http": listener(tls=tls_of(authority), proxy_protocol=True),
                                  "trusted_proxies": ["127.0.0.1", "192.0.2.1"]})
    with Weir(tmp_path, rules, http=None) as weir:
        for address, status in ("192.0.2.1", 200), ("192.0.2.2", 403):
            sock = connect(weir.http_address)
            for byte in f"PROXY TCP4 {address} 127.0.0.1 1000 80\r\n".encode():
                sock.sendall(bytes([byte]))
            client = Client.over(authority.client().wrap_socket(sock, server_hostname="localhost"))
            with client:
                assert client.auth().status == status


# --- Certificates of clients ---------------------------------------------------------------------

def test_without_a_clients_certificate_nobody_comes_in(tmp_path, authority):
    tls = tls_of(authority, client_ca=str(authority.cert))
    stranger = Authority(tmp_path, "stranger")
    cert, key = stranger.sign("stranger-client", "DNS:client.example")
    with start(tmp_path, authority, tls=tls) as weir:
        assert refused(weir, authority.client())
        assert refused(weir, authority.client(cert, key))
        assert check(weir, authority.client(*shown(authority, "other"))).status == 200


def test_only_allowed_names_come_in(tmp_path, authority):
    for names in ["client.example"], ["*.nowhere", "spiffe://weir/client"]:
        tls = tls_of(authority, client_ca=str(authority.cert), client_names=names)
        with start(tmp_path, authority, tls=tls) as weir:
            assert check(weir, authority.client(*shown(authority, "client"))).status == 200
            assert refused(weir, authority.client(*shown(authority, "other")))
            assert "none of the allowed names" in weir.wait_event("tls_failed")


def test_the_names_of_a_client_are_attributes_that_no_request_can_say(tmp_path, authority):
    tls = tls_of(authority, client_ca=str(authority.cert))
    named = {"name": "named", "match": {"tls.client.cn": "the client"}, "key": [], "rate": "5/hour"}
    with start(tmp_path, authority, PEER, named, tls=tls) as weir:
        client = authority.client(*shown(authority, "client"))
        other = authority.client(*shown(authority, "other"))
        assert [limit["name"] for limit in check(weir, client).json["limits"]] == ["peer", "named"]
        assert check(weir, client).status == 200
        assert check(weir, client).status == 429
        spoofed = check(weir, other, attributes={"tls.client.name": "client.example",
                                                 "tls.client.cn": "the client"})
        assert spoofed.status == 200
        assert [limit["name"] for limit in spoofed.json["limits"]] == ["peer"]


FINGERPRINT = {"name": "fingerprint", "key": ["tls.ja4"], "rate": "5/hour"}


def keys_of_ja4(weir, tls, **fields):
    """What the answer says of the limit by fingerprint: [] where there is none."""
    return [limit["remaining"] for limit in check(weir, tls, **fields).json["limits"]]


def test_the_fingerprint_of_a_client_is_what_weir_has_seen_of_it(tmp_path, authority):
    old = authority.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    http = listener(tls=tls_of(authority), trusted=False)
    server = {"http": http, "trusted_proxies": []}
    with Weir(tmp_path, rules_of(FINGERPRINT, server=server), http=None) as weir:
        assert keys_of_ja4(weir, authority.client()) == [4]
        assert keys_of_ja4(weir, authority.client(), attributes={"tls.ja4": "another"}) == [3]
        assert keys_of_ja4(weir, old) == [4]
        assert keys_of_ja4(weir, old) == [3]


def test_a_trusted_sender_says_the_fingerprint_of_its_client_and_has_none_itself(tmp_path, authority):
    with start(tmp_path, authority, FINGERPRINT) as weir:
        assert keys_of_ja4(weir, authority.client()) == []
        assert keys_of_ja4(weir, authority.client(), attributes={"tls.ja4": "t13d"}) == [4]
    http = listener(tls=tls_of(authority), trusted=False)
    server = {"http": http, "trusted_proxies": ["127.0.0.1"]}
    with Weir(tmp_path, rules_of(FINGERPRINT, server=server), http=None) as weir:
        assert keys_of_ja4(weir, authority.client()) == []


def test_in_clear_there_is_no_such_name(tmp_path):
    with Weir(tmp_path, rules_of(PEER)) as weir:
        said = {"tls.client.name": "client.example"}
        assert weir.check(attributes=said).json["limits"] == []


def test_a_clients_authority_makes_a_listener_fit_for_others(tmp_path, authority):
    def serve(http):
        rules = rules_of(API, server={"http": http})
        return Weir(tmp_path, rules, http=None, wait=False)

    with serve(listener("0.0.0.0:0", tls=tls_of(authority))) as weir:
        assert weir.wait() == 1
        assert "is open to other machines" in weir.text()
    tls = tls_of(authority, client_ca=str(authority.cert))
    with serve(listener("0.0.0.0:0", tls=tls)) as weir:
        weir.wait_event("started")


# --- Files ---------------------------------------------------------------------------------------

def test_bad_files_stop_the_start(tmp_path, authority):
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")
    cases = [({"cert": "absent.pem", "key": "absent.key"}, "absent.pem: No such file"),
             ({"cert": str(bad), "key": str(authority.folder / "server.key")}, "bad.pem: "),
             ({"cert": str(authority.folder / "server.pem"),
               "key": str(authority.folder / "client.key")}, "client.key: key values mismatch"),
             (tls_of(authority, client_ca=str(bad)), "bad.pem: ")]
    for tls, words in cases:
        rules = rules_of(API, server={"http": listener(tls=tls)})
        with Weir(tmp_path, rules, http=None, wait=False) as weir:
            assert weir.wait() == 1
            assert words in weir.text()


def test_new_certificates_are_served_and_open_connections_stay(tmp_path, authority):
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    old.sign("renewed")
    with start(tmp_path, authority, tls=tls_of(old, "renewed")) as weir, \
            Client(weir.http_address, tls=old.client()) as before:
        assert before.check(ip="192.0.2.1").status == 200
        new.sign("renewed")
        weir.wait_event("certificates_read")
        assert check(weir, new.client()).status == 200
        with pytest.raises(ssl.SSLError):
            check(weir, old.client())
        assert before.check(ip="192.0.2.1").status == 200
        (tmp_path / "renewed.pem").write_text("half a certific")
        assert "renewed.pem" in weir.wait_event("certificates_failed")
        assert check(weir, new.client()).status == 200
        assert before.check(ip="192.0.2.1").status == 200


def test_a_reload_of_the_rules_changes_who_may_come(tmp_path, authority):
    def rules(tls):
        return rules_of(API, server={"http": listener(tls=tls)})

    client, other = shown(authority, "client"), shown(authority, "other")
    with start(tmp_path, authority) as weir:
        assert check(weir, authority.client()).status == 200
        weir.write_rules(rules(tls_of(authority, client_ca=str(authority.cert),
                                      client_names=["client.example"])))
        assert "event=reloaded" in weir.reload()
        assert refused(weir, authority.client(*other))
        assert check(weir, authority.client(*client)).status == 200
        weir.write_rules(rules({"cert": "absent.pem", "key": "absent.key"}))
        assert "absent.pem" in weir.reload()
        assert check(weir, authority.client(*client)).status == 200
