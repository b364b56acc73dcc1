# SPDX-License-Identifier: Apache-2.0
"""The gRPC listener: calls by a real client, and frames that no client would send."""

import struct
import threading
import time

import grpc
import pytest

from daemon import grpc as wire
from daemon.certificates import Authority
from daemon.frames import (CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY,
                           HEADERS, MAGIC, PING, PRIORITY, RST_STREAM, SETTINGS,
                           WINDOW_UPDATE, Frames, frame, head, literal, prefixed, request)
from daemon.grpc import Stub
from daemon.http import connect
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of

API = {"name": "api", "key": [], "rate": "1/s"}
HEALTH_PATH = f"/{wire.HEALTH}.Health/Check"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


def start(folder, *options, **grpc_settings):
    listener = {"address": "127.0.0.1:0", **grpc_settings}
    return Weir(folder, rules_of(API, server={"grpc": listener}), *options)


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    """One worker, so that a client that harms it harms all."""
    with start(tmp_path_factory.mktemp("grpc"), "--workers", 1) as running:
        yield running


@pytest.fixture
def stub(weir):
    with Stub(weir.grpc_address) as made:
        yield made


def status_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code(), error.value.details()


def assert_unharmed(weir):
    with Stub(weir.grpc_address) as other:
        assert other.health(timeout=10) == SERVING


# --- Calls ---------------------------------------------------------------------------------------

def test_health_is_reported_for_the_server_and_for_its_services(stub):
    assert stub.health() == SERVING
    assert stub.health(f"{wire.HEALTH}.Health") == SERVING
    assert status_of(lambda: stub.health("nobody")) == (grpc.StatusCode.NOT_FOUND,
                                                        "unknown service")


def test_many_calls_go_over_one_connection_side_by_side(weir, stub):
    before = weir.metrics()["weir_connections_accepted_total"]
    futures = [stub.channel.unary_unary(HEALTH_PATH).future(b"", timeout=SECONDS_MAX)
               for _ in range(1000)]
    assert {one.result() for one in futures} == {b"\x08\x01"}
    assert weir.metrics()["weir_connections_accepted_total"] == before + 1


def test_unknown_methods_and_services_are_unimplemented(stub):
    for path in "/nobody/Nothing", f"/{wire.HEALTH}.Health/Nothing", f"/{wire.HEALTH}.Health":
        code, details = status_of(lambda path=path: stub.raw(path, b""))
        assert (code, details) == (grpc.StatusCode.UNIMPLEMENTED, "unknown service or method")


def test_malformed_messages_are_internal_errors(stub):
    for data in b"\x0a", b"\x0a\x05abc", b"\xff" * 20:
        code, _ = status_of(lambda data=data: stub.raw(HEALTH_PATH, data))
        assert code == grpc.StatusCode.INTERNAL


def test_a_message_may_have_a_mebibyte_and_not_more(stub):
    """Unknown fields of any size are ignored."""
    def message(size):
        field = b"\x7a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])
        return field + bytes(size)

    most = (1 << 20) - 4
    assert stub.raw(HEALTH_PATH, message(most)) == b"\x08\x01"
    code, details = status_of(lambda: stub.raw(HEALTH_PATH, message(most + 1)))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details == "message of 1048577 bytes, more than 1048576"
    assert stub.health() == SERVING


def test_compressed_messages_are_unimplemented_and_the_answer_names_what_is(stub):
    code, _ = status_of(lambda: stub.raw(HEALTH_PATH, b"\x0a\x00" * 5000,
                                         compression=grpc.Compression.Gzip))
    assert code == grpc.StatusCode.UNIMPLEMENTED


def test_a_token_is_asked_for_except_by_health_checks(tmp_path):
    with start(tmp_path, token="secret") as weir, Stub(weir.grpc_address) as stub:
        method = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        assert stub.health() == SERVING
        code, details = status_of(lambda: stub.raw(method, b"\x3a\x01*"))
        assert (code, details) == (grpc.StatusCode.UNAUTHENTICATED,
                                   "missing or invalid token")
        for wrong in "Bearer secre", "Bearer secret2", "secret":
            code, _ = status_of(lambda wrong=wrong: stub.raw(
                method, b"\x3a\x01*", metadata=[("authorization", wrong)]))
            assert code == grpc.StatusCode.UNAUTHENTICATED
        answer = stub.raw(method, b"\x3a\x01*", metadata=[("authorization", "Bearer secret")])
        assert b"ServerReflection" in answer


def test_unix_sockets_serve_too(tmp_path):
    path = f"unix:{tmp_path}/grpc.sock"
    with start(tmp_path, "--grpc", path), Stub(path) as stub:
        assert stub.health() == SERVING


