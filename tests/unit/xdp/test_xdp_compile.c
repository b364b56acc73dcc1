/* SPDX-License-Identifier: Apache-2.0 */
/* From the section to the filter's constants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "feature/xdp/compile.h"
#include "test.h"

#define S UINT64_C(1000000000)

static const uint64_t secret[2] = {1, 2}, other_secret[2] = {3, 4};

static struct weir_xdp_limit limit_of(const char *name, uint64_t rate)
{
    struct weir_limit_spec spec = {.algorithm = WEIR_GCRA, .rate = rate, .window_ns = S};
    struct weir_xdp_limit limit = {.name = name, .bits4 = 32, .bits6 = 64};

    assert_int_equal(weir_limit_init(&limit.limit, &spec, NULL), 0);
    return limit;
}

static struct weir_xdp_settings settings_of(const struct weir_xdp_limit *limits, uint32_t count)
{
    return (struct weir_xdp_settings){
        .limits = limits, .limits_count = count, .states = 1024, .sample = 64, .percent = 100};
}

static struct weir_cidr cidr_of(const char *text)
{
    struct weir_cidr cidr;

    assert_int_equal(weir_cidr_parse(&cidr, text, strlen(text)), 0);
    return cidr;
}

TEST("settings become constants")
{
    struct weir_xdp_limit limit = limit_of("packets", 10);
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct xdp_filter filter;

    settings.percent = 5;
    weir_xdp_compile(&filter, &settings, secret, NULL);
    assert_int_equal(filter.sets_mask, 255);
    assert_int_equal(filter.sample_last, (1 << 26) - 1);
    assert_int_equal(filter.only, 0);
    assert_false(filter.remainders);
    assert_int_equal(filter.share, 500);
    assert_false(filter.lists || filter.transport || filter.drop_fragments || filter.dry_run);
    assert_memory_equal(filter.secret, secret, sizeof secret);
    assert_string_equal(filter.limits[0].name, "packets");
    assert_int_equal(filter.limits[0].slack.ns, S - S / 10);
    assert_false(filter.limits[1].used);
}

TEST("prefixes become masks in network order")
{
    static const uint8_t mask4[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf8, 0};
    static const uint8_t mask6[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80};
    struct weir_xdp_limit limit = limit_of("packets", 10);
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct xdp_filter filter;

    limit.bits4 = 21;
    limit.bits6 = 49;
    weir_xdp_compile(&filter, &settings, secret, NULL);
    assert_memory_equal(filter.limits[0].mask[0], mask4, 16);
    assert_memory_equal(filter.limits[0].mask[1], mask6, 16);
}

TEST("only what looks behind the ip header has it read")
{
    struct weir_xdp_limit limits[4];
    struct xdp_filter filter;

    for (int i = 0; i < 4; i++)
        limits[i] = limit_of("a", 10);
    limits[1].protocol = WEIR_XDP_ICMP;
    limits[2].syn = true;
    limits[3].ports_count = 1;
    limits[3].ports[0] = (struct weir_xdp_ports){53, 53};
    for (int i = 0; i < 4; i++) {
        struct weir_xdp_settings settings = settings_of(&limits[i], 1);

        weir_xdp_compile(&filter, &settings, secret, NULL);
        assert_int_equal(filter.transport, i > 0);
    }
}

TEST("an update keeps the secret and the places of unchanged limits")
{
    struct weir_xdp_limit first[3] = {limit_of("a", 1), limit_of("b", 2), limit_of("c", 3)};
    struct weir_xdp_limit then[4] = {limit_of("d", 4), limit_of("c", 3), limit_of("b", 5),
                                     limit_of("a", 1)};
    struct weir_xdp_settings settings = settings_of(first, 3);
    struct xdp_filter before, after;

    weir_xdp_compile(&before, &settings, secret, NULL);
    settings = settings_of(then, 4);
    weir_xdp_compile(&after, &settings, other_secret, &before);
    assert_memory_equal(after.secret, secret, sizeof secret);
    assert_string_equal(after.limits[0].name, "a");
    assert_string_equal(after.limits[2].name, "c");
    assert_true(after.limits[0].id == before.limits[0].id);
    assert_true(after.limits[2].id == before.limits[2].id);
    /* b has other numbers: another id, so that it starts fresh. */
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(after.limits[weir_xdp_slot(&after, &settings, i)].name, then[i].name);
    for (int slot = 0; slot < XDP_LIMITS_MAX; slot++)
        assert_true(after.limits[slot].id != before.limits[1].id);
}

TEST("what limits count makes them different")
{
    struct weir_xdp_limit limits[8];
    struct xdp_filter filter[8];

    for (int i = 0; i < 8; i++)
        limits[i] = limit_of("a", 10);
    limits[1].bits4 = 24;
    limits[2].bits6 = 48;
    limits[3].bytes = true;
    limits[4].syn = true;
    limits[5].protocol = WEIR_XDP_UDP;
    limits[6].ports_count = 1;
    limits[6].ports[0] = (struct weir_xdp_ports){53, 53};
    limits[7].name = "b";
    for (int i = 0; i < 8; i++) {
        struct weir_xdp_settings settings = settings_of(&limits[i], 1);

        weir_xdp_compile(&filter[i], &settings, secret, NULL);
        for (int j = 0; j < i; j++)
            assert_true(filter[i].limits[0].id != filter[j].limits[0].id);
    }
    limits[0].dry_run = true;
    struct weir_xdp_settings settings = settings_of(&limits[0], 1);

    weir_xdp_compile(&filter[1], &settings, secret, NULL);
    assert_true(filter[1].limits[0].id == filter[0].limits[0].id);
}

TEST("a ban within an allowed network is void")
{
    const struct weir_cidr allow[] = {cidr_of("10.1.0.0/16"), cidr_of("2001:db8::/32")};
    const struct weir_cidr ban[] = {cidr_of("10.1.2.0/24"),   cidr_of("10.1.0.0/16"),
                                    cidr_of("10.0.0.0/8"),    cidr_of("2001:db8:1::1"),
                                    cidr_of("2001:db9::/32"), cidr_of("::/0")};
    static const bool expected[] = {true, true, false, true, false, false};
    const struct weir_xdp_settings settings = {
        .allow = allow, .allow_count = 2, .ban = ban, .ban_count = 6};

    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(weir_xdp_ban_is_void(&settings, i), expected[i]);
}

TEST("the key of an ipv4 network is that of its mapped addresses")
{
    static const uint8_t expected[16] = {[10] = 0xff, 0xff, 192, 0, 2, 0};
    struct weir_cidr cidr = cidr_of("192.0.2.0/24");
    struct xdp_list_key key;

    weir_xdp_list_key(&key, &cidr);
    assert_int_equal(key.bits, 120);
    assert_memory_equal(key.address, expected, 16);
    cidr = cidr_of("2001:db8::/32");
    weir_xdp_list_key(&key, &cidr);
    assert_int_equal(key.bits, 32);
}

RUN_TESTS()
