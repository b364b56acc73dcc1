/* SPDX-License-Identifier: Apache-2.0 */
/* wire/tls/client_hello: what a hello says, and its JA4. The fingerprint of Chrome is the example
 * of the specification. */
#include "test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tls/client_hello.h"

/* A hello that is being written. */
struct message {
    uint8_t bytes[16384];
    size_t size;
};

static void put(struct message *message, size_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;)
        message->bytes[message->size++] = (uint8_t)(value >> 8 * i);
}

static void put_list(struct message *message, const uint16_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(message, values[i], 2);
}

/* A place for a size in two bytes, which is known later. */
static size_t begin(struct message *message)
{
    put(message, 0, 2);
    return message->size;
}

static void end(struct message *message, size_t from)
{
    size_t size = message->size - from;
    message->bytes[from - 2] = (uint8_t)(size >> 8);
    message->bytes[from - 1] = (uint8_t)size;
}

static void put_head(struct message *message, uint16_t version, const uint16_t *ciphers,
                     size_t count)
{
    message->size = 0;
    put(message, version, 2);
    for (int i = 0; i < 32; i++)
        put(message, (size_t)i, 1);
    put(message, 0, 1);
    put(message, 2 * count, 2);
    put_list(message, ciphers, count);
    put(message, 0x0100, 2); /* one way to compress: none */
}

static void put_extension(struct message *message, uint16_t type, const void *data, size_t size)
{
    put(message, type, 2);
    put(message, size, 2);
    memcpy(message->bytes + message->size, data, size);
    message->size += size;
}

static const uint16_t chrome_ciphers[] = {0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f,
                                          0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
                                          0x009c, 0x009d, 0x002f, 0x0035};
static const uint8_t chrome_signatures[] = {0, 18, 0xfa, 0xfa, 4, 3, 8, 4, 4, 1,
                                            5, 3,  8,    5,    5, 1, 8, 6, 6, 1};