def test_tls_is_served_with_h2_and_client_certificates(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("server")
    client_cert, client_key = authority.sign("client", "DNS:client.example")
    tls = {"cert": str(cert), "key": str(key), "client_ca": str(authority.cert)}
    with start(tmp_path, tls=tls) as weir:
        shown = grpc.ssl_channel_credentials(authority.cert.read_bytes(), client_key.read_bytes(),
                                             client_cert.read_bytes())
        with Stub(weir.grpc_address, shown, **{"grpc.ssl_target_name_override":
                                               "localhost"}) as stub:
            assert stub.health() == SERVING
        anonymous = grpc.ssl_channel_credentials(authority.cert.read_bytes())
        with Stub(weir.grpc_address, anonymous, **{"grpc.ssl_target_name_override":
                                                   "localhost"}) as stub:
            assert status_of(stub.health)[0] == grpc.StatusCode.UNAVAILABLE


# --- Streams -------------------------------------------------------------------------------------

def test_reflection_lists_services_and_gives_their_files(stub):
    for version in "v1", "v1alpha":
        ask = wire.message(f"grpc.reflection.{version}.ServerReflectionRequest")
        answers = list(stub.reflect(iter([
            ask(list_services="*"), ask(file_containing_symbol=f"{wire.RATE_LIMIT}.RateLimitService"),
            ask(file_by_filename="google_protobuf.proto"), ask(file_by_filename="nothing.proto"),
            ask(all_extension_numbers_of_type="x")]), version))
        services = [one.name for one in answers[0].list_services_response.service]
        assert f"{wire.RATE_LIMIT}.RateLimitService" in services
        assert f"{wire.HEALTH}.Health" in services
        assert "weir.v1.Limiter" in services
        assert len(services) == 7
        file = answers[1].file_descriptor_response.file_descriptor_proto[0]
        assert b"ShouldRateLimit" in file and b"envoy_config_core_v3.proto" in file
        assert len(answers[2].file_descriptor_response.file_descriptor_proto) == 1
        assert answers[3].error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
        assert answers[4].error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
        assert answers[1].original_request.file_containing_symbol.endswith("RateLimitService")


def test_every_name_that_reflection_lists_can_be_asked_for(stub):
    ask = wire.message("grpc.reflection.v1.ServerReflectionRequest")
    seen, waiting = {}, [f"{package}.{name}" for package, name in (
        (wire.RATE_LIMIT, "RateLimitService"), (wire.AUTH, "Authorization"))]
    for answer in stub.reflect(iter([ask(file_containing_symbol=name) for name in waiting])):
        seen[answer.original_request.file_containing_symbol] = \
            answer.file_descriptor_response.file_descriptor_proto[0]
    assert set(seen) == set(waiting)
    files = {path.name for path in wire.PROTOS.glob("*.proto")}
    for answer in stub.reflect(iter([ask(file_by_filename=name) for name in sorted(files)])):
        data = answer.file_descriptor_response.file_descriptor_proto[0]
        parsed = wire.descriptor_pb2.FileDescriptorProto.FromString(data)
        assert set(parsed.dependency) <= files


def test_watch_tells_changes_and_the_end(tmp_path):
    with start(tmp_path) as weir, Stub(weir.grpc_address) as stub:
        watches = [stub.watch(""), stub.watch(f"{wire.HEALTH}.Health")]
        assert [next(one).status for one in watches] == [SERVING] * 2
        assert next(stub.watch("nobody")).status == SERVICE_UNKNOWN
        weir.signal(15)
        assert [next(one).status for one in watches] == [NOT_SERVING] * 2
        for one in watches:
            assert status_of(lambda one=one: next(one))[0] == grpc.StatusCode.UNAVAILABLE
        assert weir.wait() == 0


def test_a_shutdown_loses_no_call(tmp_path):
    """Calls go on, one after the other, while the server stops: each is answered, or was refused
    before anything was done, which the client repeats or reports as unavailable."""
    with start(tmp_path) as weir, Stub(weir.grpc_address) as stub:
        assert stub.health() == SERVING
        codes, stop = [], threading.Event()

        def call():
            while not stop.is_set():
                try:
                    codes.append(stub.health(timeout=SECONDS_MAX))
                except grpc.RpcError as error:
                    codes.append(error.code())
                    if error.code() == grpc.StatusCode.UNAVAILABLE:
                        return

        thread = threading.Thread(target=call)
        thread.start()
        weir.signal(15)
        assert weir.wait() == 0
        stop.set()
        thread.join(SECONDS_MAX)
        assert set(codes) <= {SERVING, NOT_SERVING, grpc.StatusCode.UNAVAILABLE}


def test_connections_end_at_their_age_and_no_call_is_lost(tmp_path):
    with start(tmp_path, "--workers", 1, max_connection_age="1s",
               max_connection_age_grace="5s") as weir, Stub(weir.grpc_address) as stub:
        until = time.monotonic() + SECONDS_MAX
        while weir.metrics()["weir_connections_accepted_total"] < 3:
            assert stub.health(timeout=SECONDS_MAX) == SERVING
            assert time.monotonic() < until


# --- Frames --------------------------------------------------------------------------------------

def test_what_is_no_grpc_gets_a_status_of_http(weir):
    with Frames(weir.grpc_address) as frames:
        for stream, fields, status in (
                (1, head(content_type="text/plain"), b"415"),
                (3, head(content_type="application/grpc+json"), b"415"),
                (5, head(method="GET"), b"405")):
            frames.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, fields))
            _, flags, _, payload = frames.read_until(HEADERS, stream=stream)
            assert flags & END_STREAM
            assert status in payload or stream == 3  # the third time from the table
        frames.send(request(7))
        assert frames.end_of(7) == (prefixed(b"\x08\x01"), None)


