/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of traces as requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/request.h"
#include "core/bytes.h"
#include "rules/source.h"
#include "test.h"

static struct weir_rules *rules;
static struct replay_request parsed;
static struct replay_clients clients;
static char buffer[4096]; /* it holds values until the next line */

static int load_rules(void **state)
{
    static const char text[] = "version: 1\n"
                               "limits:\n"
                               "  - name: all\n"
                               "    match: { header.user-agent: 'x*', header.referer: 'y*' }\n"
                               "    key: [user, color, client.ip]\n"
                               "    rate: 1/s\n";
    struct weir_problems problems = {0};
    int error = weir_rules_parse(&rules, "rules", ".", text, sizeof text - 1, &problems);
    weir_problems_free(&problems);
    replay_clients_init(&clients, NULL, NULL);
    return error;
}

static int unload_rules(void **state)
{
    weir_rules_unref(rules);
    return 0;
}

static int parse(enum weir_log_format format, const char *text, struct weir_reason *reason)
{
    static struct weir_log_room room;
    static struct weir_log_record record;
    snprintf(buffer, sizeof buffer, "%s", text);
    *reason = (struct weir_reason){{0}};
    int got = weir_log_parse(format, &record, buffer, strlen(buffer), &room, reason);
    struct replay_line line = {.kind = got < 0 ? REPLAY_BAD : REPLAY_REQUEST,
                               .record = &record,
                               .t_ns = record.t_ns,
                               .reason = reason->text};
    struct weir_reason why = {{0}};
    replay_request_begin(&parsed, rules, &clients);
    got = replay_request_parse(&parsed, &line, &why);
    *reason = why;
    return got;
}

static void expect(enum weir_log_format format, const char *text)
{
    struct weir_reason reason;
    if (parse(format, text, &reason) < 0)
        fail_msg("%s: %s", text, reason.text);
}

static void expect_refusal(enum weir_log_format format, const char *text, const char *field)
{
    struct weir_reason reason;
    assert_true(parse(format, text, &reason) < 0);
    if (strncmp(reason.text, field, strlen(field)) != 0)
        fail_msg("%s: '%s' does not begin with '%s'", text, reason.text, field);
}

static void expect_attribute(int attribute, const char *value)
{
    assert_true(attribute >= 0);
    struct weir_bytes found = parsed.request.values[attribute];
    if (value == NULL) {
        assert_null(found.data);
        return;
    }
    assert_int_equal(found.size, strlen(value));
    assert_memory_equal(found.data, value, found.size);
}

static void expect_named(const char *attribute, const char *value)
{
    expect_attribute(weir_rules_source(rules, attribute, strlen(attribute)).attribute, value);
}

TEST("a json line gives its attributes time and cost")
{
    expect(WEIR_LOG_JSONL,
           "{\"t\": 1700000000.123456789, \"method\": \"GET\", \"path\": \"/a\", \"host\": \"h\", "
           "\"ip\": \"::ffff:192.0.2.1\", \"headers\": {\"User-Agent\": \"x1\", \"Other\": \"z\"}, "
           "\"attributes\": {\"user\": \"alice\", \"color\": \"red\", \"other\": 1}, \"cost\": 7, "
           "\"dry_run\": true}");
    assert_true(parsed.t_ns == UINT64_C(1700000000123456789));
    assert_true(parsed.dry_run);
    assert_int_equal(parsed.request.cost, 7);
    assert_int_equal(parsed.request.client.family, 4);
    assert_memory_equal(parsed.request.client.bytes, "\xc0\x00\x02\x01", 4);
    expect_attribute(WEIR_ATTR_METHOD, "GET");
    expect_attribute(WEIR_ATTR_PATH, "/a");
    expect_attribute(WEIR_ATTR_HOST, "h");
    expect_attribute(WEIR_ATTR_USER, "alice");
    expect_named("header.user-agent", "x1");
    expect_named("header.referer", NULL);
    expect_named("color", "red");
}

