/* SPDX-License-Identifier: Apache-2.0 */
/* wire/log: a line of each format becomes the same record, and is known by its row. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/log/envelope.h"
#include "wire/log/formats.h"

#define TIME "[07/Mar/2004:16:05:49 -0800]"
#define COMBINED                                                                                   \
    "192.0.2.1 - frank " TIME " \"GET /a?b=c HTTP/1.1\" 404 12 \"http://r/\" \"curl/8\""
#define T_S UINT64_C(1078704349)
#define S UINT64_C(1000000000)

static struct guarded guarded;
static struct weir_log_room room;
static struct weir_log_record record;
static struct weir_reason reason;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 16);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

static const char *const samples[WEIR_LOG_FORMATS] = {
    [WEIR_LOG_JSONL] = "{\"t\": 1078704349, \"ip\": \"192.0.2.1\"}",
    [WEIR_LOG_COMMON] = "192.0.2.1 - frank " TIME " \"GET /a?b=c HTTP/1.1\" 404 12",
    [WEIR_LOG_COMBINED] = COMBINED,
    [WEIR_LOG_VHOST_COMBINED] = "example.org:80 " COMBINED,
    [WEIR_LOG_NGINX_MAIN] = COMBINED " \"203.0.113.9, 10.0.0.2\"",
    [WEIR_LOG_INGRESS_NGINX] = COMBINED
    " 512 0.003 [default-a-80] [] 10.0.0.5:80, 10.0.0.6:80 0, 12 0.001, 0.002 502, 404 "
    "0af1",
    [WEIR_LOG_TRAEFIK_CLF] = COMBINED " 7 \"web@docker\" \"http://10.0.0.5:80\" 3ms",
    [WEIR_LOG_TRAEFIK_JSON] =
        "{\"ClientAddr\":\"10.0.0.2:40001\",\"ClientHost\":\"192.0.2.1\",\"ClientUsername\":"
        "\"frank\",\"DownstreamStatus\":404,\"Duration\":1500000,\"RequestHost\":\"example.org\","
        "\"RequestMethod\":\"GET\",\"RequestPath\":\"/"
        "a?b=c\",\"StartUTC\":\"2004-03-08T00:05:49Z\","
        "\"request_User-Agent\":\"curl/8\",\"request_Cookie\":\"REDACTED\",\"time\":"
        "\"2004-03-08T00:05:50Z\"}",
    [WEIR_LOG_CADDY_JSON] =
        "{\"level\":\"info\",\"ts\":1078704349.25,\"logger\":\"http.log.access.log0\",\"request\":{"
        "\"remote_ip\":\"10.0.0.2\",\"client_ip\":\"192.0.2.1\",\"method\":\"GET\",\"host\":"
        "\"example.org\",\"uri\":\"/a?b=c\",\"headers\":{\"User-Agent\":[\"curl/8\"],\"Cookie\":["
        "\"REDACTED\"]},\"tls\":{\"x\":[1,{\"}\":\"]\"}]}},\"user_id\":\"frank\",\"duration\":2.5e-"
        "1,"
        "\"status\":404}",
    [WEIR_LOG_HAPROXY] =
        "Mar  8 00:05:49 host haproxy[14389]: 192.0.2.1:33317 [08/Mar/2004:00:05:49.000] www~ "
        "app/srv1 10/0/30/69/+109 404 +12 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /a?b=c "
        "HTTP/1.1\"",
};

static int parse(enum weir_log_format format, const char *text)
{
    size_t size = strlen(text);
    return weir_log_parse(format, &record, guarded_put(&guarded, text, size), size, &room, &reason);
}

static void assert_parses(enum weir_log_format format, const char *text)
{
    if (parse(format, text) != 0)
        fail_msg("%s: %s: %s", weir_log_row(format)->name, reason.text, text);
}

static void assert_refused(enum weir_log_format format, const char *text, const char *why)
{
    assert_true(parse(format, text) < 0);
    if (strncmp(reason.text, why, strlen(why)) != 0)
        fail_msg("%s: '%s' does not begin with '%s'", text, reason.text, why);
}

static int best_of(const char *const *lines, size_t count)
{
    unsigned points[WEIR_LOG_FORMATS] = {0};
    for (size_t i = 0; i < count; i++)
        for (int f = 0; f < WEIR_LOG_FORMATS; f++)
            points[f] += weir_log_fits((enum weir_log_format)f,
                                       guarded_put(&guarded, lines[i], strlen(lines[i])),
                                       strlen(lines[i]), &room);
    return weir_log_best(points);
}

TEST("every format gives the same request")
{
    for (int f = WEIR_LOG_COMBINED; f < WEIR_LOG_FORMATS; f++) {
        bool json = f == WEIR_LOG_TRAEFIK_JSON || f == WEIR_LOG_CADDY_JSON;
        memset(&record, 0xff, sizeof record); /* nothing is left of what was there */
        assert_parses((enum weir_log_format)f, samples[f]);
        assert_true(record.t_ns == T_S * S);
        assert_bytes(record.client, "192.0.2.1");
        assert_bytes(record.method, "GET");
        assert_bytes(record.target, "/a?b=c");
        assert_int_equal(record.status, 404);
        assert_bytes(record.user, f == WEIR_LOG_HAPROXY ? NULL : "frank");
        assert_bytes(record.forwarded, f == WEIR_LOG_NGINX_MAIN ? "203.0.113.9, 10.0.0.2" : NULL);
        assert_bytes(record.host, f == WEIR_LOG_VHOST_COMBINED ? "example.org:80"
                                  : json                       ? "example.org"
                                                               : NULL);
        bool exact = f >= WEIR_LOG_TRAEFIK_JSON;
        assert_int_equal(record.whole_second, !exact);
        assert_int_equal(record.resolved, json);
        assert_int_equal(record.header_count, json);
        assert_null(record.check);
    }
    assert_parses(WEIR_LOG_JSONL, samples[WEIR_LOG_JSONL]);
    assert_true(record.t_ns == T_S * S && record.check == &room.check);
}