static const uint8_t h2[] = {0, 12, 2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/* The example of the specification, with GREASE wherever Chrome has it. */
static void put_chrome(struct message *message)
{
    static const uint8_t versions[] = {6, 0x7a, 0x7a, 3, 4, 3, 3};
    static const uint16_t empty[] = {0x4a4a, 0x001b, 0x0033, 0x4469, 0x0017, 0x002d, 0x000b,
                                     0x0005, 0x0023, 0x0012, 0xff01, 0x000a, 0x0015, 0x8a8a};
    put_head(message, 0x0303, chrome_ciphers, sizeof chrome_ciphers / 2);
    size_t from = begin(message);
    put_extension(message, 0, "\0\6\0\0\3a.b", 8);
    for (size_t i = 0; i < sizeof empty / 2; i++)
        put_extension(message, empty[i], "", 0);
    put_extension(message, 13, chrome_signatures, sizeof chrome_signatures);
    put_extension(message, 16, h2, sizeof h2);
    put_extension(message, 43, versions, sizeof versions);
    end(message, from);
}

static void expect(const struct message *message, const char *wanted)
{
    struct weir_client_hello hello;
    char ja4[WEIR_JA4_SIZE + 1];
    assert_int_equal(weir_client_hello_parse(&hello, message->bytes, message->size), 0);
    weir_client_hello_ja4(&hello, ja4);
    assert_string_equal(ja4, wanted);
}

TEST("the example of the specification has its fingerprint")
{
    struct message message;
    put_chrome(&message);
    expect(&message, "t13d1516h2_8daaf6152771_e5627efa2ab1");
}

TEST("a client of old has a version and ciphers alone")
{
    static const uint16_t one[] = {0x0035};
    struct message message;
    put_head(&message, 0x0301, one, 1);
    expect(&message, "t10i010000_692296a295db_000000000000");
    put_head(&message, 0x0300, NULL, 0);
    expect(&message, "ts3i000000_000000000000_000000000000");
    put_head(&message, 0x0309, NULL, 0);
    expect(&message, "t00i000000_000000000000_000000000000");
}

TEST("the alpn is shown by its first and last character or digits")
{
    static const struct {
        const char *alpn;
        size_t size;
        char shown[3];
    } cases[] = {{"h2", 2, "h2"},
                 {"http/1.1", 8, "h1"},
                 {"q", 1, "qq"},
                 {"\xab", 1, "ab"},
                 {"\xab\xcd", 2, "ad"},
                 {"0\xab", 2, "3b"},
                 {"01\xab\xcd", 4, "3d"},
                 {"0\xab\xcd"
                  "1",
                  4, "01"},
                 {"\x1a\x1a", 2, "00"},
                 {"", 0, "00"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct message message;
        uint8_t data[16] = {0, (uint8_t)(cases[i].size + 1), (uint8_t)cases[i].size};
        memcpy(data + 3, cases[i].alpn, cases[i].size);
        put_head(&message, 0x0303, NULL, 0);
        size_t from = begin(&message);
        put_extension(&message, 16, data, cases[i].size + 3);
        end(&message, from);
        struct weir_client_hello hello;
        char ja4[WEIR_JA4_SIZE + 1];
        assert_int_equal(weir_client_hello_parse(&hello, message.bytes, message.size), 0);
        weir_client_hello_ja4(&hello, ja4);
        assert_memory_equal(ja4, "t12i0001", 8);
        assert_memory_equal(ja4 + 8, cases[i].shown, 2);
    }
}

TEST("order and grease of a client make no other fingerprint")
{
    struct message message;
    uint16_t ciphers[16];
    put_chrome(&message);
    memcpy(ciphers, chrome_ciphers, sizeof ciphers);
    uint16_t first = ciphers[1];
    ciphers[0] = 0xeaea;
    ciphers[1] = ciphers[15];
    ciphers[15] = first;
    for (size_t i = 0; i < 16; i++) {
        message.bytes[37 + 2 * i] = (uint8_t)(ciphers[i] >> 8);
        message.bytes[38 + 2 * i] = (uint8_t)ciphers[i];
    }
    expect(&message, "t13d1516h2_8daaf6152771_e5627efa2ab1");
}

TEST("a hello that ends early or late is refused")
{
    struct message message;
    struct weir_client_hello hello;
    put_chrome(&message);
    size_t without_extensions = 2 + 32 + 1 + 2 + sizeof chrome_ciphers + 2;
    for (size_t size = 0; size < message.size; size++) {
        uint8_t *cut = malloc(size > 0 ? size : 1); /* so that a byte behind it is found */
        assert_non_null(cut);
        memcpy(cut, message.bytes, size);
        int err = weir_client_hello_parse(&hello, cut, size);
        assert_int_equal(err, size == without_extensions ? 0 : WEIR_ERR_SYNTAX);
        free(cut);
    }
    message.bytes[message.size] = 0;
    assert_int_equal(weir_client_hello_parse(&hello, message.bytes, message.size + 1),
                     WEIR_ERR_SYNTAX);
}

TEST("more values than clients have are too many to sort")
{
    struct message message;
    struct weir_client_hello hello;
    uint16_t ciphers[WEIR_HELLO_VALUES_MAX + 1];
    for (size_t i = 0; i <= WEIR_HELLO_VALUES_MAX; i++)
        ciphers[i] = (uint16_t)(0xffff - i);
    put_head(&message, 0x0303, ciphers, WEIR_HELLO_VALUES_MAX);
    assert_int_equal(weir_client_hello_parse(&hello, message.bytes, message.size), 0);
    assert_int_equal(hello.ciphers.count, WEIR_HELLO_VALUES_MAX);
    char ja4[WEIR_JA4_SIZE + 1];
    weir_client_hello_ja4(&hello, ja4);
    assert_memory_equal(ja4, "t12i990000_", 11);
    put_head(&message, 0x0303, ciphers, WEIR_HELLO_VALUES_MAX + 1);
    assert_int_equal(weir_client_hello_parse(&hello, message.bytes, message.size),
                     WEIR_ERR_TOO_LARGE);
}

RUN_TESTS()
