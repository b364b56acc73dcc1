/* SPDX-License-Identifier: Apache-2.0 */
/* core/address: text to bits and back, prefixes, CIDR membership. */
#include "../../wire/unit_wire.h"
#include "test.h"

#include <arpa/inet.h>

#include "core/text/address.h"

static int parse(struct weir_address *address, const char *text)
{
    return weir_address_parse(address, text, strlen(text));
}

static void assert_canonical(const char *text, const char *expected)
{
    struct weir_address address;
    char out[WEIR_ADDRESS_TEXT_MAX];
    assert_int_equal(parse(&address, text), 0);
    size_t size = weir_address_format(&address, out);
    assert_string_equal(out, expected);
    assert_int_equal(size, strlen(expected));
}

TEST("every way to write an address gives its canonical text")
{
    static const char *const cases[][2] = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"192.0.2.10", "192.0.2.10"},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"0:0:0:0:0:0:0:0", "::"},
        {"2001:0DB8:0000:0000:0000:0000:0002:0001", "2001:db8::2:1"},
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
        {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
        {"2001:db8::1.2.3.4", "2001:db8::102:304"},
        {"::1.2.3.4", "::102:304"},
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
        {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
        {"fe80::", "fe80::"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_canonical(cases[i][0], cases[i][1]);
}

TEST("a mapped address folds to ipv4 however it is written")
{
    assert_canonical("::ffff:1.2.3.4", "1.2.3.4");
    assert_canonical("::FFFF:102:304", "1.2.3.4");
    assert_canonical("0:0:0:0:0:ffff:0102:0304", "1.2.3.4");
    assert_canonical("0:0::ffff:1.2.3.4", "1.2.3.4");
    assert_canonical("::fffe:1.2.3.4", "::fffe:102:304");
    assert_canonical("::1:ffff:1.2.3.4", "::1:ffff:102:304");
}

TEST("an unfolded mapped address is written with dots")
{
    struct weir_address address = {.family = 6, .bytes = {[10] = 0xff, 0xff, 10, 0, 0, 1}};
    char out[WEIR_ADDRESS_TEXT_MAX];
    weir_address_format(&address, out);
    assert_string_equal(out, "::ffff:10.0.0.1");
    weir_address_fold(&address);
    weir_address_format(&address, out);
    assert_string_equal(out, "10.0.0.1");
}

TEST("the zone of an address is cut off")
{
    struct weir_cidr cidr;
    char out[WEIR_ADDRESS_TEXT_MAX];
    assert_canonical("fe80::1%eth0", "fe80::1");
    assert_canonical("fe80::1%1", "fe80::1");
    assert_canonical("fe80::1%25eth0", "fe80::1");
    assert_canonical("fe80::1%eth0.100:1", "fe80::1");
    assert_canonical("2001:db8::1%%", "2001:db8::1");
    assert_canonical("::ffff:192.0.2.1%eth0", "192.0.2.1");
    assert_canonical("2001:0db8:0000:0000:0000:0000:0002:0001%"
                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                     "2001:db8::2:1");
    assert_int_equal(weir_cidr_parse(&cidr, "fe80::%eth0/64", 14), 0);
    assert_int_equal(cidr.bits, 64);
    weir_address_format(&cidr.address, out);
    assert_string_equal(out, "fe80::");
    assert_int_equal(weir_cidr_parse(&cidr, "fe80::/64%eth0", 14), WEIR_ERR_SYNTAX);
}

TEST("a text that ends in a number is no name of a host")
{
    static const char *const numbers[] = {"1", "010.0.0.1", "1.2.3.400", "host.1", ".7"};
    static const char *const names[] = {"", "host", "1a", "a1", "1.2.3.4.", "host.x1", "-"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(weir_address_ends_in_number(numbers[i], strlen(numbers[i])));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(weir_address_ends_in_number(names[i], strlen(names[i])));
}

TEST("what is no address is refused and changes nothing")
{
    static const char *const cases[] = {
        "",
        " ",
        "1",
        "1.2.3",
        "1.2.3.4.",
        ".1.2.3.4",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.00",
        "1.2.3.0x1",
        "1..2.3",
        "1.2.3.4 ",
        " 1.2.3.4",
        "1.2.3.-4",
        "1.2.3.+4",
        "99999999999.2.3.4",
        ":",
        ":::",
        "1",
        "1:",
        ":1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        "1:2:3:4::5:6:7:8",
        "::1::",
        "1::2::3",
        "12345::",
        "g::",
        "::g",
        "::1%",
        "%eth0",
        "1.2.3.4%eth0",
        "fe80::1%eth0/64",
        "fe80::1% eth0",
        "fe80::1%eth\t0",
        "fe80::1%\xc3\xa4",
        "fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "fe80::g%eth0",
        "010.0.0.1",
        "10.0.0.010",
        "[::1]",
        "[::1]:80",
        "1.2.3.4:80",
        "::1.2.3",
        "::1.2.3.4.5",
        "::1.2.3.256",
        "1:2:3:4:5:6:7:1.2.3.4",
        "::1.2.3.4:5",
        "1.2.3.4::",
        "::ffff:1.2.3.4/96",
        "localhost",
        "unknown",
        "_hidden",
        "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_address address = {.family = 4, .bytes = {9, 9, 9, 9}};
        if (parse(&address, cases[i]) != WEIR_ERR_SYNTAX)
            fail_msg("accepted \"%s\"", cases[i]);
        assert_int_equal(address.bytes[0], 9);
    }
    struct weir_address address;
    assert_int_equal(weir_address_parse(&address, "1.2.3.4\0", 8), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_address_parse(&address, "::1\0", 4), WEIR_ERR_SYNTAX);
}

/* Addresses with many zero groups, so that runs of them are common. */
static void random_address(uint64_t *random, struct weir_address *address)
{
    memset(address, 0, sizeof *address);
    address->family = draw_below(random, 4) == 0 ? 4 : 6;
    for (int i = 0; i < (address->family == 4 ? 4 : 16); i++)
        address->bytes[i] = draw_below(random, 3) == 0 ? (uint8_t)draw_next(random) : 0;
}

TEST("random addresses read back as libc and weir wrote them")
{
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        struct weir_address address, back;
        char text[WEIR_ADDRESS_TEXT_MAX], theirs[INET6_ADDRSTRLEN];
        random_address(&random, &address);
        weir_address_fold(&address);
        size_t size = weir_address_format(&address, text);
        assert_int_equal(weir_address_parse(&back, text, size), 0);
        assert_memory_equal(&back, &address, sizeof back);
        inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.bytes, theirs, sizeof theirs);
        assert_int_equal(parse(&back, theirs), 0);
        assert_memory_equal(&back, &address, sizeof back);
    }
}

/* What libc says of the text without its zone, which is a zone only of an IPv6 address. */
static bool libc_accepts(const char *text)
{
    char plain[32];
    uint8_t theirs[16];
    size_t size = strcspn(text, "%");
    memcpy(plain, text, size);
    plain[size] = '\0';
    bool v6 = strchr(plain, ':'), zoned = text[size] != '\0';
    if (zoned && (!v6 || text[size + 1] == '\0'))
        return false;
    return inet_pton(v6 ? AF_INET6 : AF_INET, plain, theirs) == 1;
}

TEST("random texts are accepted exactly when inet pton accepts them")
{
    static const char alphabet[] = "0123456789abf::::..%";
    uint64_t random = 2;
    unsigned accepted = 0;
    for (int i = 0; i < 400000; i++) {
        struct weir_address address;
        char text[24];
        size_t size = draw_below(&random, sizeof text);
        for (size_t j = 0; j < size; j++)
            text[j] = alphabet[draw_below(&random, sizeof alphabet - 1)];
        text[size] = '\0';
        bool ours = weir_address_parse(&address, text, size) == 0;
        bool libc = libc_accepts(text);
        if (ours != libc)
            fail_msg("\"%s\": weir %d, libc %d", text, ours, libc);
        accepted += ours;
    }
    assert_true(accepted > 100);
}

static bool contains(const char *cidr_text, const char *address_text)
{
    struct weir_cidr cidr;
    struct weir_address address;
    assert_int_equal(weir_cidr_parse(&cidr, cidr_text, strlen(cidr_text)), 0);
    assert_int_equal(parse(&address, address_text), 0);
    return weir_cidr_contains(&cidr, &address);
}

TEST("a cidr contains its first and last address and not their neighbours")
{
    assert_true(contains("10.0.0.0/8", "10.0.0.0"));
    assert_true(contains("10.0.0.0/8", "10.255.255.255"));
    assert_false(contains("10.0.0.0/8", "9.255.255.255"));
    assert_false(contains("10.0.0.0/8", "11.0.0.0"));
    assert_true(contains("10.1.2.4/30", "10.1.2.7"));
    assert_false(contains("10.1.2.4/30", "10.1.2.8"));
    assert_false(contains("10.1.2.4/30", "10.1.2.3"));
    assert_true(contains("10.1.2.4", "10.1.2.4"));
    assert_false(contains("10.1.2.4/32", "10.1.2.5"));
    assert_true(contains("0.0.0.0/0", "255.1.2.3"));
    assert_true(contains("::/0", "ffff::"));
    assert_true(contains("2001:db8:0:fff0::/60", "2001:db8:0:ffff:ffff::"));
    assert_false(contains("2001:db8:0:fff0::/60", "2001:db8:1:0::"));
    assert_true(contains("::1/128", "::1"));
    assert_false(contains("::1", "::2"));
    assert_true(contains("::/1", "7fff::"));
    assert_false(contains("::/1", "8000::"));
}

TEST("families never mix but mapped prefixes fold")
{
    assert_false(contains("::/0", "1.2.3.4"));
    assert_false(contains("0.0.0.0/0", "::1"));
    assert_true(contains("::ffff:10.0.0.0/104", "10.9.8.7"));
    assert_false(contains("::ffff:10.0.0.0/104", "11.9.8.7"));
    assert_true(contains("::ffff:0:0/96", "255.255.255.255"));
    assert_true(contains("10.0.0.0/8", "::ffff:a01:203"));
    struct weir_cidr cidr;
    struct weir_address none = {0};
    assert_int_equal(weir_cidr_parse(&cidr, "0.0.0.0/0", 9), 0);
    assert_false(weir_cidr_contains(&cidr, &none));
}

TEST("a cidr with host bits or a bad length is refused")
{
    static const char *const cases[] = {
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/08",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        "10.0.0.0/8 ",
        "/8",
        "",
        "10/8",
        "::1/127",
        "::/129",
        "::/-1",
        "::/1x",
        "::/999999999999",
        "::ffff:0:0/95",
        "::ffff:10.0.0.0/102",
        "10.0.0.0/255.0.0.0",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_cidr cidr;
        if (weir_cidr_parse(&cidr, cases[i], strlen(cases[i])) != WEIR_ERR_SYNTAX)
            fail_msg("accepted \"%s\"", cases[i]);
    }
}

TEST("masking keeps exactly the first bits")
{
    for (unsigned bits = 0; bits <= 130; bits++) {
        struct weir_address address = {.family = 6};
        memset(address.bytes, 0xff, sizeof address.bytes);
        weir_address_mask(&address, (uint8_t)bits);
        for (unsigned bit = 0; bit < 128; bit++) {
            unsigned set = address.bytes[bit / 8] >> (7 - bit % 8) & 1;
            assert_int_equal(set, bit < bits);
        }
    }
}

TEST("the address of ones has as many as asked for")
{
    for (int family = 4; family <= 6; family += 2) {
        for (uint8_t bits = 0; bits <= (family == 4 ? 32 : 128); bits++) {
            struct weir_address ones;

            weir_address_ones(&ones, (uint8_t)family, bits);
            assert_int_equal(ones.family, family);
            for (int bit = 0; bit < 128; bit++)
                assert_int_equal(ones.bytes[bit / 8] >> (7 - bit % 8) & 1, bit < bits);
        }
    }
}

RUN_TESTS()
