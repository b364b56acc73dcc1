/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of xDS says and when, in virtual time. */
#include "test.h"

#include <string.h>

#include "feature/envoy/server/xds/message.h"
#include "feature/envoy/server/xds/session.h"
#include "wire/grpc/protobuf.h"

#define S UINT64_C(1000000000)

static const struct weir_xds_settings settings = {
    .server = "plane:1",
    .node = "node-1",
    .metadata = {{"zone", "b"}, {"empty", ""}},
    .metadata_count = 2,
    .retry_ns = 3 * S,
    .backoff_ns = 10 * S,
    .backoff_most_ns = 60 * S,
};

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){text, strlen(text)};
}

static void receive(struct weir_xds_session *session, const char *version, const char *nonce)
{
    const struct weir_discovery_response response = {.version = bytes_of(version),
                                                     .nonce = bytes_of(nonce)};
    assert_int_equal(weir_xds_session_received(session, &response), 0);
    assert_true(session->due_ns == UINT64_MAX);
}

/* What is due says this; it is due at `due_ns`. */
static void expect(struct weir_xds_session *session, uint64_t due_ns, const char *version,
                   const char *nonce, const char *error)
{
    struct weir_discovery_request request;
    assert_true(session->due_ns == due_ns);
    weir_xds_session_request(session, &request);
    assert_int_equal(request.version.size, strlen(version));
    assert_memory_equal(request.version.data, version, strlen(version));
    assert_int_equal(request.nonce.size, strlen(nonce));
    assert_memory_equal(request.nonce.data, nonce, strlen(nonce));
    if (error)
        assert_string_equal(request.error, error);
    else
        assert_null(request.error);
    assert_true(session->due_ns == UINT64_MAX);
}

TEST("a stream begins with a question, and what is in force is acknowledged")
{
    struct weir_xds_session session;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 5 * S);
    expect(&session, 5 * S, "", "", NULL);
    receive(&session, "1", "a");
    weir_xds_session_accepted(&session, 6 * S);
    expect(&session, 6 * S, "1", "a", NULL);
    receive(&session, "2", "b");
    weir_xds_session_accepted(&session, 7 * S);
    expect(&session, 7 * S, "2", "b", NULL);
}

TEST("refusals wait longer and longer and a good response ends that")
{
    struct weir_xds_session session;
    uint64_t now_ns = 0, wait_ns = S;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    expect(&session, 0, "", "", NULL);
    receive(&session, "1", "a");
    weir_xds_session_accepted(&session, 0);
    expect(&session, 0, "1", "a", NULL);
    for (int i = 0; i < 100; i++) {
        receive(&session, "2", "b");
        weir_xds_session_refused(&session, "why", now_ns);
        now_ns += wait_ns;
        expect(&session, now_ns, "1", "b", "why");
        wait_ns = 2 * wait_ns < 60 * S ? 2 * wait_ns : 60 * S;
    }
    receive(&session, "3", "c");
    weir_xds_session_accepted(&session, now_ns);
    expect(&session, now_ns, "3", "c", NULL);
    receive(&session, "4", "d");
    weir_xds_session_refused(&session, "why", now_ns);
    expect(&session, now_ns + S, "3", "d", "why");
}

TEST("a response that comes before a refusal is sent replaces the refusal")
{
    struct weir_xds_session session;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    expect(&session, 0, "", "", NULL);
    receive(&session, "1", "a");
    weir_xds_session_refused(&session, "why", 0);
    receive(&session, "2", "b");
    weir_xds_session_accepted(&session, 1);
    expect(&session, 1, "2", "b", NULL);
}

TEST("a new stream has no version and no nonce, and waits by how the last ones went")
{
    struct weir_xds_session session;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    expect(&session, 0, "", "", NULL);
    receive(&session, "1", "a");
    weir_xds_session_accepted(&session, 0);
    expect(&session, 0, "1", "a", NULL);
    assert_true(weir_xds_session_closed(&session, true, 0) == 10 * S);
    weir_xds_session_opened(&session, 20 * S);
    expect(&session, 20 * S, "", "", NULL);
    assert_true(weir_xds_session_closed(&session, true, 0) == 20 * S);
    assert_true(weir_xds_session_closed(&session, true, 0) == 40 * S);
    for (int i = 0; i < 100; i++)
        assert_true(weir_xds_session_closed(&session, true, 0) == 60 * S);
    assert_true(weir_xds_session_closed(&session, false, 0) == 3 * S);
    weir_xds_session_opened(&session, 99 * S);
    receive(&session, "1", "b");
    assert_true(weir_xds_session_closed(&session, true, 0) == 10 * S);
}