def calls(weir, code, method="health_check"):
    return weir.metrics().get(f'weir_grpc_calls_total{{method="{method}",code="{code}"}}', 0)


def test_bad_requests_are_reported_and_leave_the_connection(weir):
    cases = [(frame(DATA, END_STREAM, 1, b""), 12),
             (frame(DATA, END_STREAM, 1, prefixed(b"")[:3]), 13),
             (frame(DATA, END_STREAM, 1, b"\x02" + bytes(4)), 13),
             (frame(DATA, END_STREAM, 1, prefixed(b"") * 2), 12),
             (frame(DATA, END_STREAM, 1, prefixed(b"", compressed=1)), 13)]
    for data, code in cases:
        before = calls(weir, code)
        with Frames(weir.grpc_address) as frames:
            frames.send(frame(HEADERS, END_HEADERS, 1, head()) + data)
            assert frames.end_of(1) == (b"", None)
            assert calls(weir, code) == before + 1
            frames.send(request(3))
            assert frames.end_of(3) == (prefixed(b"\x08\x01"), None)


def test_timeouts_are_read(weir):
    for timeout, code in ("soon", 13), ("1", 13), ("0n", 4), ("1H", 0):
        before = calls(weir, code)
        with Frames(weir.grpc_address) as frames:
            frames.send(request(1, b"", HEALTH_PATH, ("grpc-timeout", timeout)))
            assert frames.end_of(1) == (b"" if code else prefixed(b"\x08\x01"), None)
            assert calls(weir, code) == before + 1


def test_an_answer_may_come_before_the_request_is_whole(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(HEADERS, END_HEADERS, 1, head("/nobody/Nothing")))
        assert frames.end_of(1) == (b"", None)
        assert frames.read_until(RST_STREAM, stream=1)[3] == bytes(4)  # NO_ERROR


def test_messages_may_come_byte_by_byte_and_in_many_frames(weir):
    whole = request(1, b"\x7a\x02ab")
    with Frames(weir.grpc_address) as frames:
        for at in range(len(whole)):
            frames.send(whole[at:at + 1])
        assert frames.end_of(1) == (prefixed(b"\x08\x01"), None)
        body = prefixed(b"\x7a\x02ab")
        frames.send(frame(HEADERS, END_HEADERS, 3, head()))
        for byte in body:
            frames.send(frame(DATA, 0, 3, bytes([byte])))
        frames.send(frame(DATA, END_STREAM, 3, b""))
        assert frames.end_of(3) == (prefixed(b"\x08\x01"), None)


def test_answers_keep_to_the_clients_windows(weir):
    """With a window of 1 byte the answer comes byte by byte."""
    with Frames(weir.grpc_address, struct.pack(">HI", 4, 1)) as frames:
        frames.send(request(1))
        data = b""
        for _ in range(7):
            _, _, _, payload = frames.read_until(DATA, stream=1)
            assert len(payload) == 1
            data += payload
            frames.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)))
        assert data == prefixed(b"\x08\x01")
        assert frames.end_of(1) == (b"", None)


def test_pings_are_answered_and_too_many_end_the_connection(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(PING, 0, 0, b"12345678"))
        while (one := frames.read_until(PING))[1] != 1:
            pass
        assert one[3] == b"12345678"
        code = None
        for _ in range(20):  # what comes back is taken, so that there is room for the last word
            assert frames.try_send(frame(PING, 0, 0, bytes(8)) * 500)
            for _ in range(500):
                one = frames.read_until(PING, GOAWAY)
                if one[0] == GOAWAY:
                    break
            if one[0] == GOAWAY:
                code = int.from_bytes(one[3][4:8], "big")
                break
        assert code == ENHANCE_YOUR_CALM
        assert frames.closed_with() is None
    assert_unharmed(weir)


@pytest.mark.parametrize("flood", [
    frame(SETTINGS),
    frame(PRIORITY, 0, 1, bytes([0, 0, 0, 3, 10])),
    frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
], ids=["settings", "priority", "window-update"])
def test_floods_of_frames_without_requests_end_the_connection(weir, flood):
    with Frames(weir.grpc_address) as frames:
        for _ in range(40):
            if not frames.try_send(flood * 500):
                break
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    assert_unharmed(weir)


def test_empty_data_frames_end_the_connection(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(HEADERS, END_HEADERS, 1, head()))
        for _ in range(10):
            frames.try_send(frame(DATA, 0, 1, b"") * 500)
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    assert_unharmed(weir)