TEST("a line with nothing but its time is a request")
{
    expect(WEIR_LOG_JSONL, "{\"t\": \"1\"}");
    assert_true(parsed.t_ns == UINT64_C(1000000000));
    assert_false(parsed.dry_run);
    assert_int_equal(parsed.request.cost, 1);
    assert_int_equal(parsed.request.client.family, 0);
    expect_attribute(WEIR_ATTR_METHOD, NULL);
    expect_named("color", NULL);
}

TEST("a header that stands twice is one list")
{
    static struct weir_check_json check = {.cost = 1, .header_count = 4};
    struct weir_reason reason;
    check.headers[0] = (struct weir_check_pair){weir_bytes_of("User-Agent"), weir_bytes_of("x")};
    check.headers[1] = (struct weir_check_pair){weir_bytes_of("Referer"), weir_bytes_of("r")};
    check.headers[2] = (struct weir_check_pair){weir_bytes_of("user-agent"), weir_bytes_of("y")};
    check.headers[3] = (struct weir_check_pair){weir_bytes_of("USER-AGENT"), weir_bytes_of("")};
    assert_int_equal(replay_request_fill(&parsed, rules, &check, &reason), 0);
    expect_named("header.user-agent", "x, y, ");
    expect_named("header.referer", "r");
}

TEST("repeated headers that are too large are refused")
{
    static char large[REPLAY_JOINED_MAX];
    static struct weir_check_json check = {.cost = 1, .header_count = 2};
    struct weir_reason reason;
    memset(large, 'x', sizeof large);
    for (size_t size = sizeof large - 3; size <= sizeof large - 2; size++) {
        check.headers[0] = (struct weir_check_pair){weir_bytes_of("referer"), {large, size}};
        check.headers[1] = (struct weir_check_pair){weir_bytes_of("referer"), weir_bytes_of("x")};
        bool fits = size + 3 <= sizeof large;
        assert_int_equal(replay_request_fill(&parsed, rules, &check, &reason),
                         fits ? 0 : WEIR_ERR_TOO_LARGE);
    }
}

TEST("malformed json lines are refused with the field")
{
    expect_refusal(WEIR_LOG_JSONL, "{}", "t");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1, \"ip\": \"localhost\"}", "ip");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1, \"cost\": -1}", "cost");
    expect_refusal(WEIR_LOG_JSONL, "[{\"t\": 1}]", "line");
    expect_refusal(WEIR_LOG_JSONL, "[]", "line");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1, \"attributes\": {\"path\": \"/b\"}}", "attributes");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1, \"typo\": 1}", "");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1} {\"t\": 2}", "");
    expect_refusal(WEIR_LOG_JSONL, "{\"t\": 1", "");
}

TEST("a combined line gives its headers and user")
{
    expect(WEIR_LOG_COMBINED,
           "2001:db8::1 - alice [07/Mar/2004:16:05:49 -0800] \"GET /a?b HTTP/1.1\""
           " 401 12846 \"y2\" \"x2\"");
    assert_true(parsed.t_ns == UINT64_C(1078704349) * 1000000000);
    expect_attribute(WEIR_ATTR_METHOD, "GET");
    expect_attribute(WEIR_ATTR_PATH, "/a?b");
    expect_attribute(WEIR_ATTR_USER, "alice");
    expect_named("header.user-agent", "x2");
    expect_named("header.referer", "y2");
    assert_int_equal(parsed.request.client.family, 6);
    assert_null(parsed.host_name.data);
}

TEST("a common line has neither headers nor user")
{
    expect(WEIR_LOG_COMBINED,
           "192.0.2.1 - - [07/Mar/2004:16:05:49 +0000] \"GET / HTTP/1.0\" 200 -");
    expect_attribute(WEIR_ATTR_USER, NULL);
    expect_named("header.user-agent", NULL);
    expect_named("header.referer", NULL);
    assert_false(parsed.dry_run);
    assert_int_equal(parsed.request.cost, 1);
    expect_refusal(WEIR_LOG_COMBINED, "192.0.2.1 - -", "line");
}

static void parse_host(const char *host)
{
    char text[400];
    snprintf(text, sizeof text, "%s - - [07/Mar/2004:16:05:49 +0000] \"GET / HTTP/1.0\" 200 -",
             host);
    expect(WEIR_LOG_COMBINED, text);
}