TEST("the answer to a response of an earlier stream is not sent, but a refusal counts")
{
    struct weir_xds_session session;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    expect(&session, 0, "", "", NULL);
    receive(&session, "1", "a");
    assert_true(weir_xds_session_closed(&session, true, 0) == 10 * S);
    weir_xds_session_opened(&session, 10 * S);
    weir_xds_session_accepted(&session, 11 * S);
    expect(&session, 10 * S, "", "", NULL);
    receive(&session, "2", "b");
    assert_true(weir_xds_session_closed(&session, true, 0) == 10 * S);
    weir_xds_session_opened(&session, 20 * S);
    expect(&session, 20 * S, "", "", NULL);
    weir_xds_session_refused(&session, "why", 21 * S);
    assert_true(session.due_ns == UINT64_MAX);
    receive(&session, "2", "c");
    weir_xds_session_refused(&session, "why", 22 * S);
    expect(&session, 24 * S, "", "c", "why");
}

TEST("the reason of a refusal is UTF-8 whatever it is made of, and where it is cut")
{
    char error[WEIR_XDS_ERROR_MAX + 8];
    struct weir_xds_session session;
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    receive(&session, "1", "a");
    weir_xds_session_refused(&session, "type '\xff\xc3' of \xc3\xa4", 0);
    assert_string_equal(session.error, "type '?"
                                       "?' of \xc3\xa4");
    memset(error, 'x', sizeof error);
    memcpy(error + WEIR_XDS_ERROR_MAX - 2, "\xc3\xa4", 3);
    weir_xds_session_refused(&session, error, 0);
    assert_int_equal(strlen(session.error), WEIR_XDS_ERROR_MAX - 2);
    assert_memory_equal(session.error, error, WEIR_XDS_ERROR_MAX - 2);
}

TEST("the random part of a wait has its bounds")
{
    struct weir_xds_settings half = settings;
    struct weir_xds_session session;
    half.jitter = 50;
    weir_xds_session_init(&session, &half);
    assert_true(weir_xds_session_closed(&session, false, 0) == 3 * S / 2);
    assert_true(weir_xds_session_closed(&session, false, UINT32_MAX) == 9 * S / 2);
    uint64_t middle_ns = weir_xds_session_closed(&session, false, UINT32_MAX / 2);
    assert_true(middle_ns > 299 * S / 100 && middle_ns < 301 * S / 100);
}

TEST("a version or a nonce that is too long ends the stream")
{
    static char text[WEIR_XDS_WORD_MAX + 2];
    struct weir_xds_session session;
    memset(text, 'x', sizeof text - 1);
    struct weir_discovery_response response = {.version = {text, WEIR_XDS_WORD_MAX},
                                               .nonce = {text, WEIR_XDS_WORD_MAX}};
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    assert_int_equal(weir_xds_session_received(&session, &response), 0);
    response.nonce.size++;
    assert_int_equal(weir_xds_session_received(&session, &response), WEIR_ERR_RANGE);
}

/* A request by hand: version "1", node {id "node-1", metadata {zone: "b", empty: ""}}, the type,
 * nonce "a", error {3, "why"}. */
TEST("a request has the bytes that its protocol says")
{
    static const char node[] = "\x12\x24\x0a\x06node-1\x1a\x1a"
                               "\x0a\x0b\x0a\x04zone\x12\x03\x1a\x01"
                               "b\x0a\x0b\x0a\x05"
                               "empty\x12\x02\x1a";
    struct weir_xds_session session;
    struct weir_discovery_request request;
    char out[512];
    weir_xds_session_init(&session, &settings);
    weir_xds_session_opened(&session, 0);
    receive(&session, "1", "a");
    weir_xds_session_accepted(&session, 0);
    receive(&session, "2", "a");
    weir_xds_session_refused(&session, "why", 0);
    weir_xds_session_request(&session, &request);
    size_t size = weir_discovery_request_write(&request, out, sizeof out);
    assert_int_equal(size, 3 + sizeof node + 2 + strlen(WEIR_XDS_TYPE_URL) + 3 + 9);
    assert_memory_equal(out,
                        "\x0a\x01"
                        "1",
                        3);
    assert_memory_equal(out + 3, node, sizeof node);
    assert_memory_equal(out + size - 12,
                        "\x2a\x01"
                        "a\x32\x07\x08\x03\x12\x03why",
                        12);
    assert_int_equal(weir_discovery_request_write(&request, NULL, 0), size);
}

RUN_TESTS()