def test_rapid_reset_ends_the_connection(weir):
    with Frames(weir.grpc_address) as frames:
        for start_at in range(1, 20001, 1000):
            burst = b"".join(request(stream) + frame(RST_STREAM, 0, stream, bytes(3) + b"\x08")
                             for stream in range(start_at, start_at + 1000, 2))
            if not frames.try_send(burst):
                break
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    assert_unharmed(weir)


def test_clients_that_cancel_some_of_their_calls_are_let_be(weir):
    with Frames(weir.grpc_address) as frames:
        for stream in range(1, 4001, 4):
            frames.send(request(stream) + frame(HEADERS, END_HEADERS, stream + 2, head()) +
                        frame(RST_STREAM, 0, stream + 2, bytes(3) + b"\x08"))
            assert frames.end_of(stream) == (prefixed(b"\x08\x01"), None)


# What a client may not send on a stream that it has ended itself, or that is older than its newest.
STREAM_CLOSED, PROTOCOL_ERROR = 5, 1
CANCELLED = bytes(3) + b"\x08"
ENDED = request(5)
CLOSED = {
    "headers-after-the-end": (ENDED, frame(HEADERS, END_HEADERS | END_STREAM, 5, head()),
                              STREAM_CLOSED),
    "data-after-the-end": (ENDED, frame(DATA, END_STREAM, 5, b"x"), STREAM_CLOSED),
    "headers-after-reset": (frame(HEADERS, END_HEADERS, 5, head()) +
                            frame(RST_STREAM, 0, 5, CANCELLED),
                            frame(HEADERS, END_HEADERS, 5, head()), STREAM_CLOSED),
    "data-after-reset": (frame(HEADERS, END_HEADERS, 5, head()) +
                         frame(RST_STREAM, 0, 5, CANCELLED), frame(DATA, 0, 5, b"x"),
                         STREAM_CLOSED),
    "headers-of-an-older-stream": (ENDED, frame(HEADERS, END_HEADERS, 3, head()), PROTOCOL_ERROR),
    "data-of-an-older-stream": (ENDED, frame(DATA, 0, 3, b"x"), PROTOCOL_ERROR),
}


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("first,then,error", CLOSED.values(), ids=CLOSED.keys())
def test_frames_on_a_stream_that_the_client_has_closed_end_the_connection(weir, first, then, error,
                                                                        answered):
    """RFC 9113 5.1, 5.1.1; h2spec's cases."""
    with Frames(weir.grpc_address) as frames:
        frames.send(first + frame(PING, 0, 0, bytes(8)) if answered else first + then)
        if answered:
            while frames.read_until(PING)[1] != 1:
                pass
            if first is ENDED:
                frames.end_of(5)
            frames.send(then)
        assert frames.closed_with() == error
    assert_unharmed(weir)


def test_what_was_under_way_when_weir_reset_a_stream_is_ignored(weir):
    """An answer that comes before the request is whole crosses what the client still sends."""
    with Frames(weir.grpc_address) as frames:
        for stream in range(1, 101, 2):
            frames.send(frame(HEADERS, END_HEADERS, stream, head("/nobody/Nothing")))
            frames.end_of(stream)
        for stream in range(1, 101, 2):
            frames.send(frame(DATA, 0, stream, b"x" * 100) + frame(WINDOW_UPDATE, 0, stream,
                                                                 b"\0\0\0\1"))
            frames.send(frame(DATA, END_STREAM, stream, b"x"))
        frames.send(request(101))
        assert frames.end_of(101) == (prefixed(b"\x08\x01"), None)
        frames.send(frame(DATA, 0, 99, b"x"))  # the client has ended that one meanwhile
        assert frames.closed_with() == STREAM_CLOSED


INDEXED = b"\x40\x01x\x01y"  # a field that goes into the compressor's table: then it is 0xbe


def reset_by_weir(frames):
    frames.send(frame(HEADERS, END_HEADERS, 1, head("/nobody/Nothing")))
    assert frames.read_until(RST_STREAM, stream=1)[3] == bytes(4)


@pytest.mark.parametrize("flood,most", [
    (frame(0x77, 0, 0, b"x" * 10), 3000),
    (frame(0x77, 0xff, 1), 3000),
    (frame(0xb, 0, 1, b"x" * 16000), 3000),
    (frame(DATA, 0, 1, b"x"), 3000),
    (frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1"), 3000),
    (frame(PRIORITY, 0, 1, bytes([0, 0, 0, 3, 10])), 3000),
    (frame(HEADERS, END_HEADERS, 1, b"\xbe" * 16000), 100),
    (frame(HEADERS, 0, 1, b"\xbe" * 16000) + frame(CONTINUATION, END_HEADERS, 1, b"\xbe" * 16000),
     50),
], ids=["unknown", "unknown-on-a-stream", "unknown-and-large", "data", "window-update", "priority",
        "references", "references-continued"])
def test_floods_on_a_stream_that_weir_has_reset_end_the_connection(weir, flood, most):
    """Of references to the compressor's table, which make a byte into a field, some hundred KiB."""
    with Frames(weir.grpc_address) as frames:
        reset_by_weir(frames)
        frames.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, head() + INDEXED))
        frames.end_of(3)
        sent = 0
        while sent < 10 * most and frames.try_send(flood * 10):
            sent += 10
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    with Frames(weir.grpc_address) as frames:  # so many at once, in which no time gives any back
        reset_by_weir(frames)
        frames.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, head() + INDEXED))
        frames.end_of(3)
        frames.try_send(flood * most)
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    assert_unharmed(weir)


