/* SPDX-License-Identifier: Apache-2.0 */
/* core/text/nat64: IPv4 addresses within IPv6 ones. */
#include "../../wire/unit_wire.h"
#include "test.h"

#include "core/text/nat64.h"

static struct weir_cidr cidr(const char *text)
{
    struct weir_cidr parsed;
    if (weir_cidr_parse(&parsed, text, strlen(text)) < 0)
        fail_msg("%s is no network", text);
    return parsed;
}

static void assert_inside(const char *prefix_text, const char *text, const char *expected)
{
    const struct weir_cidr prefix = cidr(prefix_text);
    struct weir_address address, inside;
    char out[WEIR_ADDRESS_TEXT_MAX];
    assert_int_equal(weir_address_parse(&address, text, strlen(text)), 0);
    weir_nat64_inside(&prefix, 1, &address, &inside);
    weir_address_format(&inside, out);
    assert_string_equal(out, expected);
}

/* RFC 6052 2.4 has these for 192.0.2.33, which is not global; so here with 198.52.2.33, whose
 * octets are c6 34 02 21. */
TEST("every length has the address where the rfc says")
{
    assert_inside("2001:db8::/32", "2001:db8:c634:221::", "198.52.2.33");
    assert_inside("2001:db8:100::/40", "2001:db8:1c6:3402:21::", "198.52.2.33");
    assert_inside("2001:db8:122::/48", "2001:db8:122:c634:2:2100::", "198.52.2.33");
    assert_inside("2001:db8:122:300::/56", "2001:db8:122:3c6:34:221::", "198.52.2.33");
    assert_inside("2001:db8:122:344::/64", "2001:db8:122:344:c6:3402:2100:0", "198.52.2.33");
    assert_inside("2001:db8:122:344::/96", "2001:db8:122:344::198.52.2.33", "198.52.2.33");
    assert_inside("64:ff9b::/96", "64:ff9b::198.52.2.33", "198.52.2.33");
}

TEST("other addresses stay as they are")
{
    assert_inside("64:ff9b::/96", "64:ff9b:0:0:0:1:c634:221", "64:ff9b::1:c634:221");
    assert_inside("64:ff9b::/96", "2001:db8::1", "2001:db8::1");
    assert_inside("64:ff9b::/96", "198.52.2.33", "198.52.2.33");
    /* u, or the suffix, is not zero */
    assert_inside("2001:db8::/32", "2001:db8:c634:221:100::", "2001:db8:c634:221:100::");
    assert_inside("2001:db8::/32", "2001:db8:c634:221::1", "2001:db8:c634:221::1");
    assert_inside("2001:db8:122:344::/64", "2001:db8:122:344:c6:3402:2100:1",
                  "2001:db8:122:344:c6:3402:2100:1");
}

TEST("an address inside that is not global stays ipv6")
{
    static const char *const special[] = {
        "0.0.0.1",      "10.0.0.1",    "10.255.255.255", "100.64.0.1",   "100.127.255.255",
        "127.0.0.1",    "169.254.1.1", "172.16.0.1",     "172.31.255.1", "192.0.0.1",
        "192.0.2.1",    "192.88.99.1", "192.168.0.1",    "198.18.0.1",   "198.19.255.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1",      "240.0.0.1",    "255.255.255.255"};
    static const char *const global[] = {"1.1.1.1",    "9.255.255.255", "11.0.0.0",
                                         "100.63.0.1", "100.128.0.1",   "172.15.0.1",
                                         "172.32.0.1", "192.0.1.1",     "198.17.0.1",
                                         "198.20.0.1", "203.0.112.1",   "223.255.255.255"};
    const struct weir_cidr prefix = cidr("64:ff9b::/96");
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        struct weir_cidr network = cidr(special[i]);
        assert_false(weir_address_is_global4(&network.address));
        struct weir_cidr embedded;
        weir_nat64_embed(&prefix, &network, &embedded);
        struct weir_address inside;
        weir_nat64_inside(&prefix, 1, &embedded.address, &inside);
        assert_memory_equal(&inside, &embedded.address, sizeof inside);
    }
    for (size_t i = 0; i < sizeof global / sizeof *global; i++) {
        struct weir_cidr network = cidr(global[i]);
        assert_true(weir_address_is_global4(&network.address));
    }
    struct weir_cidr v6 = cidr("2001:db8::1");
    assert_false(weir_address_is_global4(&v6.address));
}

TEST("only prefixes of the rfc are prefixes")
{
    static const char *const good[] = {"64:ff9b::/96",        "2001:db8::/32", "2001:db8::/40",
                                       "2001:db8::/48",       "2001:db8::/56", "2001:db8::/64",
                                       "2001:db8:0:0:ff::/96"};
    static const char *const bad[] = {
        "10.0.0.0/8",     "::/0",          "2001:db8::/33",         "2001:db8::/72",
        "2001:db8::/128", "2001:d00::/24", "2001:db8:0:0:ff00::/96"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct weir_cidr network = cidr(good[i]);
        if (!weir_nat64_is_prefix(&network))
            fail_msg("%s is a prefix", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_cidr network = cidr(bad[i]);
        if (weir_nat64_is_prefix(&network))
            fail_msg("%s is no prefix", bad[i]);
    }
}

TEST("a network is embedded as all its addresses are")
{
    static const unsigned lengths[] = {32, 40, 48, 56, 64, 96};
    uint64_t random = 5;
    for (int i = 0; i < 20000; i++) {
        struct weir_cidr prefix = {.address = {6, {0x20, 1, 0xd, 0xb8}},
                                   .bits = (uint8_t)lengths[draw_below(&random, 6)]};
        struct weir_cidr network = {.address = {4, {1, (uint8_t)draw_next(&random)}},
                                    .bits = (uint8_t)draw_below(&random, 33)};
        network.address.bytes[2] = (uint8_t)draw_next(&random);
        network.address.bytes[3] = (uint8_t)draw_next(&random);
        struct weir_cidr one = network, other = {.address = {4, {1, 2, 3, 4}}, .bits = 32};
        weir_address_mask(&network.address, network.bits);
        one.bits = 32;
        for (size_t j = 1; j < 4; j++)
            other.address.bytes[j] = (uint8_t)draw_next(&random);
        struct weir_cidr embedded;
        weir_nat64_embed(&prefix, &network, &embedded);
        struct weir_cidr inside;
        weir_nat64_embed(&prefix, &one, &inside);
        struct weir_cidr elsewhere;
        weir_nat64_embed(&prefix, &other, &elsewhere);
        assert_true(weir_cidr_contains(&embedded, &inside.address));
        assert_int_equal(weir_cidr_contains(&embedded, &elsewhere.address),
                         weir_cidr_contains(&network, &other.address));
        struct weir_address back;
        weir_nat64_inside(&prefix, 1, &inside.address, &back);
        assert_memory_equal(&back, &one.address, sizeof back);
    }
}

RUN_TESTS()
