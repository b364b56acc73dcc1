/* SPDX-License-Identifier: Apache-2.0 */
/* wire/forwarded: the client's address, whatever it writes about itself. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/http/forwarded.h"

static struct guarded guarded;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 20);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

#define LINES_MAX 4

/* The client that a list of field lines tells, separated by '|', behind the trusted peer 10.0.0.1;
 * trusted are 10.0.0.0/8 and fd00::/8, and with `local` Unix sockets. "unread": it is unknown. */
static const char *client_behind(bool local, bool rfc7239, const char *lines)
{
    static char text[WEIR_ADDRESS_TEXT_MAX];
    struct weir_cidr trusted[2];
    const struct weir_proxies proxies = {trusted, 2, local};
    struct weir_address client;
    struct weir_bytes values[LINES_MAX];
    size_t count = 0;
    const char *line = guarded_put(&guarded, lines, strlen(lines));

    assert_int_equal(weir_cidr_parse(&trusted[0], "10.0.0.0/8", 10), 0);
    assert_int_equal(weir_cidr_parse(&trusted[1], "fd00::/8", 8), 0);
    assert_int_equal(weir_address_parse(&client, "10.0.0.1", 8), 0);
    for (const char *at = line;; at++) {
        if (at == guarded.end || *at == '|') {
            assert_true(count < LINES_MAX);
            values[count++] = (struct weir_bytes){line, (size_t)(at - line)};
            line = at + 1;
        }
        if (at == guarded.end)
            break;
    }
    int err = rfc7239 ? weir_forwarded_rfc7239(&client, values, count, &proxies)
                      : weir_forwarded_for(&client, values, count, &proxies);
    if (err < 0) {
        assert_int_equal(err, WEIR_ERR_SYNTAX);
        return "unread";
    }
    weir_address_format(&client, text);
    return text;
}

static const char *client_of(bool rfc7239, const char *lines)
{
    return client_behind(false, rfc7239, lines);
}