def test_some_unknown_frames_are_ignored(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(0x77, 0, 0, b"x" * 100) * 20 + frame(0x78, 0xff, 1) + request(1))
        assert frames.end_of(1) == (prefixed(b"\x08\x01"), None)


def test_a_head_that_takes_more_bytes_than_any_may_have_ends_the_connection(weir):
    with Frames(weir.grpc_address) as frames:
        part = b"\xbe" * 16000
        frames.try_send(frame(HEADERS, 0, 1, head() + INDEXED) + b"".join(
            frame(CONTINUATION, 0, 1, part) for _ in range(3)))
        assert frames.closed_with() in (ENHANCE_YOUR_CALM, None)
    assert_unharmed(weir)


def test_floods_end_a_connection_that_is_about_to_leave_too(tmp_path):
    with start(tmp_path, max_connection_age="1s", max_connection_age_grace="1h") as weir:
        with Frames(weir.grpc_address) as frames:
            frames.send(frame(HEADERS, END_HEADERS, 1, head()))
            while int.from_bytes(frames.read_until(GOAWAY)[3][:4], "big") > 1:
                pass
            answered = 0
            while answered < 20000 and frames.try_send(frame(PING, 0, 0, bytes(8)) * 500):
                for _ in range(500):
                    answered += frames.read_until(PING) is not None
            assert answered < 20000


def test_continuation_floods_end_the_connection(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(HEADERS, 0, 1, head()))
        for at in range(1000):
            if not frames.try_send(frame(CONTINUATION, 0, 1, literal(f"x-{at}", "y" * 100) * 100)):
                break
        while frames.read() is not None:
            pass
    assert_unharmed(weir)


def test_large_heads_are_reset_even_when_the_table_makes_them_small(weir):
    with Frames(weir.grpc_address) as frames:
        frames.send(frame(HEADERS, END_HEADERS, 1, head(HEALTH_PATH, ("x", "y" * 16200))))
        assert frames.end_of(1) == (b"", 2)  # INTERNAL_ERROR
        # A field of 4,000 bytes in the table, then 8,000 references of a byte to it.
        field = b"\x40\x01x" + b"\x7f" + bytes([4000 - 127 & 127 | 128, 4000 - 127 >> 7])
        frames.send(frame(HEADERS, END_HEADERS, 3, head() + field + b"z" * 4000 + b"\xbe" * 8000))
        assert frames.end_of(3) == (b"", 2)
        frames.send(request(5))
        assert frames.end_of(5) == (prefixed(b"\x08\x01"), None)
    assert_unharmed(weir)


def test_streams_beyond_the_limit_are_refused(weir):
    with Frames(weir.grpc_address) as frames:
        while (one := frames.read_until(SETTINGS))[1] == 1:
            pass
        settings = dict(struct.iter_unpack(">HI", one[3]))
        assert settings[3] == 128
        # Not acknowledged: a client that has is held to it with the whole connection.
        frames.send(b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, head()) for i in range(129)))
        kind, _, stream, payload = frames.read_until(RST_STREAM)
        assert (stream, payload) == (257, bytes(3) + b"\x07")  # REFUSED_STREAM
        frames.send(b"".join(frame(DATA, END_STREAM, 2 * i + 1, prefixed(b"")) for i in range(128)))
        for i in range(128):
            assert frames.read_until(DATA)[3] == prefixed(b"\x08\x01")


def test_unfinished_messages_of_a_connection_have_a_bound(weir):
    """The window of the connection is used up; it opens again as messages end."""
    window = 2 << 20
    with Frames(weir.grpc_address) as frames:
        sent, stream = 0, 1
        while sent + 60000 <= window:
            frames.send(frame(HEADERS, END_HEADERS, stream, head()))
            chunk = (b"\x00" + struct.pack(">I", 70000)) + bytes(60000 - 5)
            for at in range(0, 60000, 15000):
                frames.send(frame(DATA, 0, stream, chunk[at:at + 15000]))
            sent, stream = sent + 60000, stream + 2
        assert_unharmed(weir)
        for number in range(1, stream, 2):
            frames.send(frame(RST_STREAM, 0, number, bytes(3) + b"\x08"))
        while True:
            kind, _, number, payload = frames.read_until(WINDOW_UPDATE)
            if number == 0 and int.from_bytes(payload, "big") >= window // 2:
                break
        frames.send(request(stream))
        assert frames.end_of(stream) == (prefixed(b"\x08\x01"), None)


def test_more_than_the_window_is_an_error_of_flow_control(weir):
    with Frames(weir.grpc_address) as frames:
        chunk = b"\x00" + struct.pack(">I", 70000) + bytes(15995)
        for stream in range(1, 81, 2):
            frames.try_send(frame(HEADERS, END_HEADERS, stream, head()) + b"".join(
                frame(DATA, 0, stream, chunk) for _ in range(4)))
        assert frames.closed_with() in (3, None)  # FLOW_CONTROL_ERROR
    assert_unharmed(weir)


