/* SPDX-License-Identifier: Apache-2.0 */
/* Bans for a layer below weir: what is published, and what never is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "feature/standing/server/bans.h"
#include "test.h"

static struct weir_cidr cidr(const char *text)
{
    struct weir_cidr network;

    assert_int_equal(weir_cidr_parse(&network, text, strlen(text)), 0);
    return network;
}

static struct weir_bans *open_bans(const char *proxy)
{
    struct weir_bans *bans = NULL;
    struct weir_cidr proxies[1];

    if (proxy)
        proxies[0] = cidr(proxy);
    assert_int_equal(weir_bans_open(&bans), 0);
    assert_int_equal(weir_bans_protect(bans, proxies, proxy != NULL), 0);
    return bans;
}

static bool publish(struct weir_bans *bans, const char *network, uint64_t until_ns, bool proven)
{
    struct weir_cidr parsed = cidr(network);

    return weir_bans_publish(bans, &parsed, until_ns, proven);
}

TEST("test bans come out in their order")
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_cidr second = cidr("2001:db8::/64");
    struct weir_ban ban;

    assert_false(weir_bans_take(bans, &ban));
    assert_true(publish(bans, "192.0.2.1", 5, true));
    assert_true(publish(bans, "2001:db8::/64", 0, true));
    assert_true(weir_bans_take(bans, &ban));
    assert_int_equal(ban.until_ns, 5);
    assert_int_equal(ban.network.bits, 32);
    assert_true(weir_bans_take(bans, &ban));
    assert_memory_equal(&ban.network, &second, sizeof second);
    assert_false(weir_bans_take(bans, &ban));
    weir_bans_close(bans);
}

TEST("test a translator's network is shared unless it is that of one address inside")
{
    static const struct {
        const char *network;
        bool shared;
    } networks[] = {{"64:ff9b::/64", true},
                    {"64:ff9b::/96", true},
                    {"64:ff9b::a00:0/104", true},
                    {"64:ff9b::a00:1/128", false},
                    {"::/0", true},
                    {"64:ff9b:1::/64", false},
                    {"2001:db8:a00:1::/64", false},
                    {"2001:db8:a00::/63", true},
                    {"100.64.255.155/32", false},
                    {"0.0.0.0/0", false}};
    const struct weir_cidr prefixes[] = {cidr("64:ff9b::/96"), cidr("2001:db8::/32")};
    struct weir_bans *bans = open_bans(NULL);

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct weir_cidr network = cidr(networks[i].network);
        weir_bans_translate(bans, NULL, 0);
        assert_false(weir_bans_is_shared(bans, &network));
        weir_bans_translate(bans, prefixes, 2);
        assert_int_equal(weir_bans_is_shared(bans, &network), networks[i].shared);
    }
    weir_bans_close(bans);
}

TEST("test what is not proven or protected is not published")
{
    struct weir_bans *bans = open_bans("10.1.0.0/16");
    struct weir_bans_counts counts;
    struct weir_ban ban;

    assert_false(publish(bans, "192.0.2.1", 5, false));
    assert_false(publish(bans, "127.0.0.1", 5, true));
    assert_false(publish(bans, "127.9.9.9", 5, true));
    assert_false(publish(bans, "::1", 5, true));
    assert_false(publish(bans, "10.1.2.3", 5, true));
    /* A network that holds a proxy would hit it, too. */
    assert_false(publish(bans, "10.0.0.0/8", 5, true));
    assert_false(publish(bans, "0.0.0.0/0", 5, true));
    assert_false(publish(bans, "::/0", 5, true));
    assert_false(weir_bans_take(bans, &ban));
    assert_true(publish(bans, "10.2.0.0/16", 5, true));
    weir_bans_counts(bans, &counts);
    assert_int_equal(counts.unproven, 1);
    assert_int_equal(counts.kept, 7);
    assert_int_equal(counts.published, 1);
    weir_bans_close(bans);
}

TEST("test nothing is published before it knows what to protect")
{
    struct weir_bans *bans = NULL;

    assert_int_equal(weir_bans_open(&bans), 0);
    assert_false(publish(bans, "192.0.2.1", 5, true));
    assert_int_equal(weir_bans_protect(bans, NULL, 0), 0);
    assert_true(publish(bans, "192.0.2.1", 5, true));
    weir_bans_close(bans);
}