TEST("a host name stands for an address and a prefix of its own")
{
    parse_host("one.example.org");
    struct weir_address one = parsed.request.client;
    assert_int_equal(one.family, 6);
    assert_int_equal(one.bytes[0], 0xfc);
    parse_host("two.example.org");
    assert_memory_not_equal(parsed.request.client.bytes, one.bytes, 8);
    parse_host("one.example.org");
    assert_memory_equal(parsed.request.client.bytes, one.bytes, 16);
}

TEST("a broken address is no name and no fresh caller")
{
    static const char *const hosts[] = {"010.0.0.1", "1.2.3.999", "1.2.3", "::1::", "fe80::1%"};
    parse_host("fe80::1%eth0");
    assert_int_equal(parsed.request.client.family, 6);
    assert_null(parsed.host_name.data);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s - - [07/Mar/2004:16:05:49 +0000] \"GET / HTTP/1.0\" 200 -",
                 hosts[i]);
        expect_refusal(WEIR_LOG_COMBINED, text, "client");
    }
}

static void expect_client(const char *host, const char *address)
{
    char text[WEIR_ADDRESS_TEXT_MAX] = "";
    parse_host(host);
    weir_address_format(&parsed.request.client, text);
    if (strcmp(text, address) != 0)
        fail_msg("%s: %s, not %s", host, text, address);
    assert_null(parsed.host_name.data);
}

TEST("addresses are read as the doors read them")
{
    expect_client("203.0.113.9:40001", "203.0.113.9");
    expect_client("[2001:db8::1]", "2001:db8::1");
    expect_client("[2001:db8::1]:443", "2001:db8::1");
    expect_client("::ffff:192.0.2.1", "192.0.2.1");
    expect_client("203.0.113.9, 10.0.0.2", "203.0.113.9");
    expect_client("192.0.2.66, 203.0.113.9:5, 10.0.0.2, 127.0.0.1", "203.0.113.9");
    expect_client("192.0.2.66, 203.0.113.9", "203.0.113.9");
    expect_client("unix:", "");
    expect_client("-", "");
    expect_refusal(WEIR_LOG_COMBINED,
                   "unknown, 10.0.0.2 - - [07/Mar/2004:16:05:49 +0000] \"GET / HTTP/1.0\" 200 -",
                   "client");
}

/* A line of nginx's main. */
static void parse_main(const char *peer, const char *forwarded)
{
    char text[400];
    snprintf(text, sizeof text,
             "%s - - [07/Mar/2004:16:05:49 +0000] \"GET / HTTP/1.0\" 200 1 \"-\" \"x\" \"%s\"",
             peer, forwarded);
    expect(WEIR_LOG_NGINX_MAIN, text);
}

static void expect_behind(const char *peer, const char *forwarded, const char *address)
{
    char text[WEIR_ADDRESS_TEXT_MAX] = "";
    parse_main(peer, forwarded);
    weir_address_format(&parsed.request.client, text);
    if (strcmp(text, address) != 0)
        fail_msg("%s, %s: %s, not %s", peer, forwarded, text, address);
}