TEST("every format is known by its lines")
{
    for (int f = 0; f < WEIR_LOG_FORMATS; f++) {
        int found = best_of(&samples[f], 1);
        if (found != f)
            fail_msg("%s: read as %s", samples[f],
                     found < 0 ? "nothing" : weir_log_row((enum weir_log_format)found)->name);
    }
    static const char *const custom[] = {COMBINED " 0.003", COMBINED " rt=1 \"x\""};
    assert_int_equal(best_of(custom, 2), WEIR_LOG_COMBINED);
    static const char *const mixed[] = {COMBINED, COMBINED, COMBINED " \"-\""};
    assert_int_equal(best_of(mixed, 3), WEIR_LOG_COMBINED);
    static const char *const nothing[] = {"", "{}", "{\"t\": 1, \"typo\": 2}", "a b c", "\xff"};
    assert_int_equal(best_of(nothing, 5), -1);
}

TEST("times of lines are when the request came and when they were written")
{
    assert_parses(WEIR_LOG_HAPROXY, samples[WEIR_LOG_HAPROXY]);
    assert_true(record.written_ns == T_S * S + 109000000);
    assert_parses(WEIR_LOG_TRAEFIK_JSON, samples[WEIR_LOG_TRAEFIK_JSON]);
    assert_true(record.written_ns == T_S * S + 1500000);
    assert_parses(WEIR_LOG_CADDY_JSON, samples[WEIR_LOG_CADDY_JSON]);
    assert_true(record.written_ns == T_S * S + S / 4);
    assert_parses(WEIR_LOG_CADDY_JSON, "{\"ts\":\"2004-03-08T01:05:49.5+0100\",\"request\":{}}");
    assert_true(record.written_ns == T_S * S + S / 2 && record.t_ns == record.written_ns);
    assert_parses(
        WEIR_LOG_TRAEFIK_JSON,
        "{\"RequestMethod\":\"GET\",\"Duration\":5,\"time\":\"2004-03-07T16:05:49-08:00\"}");
    assert_true(record.written_ns == T_S * S && record.t_ns == T_S * S);
}

TEST("hidden header fields are left out")
{
    static const enum weir_log_format formats[] = {WEIR_LOG_TRAEFIK_JSON, WEIR_LOG_CADDY_JSON};
    for (size_t i = 0; i < 2; i++) {
        assert_parses(formats[i], samples[formats[i]]);
        assert_int_equal(record.fields, WEIR_LOG_FIELDS_ALL);
        assert_int_equal(record.header_count, 1);
        assert_bytes(record.headers[0].name, "User-Agent");
        assert_bytes(record.headers[0].value, "curl/8");
        assert_true(record.resolved);
    }
}