/* Bans of 10.0.0.0, 10.0.0.1, …, until 1, 2, …. */
static void fill(struct weir_bans *bans)
{
    for (uint64_t i = 0; i < WEIR_BANS_MAX; i++) {
        char text[32];

        snprintf(text, sizeof text, "10.0.%u.%u", (unsigned)i / 256, (unsigned)i % 256);
        assert_true(publish(bans, text, i + 1, true));
    }
}

TEST("test a full queue drops the newest and counts it")
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_bans_counts counts;
    struct weir_ban ban;

    fill(bans);
    assert_false(publish(bans, "192.0.2.1", 9999999, true));
    weir_bans_counts(bans, &counts);
    assert_int_equal(counts.full, 1);
    for (uint64_t i = 1; i <= WEIR_BANS_MAX; i++) {
        assert_true(weir_bans_take(bans, &ban));
        assert_int_equal(ban.until_ns, i);
    }
    assert_false(weir_bans_take(bans, &ban));
    assert_true(publish(bans, "192.0.2.1", 1, true));
    weir_bans_close(bans);
}

TEST("test a full queue has the newest term of what waits in it")
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_ban ban;

    fill(bans);
    assert_true(publish(bans, "10.0.0.7", 0, true)); /* the eighth */
    assert_true(publish(bans, "10.0.0.8", 7777, true));
    for (uint64_t i = 0; i < WEIR_BANS_MAX; i++) {
        assert_true(weir_bans_take(bans, &ban));
        assert_int_equal(ban.until_ns, i == 7 ? 0 : i == 8 ? 7777 : i + 1);
    }
    assert_false(weir_bans_take(bans, &ban));
    weir_bans_close(bans);
}

static bool is_end_of_all(const struct weir_ban *ban)
{
    return ban->network.address.family == 0 && ban->until_ns == 0;
}

/* The end, and another term, of a ban that the layer has. */
TEST("test a full queue drops no end")
{
    for (uint64_t until_ns = 0; until_ns < 2; until_ns++) {
        struct weir_bans *bans = open_bans(NULL);
        struct weir_bans_counts counts;
        struct weir_ban ban;

        assert_true(publish(bans, "192.0.2.1", 100, true));
        assert_true(weir_bans_take(bans, &ban));
        fill(bans);
        assert_true(publish(bans, "192.0.2.2", 0, true)); /* which the layer does not have */
        assert_true(publish(bans, "192.0.2.1", until_ns, true));
        weir_bans_counts(bans, &counts);
        assert_int_equal(counts.full, 1);
        assert_true(publish(bans, "203.0.113.3", 5, true)); /* there is room again */
        assert_true(weir_bans_take(bans, &ban));
        assert_true(is_end_of_all(&ban));
        for (uint64_t i = 1 - until_ns; i < 2; i++) {
            assert_true(weir_bans_take(bans, &ban));
            assert_int_equal(ban.until_ns, i == 0 ? until_ns : 5);
        }
        assert_false(weir_bans_take(bans, &ban));
        weir_bans_close(bans);
    }
}

TEST("test a reset ends all")
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_ban ban;

    assert_true(publish(bans, "192.0.2.1", 100, true));
    weir_bans_reset(bans);
    assert_true(publish(bans, "203.0.113.2", 100, true));
    assert_true(weir_bans_take(bans, &ban));
    assert_true(is_end_of_all(&ban));
    assert_true(weir_bans_take(bans, &ban));
    assert_int_equal(ban.network.address.bytes[3], 2);
    assert_false(weir_bans_take(bans, &ban));
    weir_bans_close(bans);
}

/* A reload may have made a proxy of it. */
TEST("test the end of a ban of a protected network is published")
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_cidr proxy = cidr("192.0.2.1");
    struct weir_ban ban;

    assert_true(publish(bans, "192.0.2.1", 100, true));
    assert_int_equal(weir_bans_protect(bans, &proxy, 1), 0);
    assert_false(publish(bans, "192.0.2.1", 200, true));
    assert_true(publish(bans, "192.0.2.1", 0, true));
    assert_true(weir_bans_take(bans, &ban) && weir_bans_take(bans, &ban));
    assert_int_equal(ban.until_ns, 0);
    weir_bans_close(bans);
}

RUN_TESTS()