@pytest.mark.parametrize("garbage", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    bytes(1000),
    MAGIC + frame(HEADERS, END_HEADERS, 1, b"\xff" * 50),
    MAGIC + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 2, head()),
    MAGIC + frame(SETTINGS) + frame(DATA, 0, 0, b"x"),
    MAGIC + frame(SETTINGS) + b"\xff\xff\xff" + bytes(6),
    MAGIC + frame(SETTINGS) + frame(WINDOW_UPDATE, 0, 0, bytes(4)),
], ids=["http1", "tls", "zeros", "hpack", "even-stream", "data-on-0", "large-frame", "window-0"])
def test_what_is_no_http_2_ends_the_connection(weir, garbage):
    with connect(weir.grpc_address) as sock:
        sock.sendall(garbage)
        while True:
            try:
                if not sock.recv(65536):
                    break
            except ConnectionError:
                break
    assert_unharmed(weir)


def test_whoever_is_too_slow_is_cut_and_nobody_else(tmp_path):
    """All at once, for each takes as long as its deadline: a connection that says nothing, one that
    does not finish its request, one that does not take its answer, one in its handshake."""
    with start(tmp_path, "--workers", 1) as weir:
        silent = connect(weir.grpc_address)
        half, stuck = Frames(weir.grpc_address), Frames(weir.grpc_address, struct.pack(">HI", 4, 0))
        half.send(frame(HEADERS, END_HEADERS, 1, head()) + frame(DATA, 0, 1, b"\x00"))
        stuck.send(request(1))
        with Stub(weir.grpc_address) as stub:
            assert stub.health() == SERVING
            assert half.end_of(1) == (b"", 8)  # CANCEL
            assert silent.recv(4096) != b""    # its SETTINGS
            assert silent.recv(4096) == b""
            assert stuck.end_of(1) == (b"", 8)
            for frames in half, stuck:
                frames.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) + request(3))
                assert frames.end_of(3) == (prefixed(b"\x08\x01"), None)
                frames.socket.close()
            assert stub.health() == SERVING
        silent.close()


def test_calls_are_counted_by_method_and_status(tmp_path):
    with start(tmp_path) as weir, Stub(weir.grpc_address) as stub:
        stub.health()
        stub.health()
        status_of(lambda: stub.health("nobody"))
        status_of(lambda: stub.raw("/nobody/Nothing", b""))
        metrics = weir.metrics()
        assert metrics['weir_grpc_calls_total{method="health_check",code="0"}'] == 2
        assert metrics['weir_grpc_calls_total{method="health_check",code="5"}'] == 1
        assert metrics['weir_grpc_calls_total{method="none",code="12"}'] == 1


# --- ext_authz -----------------------------------------------------------------------------------

LOGIN = {"name": "login", "match": {"path": "/login", "method": "POST"}, "key": ["client.ip"],
         "algorithm": "gcra", "rate": "1/hour", "burst": 2}


def auth_weir(folder, *limits, **parts):
    return Weir(folder, rules_of(*limits, server={"grpc": "127.0.0.1:0"}, **parts))


def auth_request(path="/login?next=1", method="POST", host="example.com", source="192.0.2.1",
                 headers=(), extensions=(), header_map=()):
    asked = wire.CheckRequest()
    http = asked.attributes.request.http
    http.method, http.path, http.host = method, path, host
    if source:
        asked.attributes.source.address.socket_address.address = source
    for name, value in headers:
        http.headers[name] = value
    for name, value in header_map:
        http.header_map.headers.add(key=name, raw_value=value)
    for name, value in extensions:
        asked.attributes.context_extensions[name] = value
    return asked


def fields_of(options):
    return {one.header.key.lower(): one.header.value for one in options}


def test_ext_authz_allows_with_headers_for_both_sides(tmp_path):
    with auth_weir(tmp_path, LOGIN) as weir, Stub(weir.grpc_address) as stub:
        answer = stub.call("AuthCheck", auth_request())
        assert answer.status.code == 0
        allowed = answer.ok_response
        assert fields_of(allowed.headers)["x-ratelimit-remaining"] == "1"
        assert fields_of(allowed.response_headers_to_add)["ratelimit"].startswith('"login";r=1')
        assert {one.append_action for one in allowed.headers} == {2}  # OVERWRITE_IF_EXISTS_OR_ADD
        assert list(allowed.headers_to_remove) == ["X-Weir-Lease"]
        assert not answer.HasField("dynamic_metadata")


