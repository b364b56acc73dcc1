/* SPDX-License-Identifier: Apache-2.0 */
/* wire/proxy_protocol: both versions, whole and in pieces, and what is refused. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/http/proxy_protocol.h"

static struct guarded guarded;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 17);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

/* Parses all of it; then every prefix, of which the first that gives an answer must give the same.
 * The client starts as 198.51.100.1. */
static long parse(const void *data, size_t size, char client_text[WEIR_ADDRESS_TEXT_MAX])
{
    struct weir_address start, client;
    assert_int_equal(weir_address_parse(&start, "198.51.100.1", 12), 0);
    client = start;
    long taken = weir_proxy_header_parse(&client, guarded_put(&guarded, data, size), size);
    weir_address_format(&client, client_text);
    for (size_t part = 0; part < size; part += size < 1000 ? 1 : 997) {
        struct weir_address early = start;
        long got = weir_proxy_header_parse(&early, guarded_put(&guarded, data, part), part);
        if (got != 0) {
            assert_int_equal(got, taken);
            assert_memory_equal(&early, &client, sizeof client);
        } else {
            assert_memory_equal(&early, &start, sizeof start);
            assert_true(taken <= 0 || part < (size_t)taken);
        }
    }
    return taken;
}

static void assert_header(const void *data, size_t size, size_t taken, const char *client)
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    assert_int_equal(parse(data, size, text), (long)taken);
    assert_string_equal(text, client);
}

static void assert_refused(const void *data, size_t size)
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    if (parse(data, size, text) != WEIR_ERR_SYNTAX)
        fail_msg("accepted %.*s", (int)size, (const char *)data);
    assert_string_equal(text, "198.51.100.1");
}

TEST("version 1 tells the source")
{
    static const char *const cases[][2] = {
        {"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", "192.0.2.1"},
        {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 0 0\r\n", "192.0.2.1"},
        {"PROXY TCP6 2001:db8::1 ::1 56324 443\r\n", "2001:db8::1"},
        {"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "192.0.2.1"},
        {"PROXY UNKNOWN\r\n", "198.51.100.1"},
        {"PROXY UNKNOWN anything at all 1 2\r\n", "198.51.100.1"},
        {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "198.51.100.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        size_t size = strlen(cases[i][0]);
        assert_header(cases[i][0], size, size, cases[i][1]);
        snprintf(text, sizeof text, "%sGET / HTTP/1.1\r\n", cases[i][0]);
        assert_header(text, strlen(text), size, cases[i][1]);
    }
}

TEST("version 1 is strict")
{
    static const char *const cases[] = {
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n",
        "PROXY TCP4 192.0.2.1\r\n",
        "PROXY TCP4\r\n",
        "PROXY \r\n",
        "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 ::1 1 2\r\n",
        "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 99999999999999999999\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 x\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\rx",
        "PROXY UNKNOWN a\nb\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXYTCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "\r\nPROXY UNKNOWN\r\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i], strlen(cases[i]));
    assert_refused("PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n", 38);
}

TEST("version 1 ends within 107 bytes")
{
    char text[200];
    for (size_t size = WEIR_PROXY_V1_MAX; size <= WEIR_PROXY_V1_MAX + 1; size++) {
        memset(text, 'x', sizeof text);
        memcpy(text, "PROXY UNKNOWN ", 14);
        memcpy(text + size - 2, "\r\n", 2);
        if (size == WEIR_PROXY_V1_MAX)
            assert_header(text, sizeof text, size, "198.51.100.1");
        else
            assert_refused(text, sizeof text);
    }
}

static size_t v2(uint8_t *out, uint8_t version_command, uint8_t family_protocol, size_t length)
{
    memcpy(out, "\r\n\r\n\0\r\nQUIT\n", 12);
    out[12] = version_command;
    out[13] = family_protocol;
    out[14] = (uint8_t)(length >> 8);
    out[15] = (uint8_t)length;
    for (size_t i = 0; i < length; i++)
        out[16 + i] = (uint8_t)(i + 1);
    return 16 + length;
}

TEST("version 2 tells the source")
{
    static const struct {
        uint8_t version_command, family_protocol;
        size_t length;
        const char *client;
    } cases[] = {
        {0x21, 0x11, 12, "1.2.3.4"},
        {0x21, 0x11, 12 + 30, "1.2.3.4"}, /* TLVs are skipped */
        {0x21, 0x21, 36, "102:304:506:708:90a:b0c:d0e:f10"},
        {0x21, 0x21, 36 + 1000, "102:304:506:708:90a:b0c:d0e:f10"},
        {0x20, 0x00, 0, "198.51.100.1"}, /* LOCAL: a health check */
        {0x20, 0x11, 12, "198.51.100.1"},
        {0x20, 0x11, 3, "198.51.100.1"},
        {0x20, 0xff, 7, "198.51.100.1"},
        {0x21, 0x00, 0, "198.51.100.1"},
        {0x21, 0x00, 20, "198.51.100.1"},
        {0x21, 0x10, 12, "198.51.100.1"},
        {0x21, 0x12, 12, "198.51.100.1"},
        {0x21, 0x31, 216, "198.51.100.1"},
        {0x21, 0x11, 65535, "1.2.3.4"},
    };
    uint8_t *data = memory_new(WEIR_PROXY_HEADER_MAX + 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = v2(data, cases[i].version_command, cases[i].family_protocol, cases[i].length);
        memcpy(data + size, "GET", 3);
        assert_header(data, size, size, cases[i].client);
        assert_header(data, size + 3, size, cases[i].client);
    }
    size_t size = v2(data, 0x21, 0x21, 36);
    memcpy(data + 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x07", 16);
    assert_header(data, size, size, "192.0.2.7");
    free(data);
}

TEST("version 2 is strict")
{
    static const struct {
        uint8_t version_command, family_protocol;
        size_t length;
    } cases[] = {
        {0x11, 0x11, 12}, {0x31, 0x11, 12},  {0x01, 0x11, 12}, {0x22, 0x11, 12},  {0x2f, 0x11, 12},
        {0x21, 0x41, 12}, {0x21, 0xf1, 300}, {0x21, 0x13, 12}, {0x21, 0x1f, 12},  {0x21, 0x11, 11},
        {0x21, 0x11, 0},  {0x21, 0x21, 35},  {0x21, 0x21, 12}, {0x21, 0x31, 215}, {0x10, 0x00, 0},
    };
    uint8_t data[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(
            data, v2(data, cases[i].version_command, cases[i].family_protocol, cases[i].length));
    }
    for (size_t at = 0; at < 12; at++) {
        size_t size = v2(data, 0x21, 0x11, 12);
        data[at] ^= 1;
        assert_refused(data, size);
    }
}

TEST("incomplete headers ask for more")
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    uint8_t data[64];
    size_t size = v2(data, 0x21, 0x11, 12);
    for (size_t part = 0; part < size; part++)
        assert_int_equal(parse(data, part, text), 0);
    static const char line[] = "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n";
    for (size_t part = 0; part < sizeof line - 1; part++)
        assert_int_equal(parse(line, part, text), 0);
}

RUN_TESTS_WITH(room_open, room_close)
