/* SPDX-License-Identifier: Apache-2.0 */
/* Bans for a layer below weir: what is published, and what never is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "server/standing/bans.h"

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

static void test_bans_come_out_in_their_order(void **state)
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

static void test_what_is_not_proven_or_protected_is_not_published(void **state)
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

static void test_nothing_is_published_before_it_knows_what_to_protect(void **state)
{
    struct weir_bans *bans = NULL;

    assert_int_equal(weir_bans_open(&bans), 0);
    assert_false(publish(bans, "192.0.2.1", 5, true));
    assert_int_equal(weir_bans_protect(bans, NULL, 0), 0);
    assert_true(publish(bans, "192.0.2.1", 5, true));
    weir_bans_close(bans);
}

static void test_a_full_queue_drops_the_newest_and_counts_it(void **state)
{
    struct weir_bans *bans = open_bans(NULL);
    struct weir_bans_counts counts;
    struct weir_ban ban;

    for (uint64_t i = 1; i <= WEIR_BANS_MAX; i++)
        assert_true(publish(bans, "192.0.2.1", i, true));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bans_come_out_in_their_order),
        cmocka_unit_test(test_what_is_not_proven_or_protected_is_not_published),
        cmocka_unit_test(test_nothing_is_published_before_it_knows_what_to_protect),
        cmocka_unit_test(test_a_full_queue_drops_the_newest_and_counts_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