TEST("the right most untrusted hop is the client")
{
    static const char *const cases[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"192.0.2.1, 10.0.0.2", "192.0.2.1"},
        {"192.0.2.1, 10.0.0.2, fd00::1", "192.0.2.1"},
        {"6.6.6.6, 192.0.2.1, 10.0.0.2", "192.0.2.1"},
        {"10.6.6.6, 192.0.2.1", "192.0.2.1"},
        {"10.0.0.3, 10.0.0.2", "10.0.0.3"}, /* all trusted: the first */
        {"2001:db8::1,10.0.0.2", "2001:db8::1"},
        {" \t192.0.2.1\t ,\t10.0.0.2 ", "192.0.2.1"},
        {"6.6.6.6|192.0.2.1|10.0.0.2", "192.0.2.1"}, /* lines in order of arrival */
        {"192.0.2.1, 10.0.0.3|10.0.0.2", "192.0.2.1"},
        {"", "10.0.0.1"},
        {"|", "10.0.0.1"},
        {",, ,192.0.2.1,, ,", "192.0.2.1"},
        {"192.0.2.1,|,", "192.0.2.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(client_of(false, cases[i][0]), cases[i][1]);
}

TEST("hops may have ports and brackets")
{
    static const char *const cases[][2] = {
        {"192.0.2.1:8080", "192.0.2.1"},
        {"192.0.2.1:0", "192.0.2.1"},
        {"192.0.2.1:_port", "192.0.2.1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:65535", "2001:db8::1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"[::ffff:c000:201]:1", "192.0.2.1"},
        {"2001:db8::1.2.3.4", "2001:db8::102:304"},
        {"192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1"}, /* a mapped proxy is trusted by bits */
        {"fe80::1%eth0", "fe80::1"},
        {"fe80::1%25eth0, fd00::1%1", "fe80::1"},
        {"[fe80::1%1]", "fe80::1"},
        {"[fe80::1%eth0]:80, 10.0.0.2", "fe80::1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(client_of(false, cases[i][0]), cases[i][1]);
}

TEST("a hop that is no address makes the client unknown")
{
    static const char *const hops[] = {
        "unknown",
        "_hidden",
        "localhost",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:123456",
        "192.0.2.1:8x",
        "192.0.2.1:-1",
        "[192.0.2.1]",
        "[::1",
        "::1]",
        "[]",
        "[",
        "[::1]x",
        "[::1]:",
        "[::1]:99999",
        "[::1]:80:",
        "[[::1]]",
        "::1%",
        "[fe80::1%]",
        "192.0.2.1%eth0",
        "192.0.2.010",
        "unix:",
        "unix:x",
        "192.0.2.1 192.0.2.2",
        "\"192.0.2.1\"",
        "192.0.2.01",
        "192.0.2.1:_",
        "for=192.0.2.1",
        "192.0.2.1;10.0.0.1",
        "%",
        "1",
        "256.1.1.1",
        "\x01",
    };
    for (size_t i = 0; i < sizeof hops / sizeof hops[0]; i++) {
        char text[128];
        assert_string_equal(client_of(false, hops[i]), "unread");
        snprintf(text, sizeof text, "6.6.6.6, %s, 10.0.0.2", hops[i]);
        assert_string_equal(client_of(false, text), "unread");
        snprintf(text, sizeof text, "6.6.6.6|%s|10.0.0.2", hops[i]);
        assert_string_equal(client_of(false, text), "unread");
        snprintf(text, sizeof text, "%s, 6.6.6.6, 10.0.0.2", hops[i]); /* the client wrote it */
        assert_string_equal(client_of(false, text), "6.6.6.6");
    }
}

TEST("a unix socket is a hop where unix sockets are trusted")
{
    assert_string_equal(client_behind(true, false, "192.0.2.1, unix:"), "192.0.2.1");
    assert_string_equal(client_behind(true, false, "192.0.2.1, unix:, 10.0.0.2"), "192.0.2.1");
    assert_string_equal(client_behind(true, false, "unix:"), "10.0.0.1");
    assert_string_equal(client_behind(true, true, "for=192.0.2.1, for=\"unix:\""), "192.0.2.1");
    assert_string_equal(client_behind(true, false, "192.0.2.1, unix:x"), "unread");
    assert_string_equal(client_behind(false, false, "192.0.2.1, unix:"), "unread");
    assert_string_equal(client_behind(true, false, "unix:, 192.0.2.1"), "192.0.2.1");
}

TEST("ten thousand hops are looked at no further than the limit")
{
    char *text = memory_new(10000 * 10 + 32);
    size_t size = (size_t)sprintf(text, "6.6.6.6");
    for (int i = 0; i < 10000; i++)
        size += (size_t)sprintf(text + size, ",10.0.0.%d", i % 10);
    /* the 64th from the right is the last looked at: 10,000 - 64 = 9936 */
    assert_string_equal(client_of(false, text), "10.0.0.6");
    memset(text, ',', 100000);
    memcpy(text, "6.6.6.6", 7);
    text[100000] = '\0';
    assert_string_equal(client_of(false, text), "10.0.0.1");
    free(text);
    for (int hops = WEIR_FORWARDED_HOPS_MAX - 1; hops <= WEIR_FORWARDED_HOPS_MAX; hops++) {
        char few[1024] = "192.0.2.1";
        for (int i = 0; i < hops; i++)
            strcat(few, ",10.0.0.2");
        assert_string_equal(client_of(false, few),
                            hops < WEIR_FORWARDED_HOPS_MAX ? "192.0.2.1" : "10.0.0.2");
    }
}

TEST("forwarded elements are read by their grammar")
{
    static const char *const cases[][2] = {
        {"for=192.0.2.1", "192.0.2.1"},
        {"For=192.0.2.1", "192.0.2.1"},
        {"FOR=\"192.0.2.1:47011\"", "192.0.2.1"},
        {"for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"},
        {"for=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17"},
        {"for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"},
        {"by=203.0.113.43;for=192.0.2.60", "192.0.2.60"},
        {"proto=https ; for=192.0.2.60 ;\thost=\"a,b;for=6.6.6.6\"", "192.0.2.60"},
        {"for=192.0.2.43, for=\"[fd00::7]\"", "192.0.2.43"},
        {"for=6.6.6.6, for=192.0.2.43|for=10.0.0.5", "192.0.2.43"},
        {"for=192.0.2.43;ext=\"a\\\"b\\\\\", for=10.0.0.2;x=\"\\\",\"", "192.0.2.43"},
        {"for=\"\\1\\92.0.2.1\"", "192.0.2.1"},
        {"for=192.0.2.1:80", "192.0.2.1"},
        {"for=192.0.2.1,,", "192.0.2.1"},
        {"for=\"[fe80::1%eth0]:80\", for=10.0.0.2", "fe80::1"},
        {"for=\"[fe80::1%25eth0]\"", "fe80::1"},
        {"proto=https", "10.0.0.1"}, /* nobody says who the client is */
        {"proto=https;host=a, proto=http", "10.0.0.1"},
        {"for=6.6.6.6, proto=https", "unread"},
        {"proto=https, for=10.0.0.2", "unread"},
        {"", "10.0.0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(client_of(true, cases[i][0]), cases[i][1]);
}

TEST("forwarded elements that tell no address make the client unknown")
{
    static const char *const elements[] = {
        "for=unknown",
        "for=_gazonk",
        "for=\"_SEVKISEK\"",
        "for=\"unknown:80\"",
        "proto=http",
        "192.0.2.1",
        "for",
        "for=",
        "for=\"\"",
        "=192.0.2.1",
        "for =192.0.2.1",
        "for= 192.0.2.1",
        "for=192.0.2.1;for=192.0.2.2",
        "for=192.0.2.1;",
        ";for=192.0.2.1",
        "for=192.0.2.1;;by=x",
        "for=192.0.2.1 proto=http",
        "for=\"192.0.2.1\"x",
        "for=192.0.2.1\"x\"",
        "for=\"192.0.2.1",
        "for=192.0.2.1\"",
        "for=\"[::1\"",
        "for=\"192.0.2.1\\\"",
        "f r=192.0.2.1",
        "\"",
        "for=\"192.0.2.1                                                                       \"",
        "for=11111111111111111111111111111111111111111111111111111111111111111111111111111111",
    };
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "for=6.6.6.6, %s, for=10.0.0.2;by=\"x,y\"", elements[i]);
        assert_string_equal(client_of(true, text), "unread");
    }
}

TEST("what a client writes does not change what its proxies append")
{
    uint64_t random = 6;
    static const char alphabet[] = "\"\"\"\\\\,;= for10.[]:_x";
    for (int i = 0; i < 50000; i++) {
        char text[128];
        size_t size = draw_below(&random, 40);
        for (size_t j = 0; j < size; j++)
            text[j] = alphabet[draw_below(&random, sizeof alphabet - 1)];
        strcpy(text + size, ", for=\"[2001:db8::1]:80\";by=_a;host=\"h,\\\"\", for=10.0.0.2");
        assert_string_equal(client_of(true, text), "2001:db8::1");
        strcpy(text + size, ", 192.0.2.1:80, 10.0.0.2");
        assert_string_equal(client_of(false, text), "192.0.2.1");
    }
}

TEST("x forwarded for goes before forwarded and the error names the field")
{
    struct weir_cidr trusted;
    const struct weir_proxies proxies = {&trusted, 1, false};
    const struct weir_bytes good = {"192.0.2.1", 9}, other = {"for=192.0.2.2", 13}, bad = {"?", 1};
    struct weir_address client = {0};
    struct weir_reason reason;
    char text[WEIR_ADDRESS_TEXT_MAX];
    assert_int_equal(weir_cidr_parse(&trusted, "10.0.0.0/8", 10), 0);
    const struct weir_forwarded both = {&good, &other, 1, 1}, none = {NULL, NULL, 0, 0};
    assert_int_equal(weir_forwarded_client(&client, &both, &proxies, NULL), 0);
    weir_address_format(&client, text);
    assert_string_equal(text, "192.0.2.1");
    assert_int_equal(weir_forwarded_client(&client, &none, &proxies, NULL), 0);
    const struct weir_forwarded first = {&bad, &other, 1, 1}, second = {NULL, &bad, 0, 1};
    assert_int_equal(weir_forwarded_client(&client, &first, &proxies, &reason), WEIR_ERR_SYNTAX);
    assert_non_null(strstr(reason.text, "X-Forwarded-For:"));
    assert_int_equal(weir_forwarded_client(&client, &second, &proxies, &reason), WEIR_ERR_SYNTAX);
    assert_true(strncmp(reason.text, "Forwarded:", 10) == 0);
    assert_int_equal(weir_forwarded_client(&client, &second, &proxies, NULL), WEIR_ERR_SYNTAX);
}

RUN_TESTS_WITH(room_open, room_close)