TEST("a trusted peer says who the client is")
{
    replay_clients_init(&clients, NULL, NULL);
    expect_behind("10.0.0.2", "203.0.113.9", "203.0.113.9");
    expect_behind("10.0.0.2", "192.0.2.66, 203.0.113.9, 10.1.1.1", "203.0.113.9");
    expect_behind("10.0.0.2", "-", "10.0.0.2");
    expect_behind("10.0.0.2", "", "10.0.0.2");
    expect_behind("unix:", "203.0.113.9", "203.0.113.9");
    expect_behind("198.51.100.7", "203.0.113.9", "198.51.100.7");
    assert_int_equal(clients.log.forwarded, 3);
    assert_int_equal(clients.log.unread, 1);
    struct weir_settings settings = {.trusted_proxies_given = true};
    replay_clients_init(&clients, NULL, &settings);
    expect_behind("10.0.0.2", "203.0.113.9", "10.0.0.2");
    struct replay_proxies proxies;
    assert_true(replay_proxies_parse(&proxies, "198.51.100.0/24,unix,2001:db8::/32"));
    replay_clients_init(&clients, &proxies, &settings);
    expect_behind("198.51.100.7", "203.0.113.9", "203.0.113.9");
    expect_behind("10.0.0.2", "203.0.113.9", "10.0.0.2");
    assert_true(replay_proxies_parse(&proxies, "none"));
    replay_clients_init(&clients, &proxies, &settings);
    expect_behind("127.0.0.1", "203.0.113.9", "127.0.0.1");
    static const char *const wrong[] = {"", "10.0.0.0/8,", "10.0.0.1/8", "x", "none,unix"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(replay_proxies_parse(&proxies, wrong[i]));
    replay_clients_init(&clients, NULL, NULL);
}

TEST("names that look like addresses are noted")
{
    static const char *const odd[] = {"203.0.113.9_40001", "1.2.3.4.",  "1-2-3-4_5",
                                      "1.2.3.4.x",         "5.6.7.8_a", "9.9.9.9_b"};
    replay_clients_init(&clients, NULL, NULL);
    parse_host("ec2-203-0-113-9.example.net");
    parse_host("v4.example.net");
    assert_int_equal(clients.log.odd, 0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        parse_host(odd[i]);
        parse_host(odd[i]);
        assert_non_null(parsed.host_name.data);
    }
    assert_int_equal(clients.log.odd, 12);
    assert_int_equal(clients.log.names, 14);
    assert_int_equal(clients.log.odd_shown, WEIR_LOG_ODD_MAX);
    assert_true(clients.log.odd_more);
    assert_string_equal(clients.log.odd_name[0], odd[0]);
}

TEST("caddy gives all its header fields")
{
    static const char line[] =
        "{\"ts\":1,\"request\":{\"remote_ip\":\"%s\",%s\"method\":\"GET\",\"host\":\"h\",\"uri\":"
        "\"/a\",\"headers\":{\"User-Agent\":[\"x1\"],\"Referer\":[\"y\",\"z\"],\"X-Forwarded-For\":"
        "[\"203.0.113.9\",\"10.1.1.1\"]}},\"user_id\":\"alice\",\"status\":200}";
    char text[600], client[WEIR_ADDRESS_TEXT_MAX];
    snprintf(text, sizeof text, line, "10.0.0.2", "");
    expect(WEIR_LOG_CADDY_JSON, text);
    expect_named("header.user-agent", "x1");
    expect_named("header.referer", "y, z");
    expect_attribute(WEIR_ATTR_USER, "alice");
    expect_attribute(WEIR_ATTR_HOST, "h");
    weir_address_format(&parsed.request.client, client);
    assert_string_equal(client, "203.0.113.9");
    snprintf(text, sizeof text, line, "10.0.0.2", "\"client_ip\":\"192.0.2.5\",");
    expect(WEIR_LOG_CADDY_JSON, text);
    weir_address_format(&parsed.request.client, client);
    assert_string_equal(client, "192.0.2.5"); /* what Caddy has made of the same fields */
}

static void expect_name(const char *before, const char *address, const char *after)
{
    char key[256], expected[256], out[REPLAY_NAME_MAX(sizeof key)];
    snprintf(key, sizeof key, "%s%s%s", before, address, after);
    snprintf(expected, sizeof expected, "%sone.example.org%s", before, after);
    struct weir_bytes shown = replay_request_name(&parsed, weir_bytes_of(key), out);
    assert_int_equal(shown.size, strlen(expected));
    assert_memory_equal(shown.data, expected, shown.size);
}

TEST("reports show the name instead of its address")
{
    char address[WEIR_ADDRESS_TEXT_MAX];
    parse_host("one.example.org");
    struct weir_address masked = parsed.request.client;
    weir_address_format(&masked, address);
    expect_name("", address, "");
    expect_name("user=ip:", address, ",color=red");
    weir_address_mask(&masked, 64);
    weir_address_format(&masked, address);
    expect_name("", address, "/64");
    const struct weir_bytes other = {"2001:db8::1 bed", 15};
    char out[REPLAY_NAME_MAX(15)];
    assert_ptr_equal(replay_request_name(&parsed, other, out).data, other.data);
}

RUN_TESTS_WITH(load_rules, unload_rules)