def test_ext_authz_denies_with_429_headers_and_body(tmp_path):
    with auth_weir(tmp_path, LOGIN) as weir, Stub(weir.grpc_address) as stub:
        answers = [stub.call("AuthCheck", auth_request()) for _ in range(3)]
        assert [one.status.code for one in answers] == [0, 0, 8]
        assert stub.call("AuthCheck", auth_request(path="/login;x?next=1")).status.code == 8
        denied = answers[2].denied_response
        fields = fields_of(denied.headers)
        assert denied.status.code == 429
        assert fields["content-type"] == "application/problem+json"
        assert 3590 < int(fields["retry-after"]) <= 3600
        assert '"violated-policies":["login"]' in denied.body.replace(" ", "")
        others = [stub.call("AuthCheck", auth_request(source="192.0.2.2")),
                  stub.call("AuthCheck", auth_request(method="GET")),
                  stub.call("AuthCheck", auth_request(path="/other"))]
        assert [one.status.code for one in others] == [0, 0, 0]


def test_ext_authz_and_http_count_together(tmp_path):
    with auth_weir(tmp_path, LOGIN) as weir, Stub(weir.grpc_address) as stub:
        assert stub.call("AuthCheck", auth_request()).status.code == 0
        assert weir.check(method="POST", path="/login", ip="192.0.2.1").status == 200
        assert stub.call("AuthCheck", auth_request()).status.code == 8
        assert weir.check(method="POST", path="/login", ip="192.0.2.1").status == 429


def test_ext_authz_reads_headers_host_and_extensions_as_attributes(tmp_path):
    def by(name, *key):
        return {"name": name, "key": list(key), "rate": "1/hour"}

    limits = [by("key", "header.x-api-key"), by("host", "host"), by("route", "route"),
              by("user", "user"), by("who", "source.principal")]
    with auth_weir(tmp_path, *limits) as weir, Stub(weir.grpc_address) as stub:
        def met(**asked):
            answer = stub.call("AuthCheck", auth_request(**asked))
            fields = fields_of(answer.ok_response.headers if answer.status.code == 0
                               else answer.denied_response.headers)
            return answer.status.code, [
                name for name in ("key", "host", "route", "user") if f'"{name}"' in
                fields.get("ratelimit-policy", "")]

        assert met(host="a", headers=[("x-api-key", "1")]) == (0, ["key", "host"])
        assert met(host="b", headers=[("x-api-key", "1")])[0] == 8
        assert met(host="B:8080")[0] == 0
        assert met(host="b")[0] == 8
        assert met(host="c", extensions=[("route", "r"), ("user", "u"), ("method", "x")]) == (
            0, ["host", "route", "user"])
        assert met(host="d", extensions=[("route", "r")])[0] == 8
        assert met(host="e", header_map=[("x-api-key", b"2"), ("x-api-key", b"3")])[0] == 0
        assert met(host="f", headers=[("x-api-key", "2, 3")])[0] == 8


def test_ext_authz_gives_leases_to_the_service_alone(tmp_path):
    seats = {"name": "seats", "key": ["host"], "algorithm": "concurrency", "limit": 1,
             "life": "60s"}
    with auth_weir(tmp_path, seats) as weir, Stub(weir.grpc_address) as stub:
        allowed = stub.call("AuthCheck", auth_request()).ok_response
        lease = fields_of(allowed.headers)["x-weir-lease"]
        assert "x-weir-lease" not in fields_of(allowed.response_headers_to_add)
        assert not allowed.headers_to_remove
        assert stub.call("AuthCheck", auth_request()).status.code == 8
        with weir.client() as client:
            assert client.post("/v1/release", {"lease": lease}).status == 200
        assert stub.call("AuthCheck", auth_request()).status.code == 0


def test_ext_authz_refuses_what_the_rules_cannot_read(tmp_path):
    with auth_weir(tmp_path, LOGIN) as weir, Stub(weir.grpc_address) as stub:
        # What a client can send must not pass where Envoy lets errors pass (failure_mode_allow).
        for asked, status, text in (({"path": "/%zz"}, 400, "path: "),
                                    ({"path": "/x/..;/login"}, 400, "path: "),
                                    ({"path": "/" + "a" * 8000}, 413, "path: "),
                                    ({"source": "nobody"}, 400, "ip: not an IP address")):
            answer = stub.call("AuthCheck", auth_request(**asked))
            assert answer.status.code == 3
            assert answer.denied_response.status.code == status
            assert text in answer.denied_response.body
        assert stub.call("AuthCheck", wire.CheckRequest()).status.code == 0