TEST("a client is what the server wrote")
{
    assert_parses(WEIR_LOG_COMMON, "203.0.113.9, 10.0.0.2 - - " TIME " \"GET / HTTP/1.1\" 200 1");
    assert_bytes(record.client, "203.0.113.9, 10.0.0.2");
    assert_parses(WEIR_LOG_COMMON, "- - - " TIME " \"GET / HTTP/1.1\" 200 1");
    assert_bytes(record.client, NULL);
    assert_parses(WEIR_LOG_HAPROXY,
                  "2001:db8::1:4001 [08/Mar/2004:00:05:49.123] a b/c 0/0/0/0/0 200 "
                  "1 - - ---- 1/1/1/1/0 0/0 \"GET https://a:1/b HTTP/2.0\"");
    assert_bytes(record.client, "2001:db8::1");
    assert_bytes(record.host, "a:1");
    assert_bytes(record.target, "/b");
    assert_true(record.t_ns == T_S * S + 123000000);
    assert_parses(WEIR_LOG_HAPROXY,
                  "<134>192.0.2.1:4001 [08/Mar/2004:00:05:49.123] a b/c 0/0/0/0/0 200 1 - - ---- "
                  "1/1/1/1/0 0/0 \"GET /b HTTP/2.0\"");
    assert_bytes(record.client, "192.0.2.1");
    assert_parses(WEIR_LOG_HAPROXY,
                  "unix:1 [08/Mar/2004:00:05:49.123] a b/<NOSRV> -1/-1/-1/-1/0 400 "
                  "0 - - PR-- 1/1/1/1/0 0/0 \"<BADREQ>\"");
    assert_bytes(record.client, "unix:");
    assert_bytes(record.method, NULL);
    assert_parses(WEIR_LOG_CADDY_JSON,
                  "{\"ts\":1,\"request\":{\"remote_addr\":\"192.0.2.1:4001\",\"headers\":{}}}");
    assert_bytes(record.client, "192.0.2.1:4001");
    assert_false(record.resolved);
}

TEST("an absolute target has a host")
{
    static const struct {
        const char *target, *host, *path;
    } cases[] = {{"http://a/b?c", "a", "/b?c"}, {"https://a:8443", "a:8443", "/"},
                 {"http://a?c", "a", "/"},      {"ftp://a/b", NULL, "ftp://a/b"},
                 {"a:443", NULL, "a:443"},      {"http://", NULL, "http://"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "h - - " TIME " \"GET %s HTTP/1.1\" 200 1", cases[i].target);
        assert_parses(WEIR_LOG_COMMON, text);
        assert_bytes(record.host, cases[i].host);
        assert_bytes(record.target, cases[i].path);
    }
}