def test_ext_authz_knows_its_caller_by_its_certificate(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("server")
    client_cert, client_key = authority.sign("client", "DNS:client.example")
    grpc_listener = {"address": "127.0.0.1:0", "tls": {
        "cert": str(cert), "key": str(key), "client_ca": str(authority.cert)}}
    peer = {"name": "peer", "key": ["tls.client.name"], "rate": "1/hour"}
    credentials = grpc.ssl_channel_credentials(
        authority.cert.read_bytes(), client_key.read_bytes(), client_cert.read_bytes())
    with Weir(tmp_path, rules_of(peer, server={"grpc": grpc_listener})) as weir, \
            Stub(weir.grpc_address, credentials,
                 **{"grpc.ssl_target_name_override": "localhost"}) as stub:
        said = auth_request(extensions=[("tls.client.name", "somebody")])
        assert stub.call("AuthCheck", said).status.code == 0
        assert stub.call("AuthCheck", auth_request()).status.code == 8


# --- ShouldRateLimit -----------------------------------------------------------------------------

ENVOY = """
domain: basic
descriptors:
  - { key: key1, rate_limit: { unit: year, requests_per_unit: 50 } }
  - { key: key2, rate_limit: { unit: year, requests_per_unit: 2, name: two } }
  - { key: key3, rate_limit: { unlimited: true } }
"""


@pytest.fixture(scope="module")
def limiter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ratelimit")
    (folder / "envoy").mkdir()
    (folder / "envoy" / "basic.yaml").write_text(ENVOY, encoding="utf-8")
    rules = rules_of(server={"grpc": "127.0.0.1:0"}, envoy={"config": str(folder / "envoy")})
    with Weir(folder, rules) as running:
        yield running


@pytest.fixture
def envoy(limiter):
    with Stub(limiter.grpc_address) as made:
        yield made


def test_should_rate_limit_answers_with_every_field(envoy):
    first = envoy.limit("basic", [("key2", "a")], [("key1", "a")], [("key3", "a")], [("none", "")])
    second = envoy.limit("basic", [("key2", "a")])
    third = envoy.limit("basic", [("key2", "a")], [("key1", "a")])
    assert [one.overall_code for one in (first, second, third)] == [1, 1, 2]
    two, fifty, unlimited, unknown = first.statuses
    assert (two.code, two.limit_remaining, two.current_limit.name) == (1, 1, "two")
    assert (two.current_limit.requests_per_unit, two.current_limit.unit) == (2, 6)  # YEAR
    assert 1 <= two.duration_until_reset.seconds <= 365 * 86400
    assert fifty.limit_remaining == 49
    assert unlimited.limit_remaining == 2**32 - 1 and not unlimited.HasField("current_limit")
    assert unknown.code == 1 and not unknown.HasField("duration_until_reset")
    assert [one.code for one in third.statuses] == [2, 1]


def test_should_rate_limit_takes_overrides_and_hits(envoy):
    override = {"entries": [("any", "x")], "limit": (5, 4), "hits_addend": 3}
    answer = envoy.limit("basic", override)
    assert answer.statuses[0].current_limit.requests_per_unit == 5
    assert answer.statuses[0].limit_remaining == 2
    peek = envoy.limit("basic", {**override, "hits_addend": 0})
    assert peek.statuses[0].limit_remaining == 2
    back = envoy.limit("basic", {**override, "hits_addend": 1, "is_negative_hits": True})
    assert back.statuses[0].code == 1
    assert envoy.limit("basic", {**override, "hits_addend": 0}).statuses[0].limit_remaining == 3


def test_should_rate_limit_fails_in_the_originals_words(envoy, stub):
    assert status_of(lambda: envoy.limit("", [("a", "b")])) == (
        grpc.StatusCode.UNKNOWN, "rate limit domain must not be empty")
    assert status_of(lambda: envoy.limit("basic")) == (
        grpc.StatusCode.UNKNOWN, "rate limit descriptor list must not be empty")
    assert status_of(lambda: stub.limit("basic", [("a", "b")])) == (
        grpc.StatusCode.UNKNOWN, "no rate limit configuration loaded")
    many = [[("a", "b")]] * 1025
    assert status_of(lambda: envoy.limit("basic", *many))[0] == \
        grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(envoy.limit("basic", *many[1:]).statuses) == 1024


def test_a_unit_that_is_unknown_harms_nobody(envoy):
    """In the original it ends the process."""
    for unit in 0, 7, 1000, -1:
        try:
            envoy.limit("basic", {"entries": [("a", "b")], "limit": (1, unit)})
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNKNOWN
    assert envoy.limit("basic", [("key1", "b")]).overall_code == 1


def test_health_of_the_rate_limit_service_follows_its_configuration(envoy, stub):
    for service in "ratelimit", f"{wire.RATE_LIMIT}.RateLimitService":
        assert envoy.health(service) == SERVING
    assert status_of(lambda: stub.health("ratelimit"))[0] == grpc.StatusCode.NOT_FOUND
    assert stub.health(f"{wire.RATE_LIMIT}.RateLimitService") == NOT_SERVING


def test_many_calls_at_once_over_many_connections_are_all_counted(limiter):
    """1,000 in flight on each of 8 connections, beyond what a connection may have open."""
    stubs = [Stub(limiter.grpc_address) for _ in range(8)]
    asked = wire.RateLimitRequest(domain="basic")
    asked.descriptors.add().entries.add(key="key1", value="flood")
    path, response = wire.UNARY["ShouldRateLimit"]
    futures = [one.channel.unary_unary(path, None, response.FromString).future(
        asked.SerializeToString(), timeout=SECONDS_MAX) for one in stubs for _ in range(1000)]
    codes = [one.result().overall_code for one in futures]
    assert (codes.count(1), codes.count(2)) == (50, 7950)
    for one in stubs:
        one.channel.close()