TEST("a server may speak of itself")
{
    static const struct {
        enum weir_log_format format;
        const char *text;
    } cases[] = {
        {WEIR_LOG_HAPROXY, "Feb  6 12:14:14 host haproxy[14389]: Proxy www started."},
        {WEIR_LOG_HAPROXY,
         "192.0.2.1:4001 [08/Mar/2004:00:05:49.123] www/1: SSL handshake failure"},
        {WEIR_LOG_CADDY_JSON, "{\"level\":\"info\",\"ts\":1,\"msg\":\"serving\"}"},
        {WEIR_LOG_CADDY_JSON,
         "{\"ts\":1,\"logger\":\"http.log.error\",\"request\":{\"uri\":\"/\"}}"},
        {WEIR_LOG_TRAEFIK_JSON, "{\"level\":\"info\",\"msg\":\"Traefik\",\"time\":\"x\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int got = parse(cases[i].format, cases[i].text);
        if (cases[i].format == WEIR_LOG_TRAEFIK_JSON)
            assert_true(got < 0); /* its time is none */
        else
            assert_int_equal(got, WEIR_LOG_OTHER);
    }
    assert_int_equal(parse(WEIR_LOG_TRAEFIK_JSON, "{\"level\":\"info\",\"msg\":\"up\"}"),
                     WEIR_LOG_OTHER);
}

TEST("what is wrong is named")
{
    assert_refused(WEIR_LOG_COMBINED, "x", "line: not of the combined log format");
    assert_refused(WEIR_LOG_CADDY_JSON, "x", "not an object");
    assert_refused(WEIR_LOG_CADDY_JSON, "{\"request\":{}}", "no ts");
    assert_refused(WEIR_LOG_CADDY_JSON, "{\"ts\":\"now\",\"request\":{}}", "ts: ");
    assert_refused(WEIR_LOG_CADDY_JSON, "{\"ts\":1646861401524,\"request\":{}}", "ts: ");
    assert_refused(WEIR_LOG_CADDY_JSON, "{\"ts\":1,\"request\":{}", "missing comma");
    assert_refused(WEIR_LOG_TRAEFIK_JSON, "{\"RequestMethod\":\"GET\"}", "neither StartUTC");
    assert_refused(
        WEIR_LOG_HAPROXY,
        "192.0.2.1:1 [08/Mar/2004:00:05:49.123] a b/c 0/0/0/0/0 2x0 1 - - ---- 1/1/1/1/0 "
        "0/0 \"GET / HTTP/1.1\"",
        "line: not of HAProxy's");
    assert_refused(WEIR_LOG_JSONL, "{\"typo\":1}", "");
    assert_refused(WEIR_LOG_JSONL, "[{\"t\":1}]", "line: not a JSON object");
    assert_refused(WEIR_LOG_JSONL, "{\"t\":1} {}", "");
}

TEST("parts of each line are refused or whole")
{
    for (int f = 0; f < WEIR_LOG_FORMATS; f++) {
        size_t size = strlen(samples[f]);
        for (size_t part = 0; part < size; part++)
            (void)!weir_log_parse((enum weir_log_format)f, &record,
                                  guarded_put(&guarded, samples[f], part), part, &room, &reason);
        assert_parses((enum weir_log_format)f, samples[f]);
    }
}

static void assert_piece(enum weir_log_envelope envelope, const char *text, const char *inner,
                         bool is_error, bool goes_on)
{
    struct weir_log_piece piece;
    size_t size = strlen(text);
    if (!weir_log_unwrap(envelope, guarded_put(&guarded, text, size), size, &piece))
        fail_msg("no envelope: %s", text);
    assert_int_equal(piece.size, strlen(inner));
    assert_memory_equal(piece.text, inner, piece.size);
    assert_int_equal(piece.is_error, is_error);
    assert_int_equal(piece.goes_on, goes_on);
}

TEST("envelopes are taken off")
{
    assert_piece(WEIR_LOG_PLAIN, "a b", "a b", false, false);
    assert_piece(
        WEIR_LOG_DOCKER,
        "{\"log\":\"say \\\"hi\\\" \\u00e9\\n\",\"stream\":\"stdout\",\"attrs\":{\"a\":[1]},"
        "\"time\":\"2020-01-01T00:00:00.000000000Z\"}",
        "say \"hi\" \xc3\xa9", false, false);
    assert_piece(WEIR_LOG_DOCKER, "{\"time\":\"\",\"stream\":\"stderr\",\"log\":\"a\"}", "a", true,
                 true);
    assert_piece(WEIR_LOG_CRI, "2016-10-06T00:17:09.669794202Z stdout F a  b", "a  b", false,
                 false);
    assert_piece(WEIR_LOG_CRI, "2016-10-06T00:17:09.669794202+02:00 stderr P:x:y a", "a", true,
                 true);
    assert_piece(WEIR_LOG_CRI, "2016-10-06T00:17:09.669794202Z stdout F ", "", false, false);
}

TEST("what has no envelope is known")
{
    static const char *const docker[] = {"", "{}", "{\"log\":\"a\\n\",\"stream\":\"stdout\"}",
                                         "{\"log\":1,\"stream\":\"stdout\",\"time\":\"\"}", "a"};
    static const char *const cri[] = {"", COMBINED, "2016-10-06T00:17:09.669794202Z stdout X a",
                                      "2016-10-06T00:17:09.669794202Z stdin  F a",
                                      "2016-10-06 00:17:09 [error] 12#12: *1 open() failed"};
    struct weir_log_piece piece;
    for (size_t i = 0; i < 5; i++) {
        size_t size = strlen(docker[i]);
        assert_false(
            weir_log_unwrap(WEIR_LOG_DOCKER, guarded_put(&guarded, docker[i], size), size, &piece));
        size = strlen(cri[i]);
        assert_false(
            weir_log_unwrap(WEIR_LOG_CRI, guarded_put(&guarded, cri[i], size), size, &piece));
    }
}

RUN_TESTS_WITH(room_open, room_close)
