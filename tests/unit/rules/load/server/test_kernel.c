/* SPDX-License-Identifier: Apache-2.0 */
/* The section `kernel`: what it sets, and what is wrong in it. */
#include "feature/kernel/settings.h"
#include "rules_test.h"
#include "test.h"

#define STANDING "standing: {by: [client.ip/64]}\nlimits: []\n"

static const struct weir_kernel_settings *settings_of(const struct weir_rules *rules)
{
    return weir_rules_settings(rules)->kernel;
}

TEST("without the section nothing is on")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_false(settings_of(rules)->nftables.on);
    assert_int_equal(settings_of(rules)->limits_count, 0);
    weir_rules_unref(rules);
}

TEST("nftables drops on all interfaces unless they are named")
{
    struct weir_rules *rules = test_load(STANDING "kernel: {nftables: {}}\n");
    const struct weir_kernel_nftables *nftables = &settings_of(rules)->nftables;
    assert_true(nftables->on);
    assert_string_equal(nftables->table, "weir");
    assert_int_equal(nftables->hook, WEIR_KERNEL_INET);
    assert_false(nftables->penalties);
    assert_null(nftables->helper);
    weir_rules_unref(rules);
    rules = test_load(STANDING "kernel:\n  nftables:\n    table: bans_1\n    hook: netdev\n"
                               "    interfaces: [eth0, 'br-lan.5']\n    penalties: true\n"
                               "    helper: /run/weir/kernel.sock\n");
    nftables = &settings_of(rules)->nftables;
    assert_string_equal(nftables->table, "bans_1");
    assert_int_equal(nftables->hook, WEIR_KERNEL_NETDEV);
    assert_int_equal(nftables->interfaces_count, 2);
    assert_string_equal(nftables->interfaces[1], "br-lan.5");
    assert_true(nftables->penalties);
    assert_string_equal(nftables->helper, "/run/weir/kernel.sock");
    weir_rules_unref(rules);
}

TEST("limits have one count each and defaults")
{
    struct weir_rules *rules = test_load(
        "limits: []\nkernel:\n  limits:\n"
        "  - {name: syn, new_connections: 50/s burst 100, prefix4: 24, ports: [80, 443]}\n"
        "  - {name: open, open_connections: 200, prefix6: 48}\n"
        "  - {name: pps, packets: 60000/min, sources: 1000, dry_run: true}\n"
        "  - {name: ping, icmp: 5/s}\n");
    const struct weir_kernel_limit *limits = settings_of(rules)->limits;
    assert_int_equal(settings_of(rules)->limits_count, 4);
    assert_int_equal(limits[0].count, WEIR_KERNEL_COUNT_NEW);
    assert_int_equal(limits[0].most, 50);
    assert_int_equal(limits[0].per_s, 1);
    assert_int_equal(limits[0].burst, 100);
    assert_int_equal(limits[0].prefix4, 24);
    assert_int_equal(limits[0].prefix6, 64);
    assert_int_equal(limits[0].ports_count, 2);
    assert_int_equal(limits[0].ports[1], 443);
    assert_int_equal(limits[1].count, WEIR_KERNEL_COUNT_OPEN);
    assert_int_equal(limits[1].most, 200);
    assert_int_equal(limits[1].prefix6, 48);
    assert_int_equal(limits[1].sources, 65536);
    assert_int_equal(limits[2].per_s, 60);
    assert_int_equal(limits[2].sources, 1000);
    assert_true(limits[2].dry_run);
    assert_int_equal(limits[3].count, WEIR_KERNEL_COUNT_ICMP);
    weir_rules_unref(rules);
}

TEST("problems name the line and the remedy")
{
    static const struct test_problem_case bad[] = {
        {"limits: []\nkernel: {nftables: {}}\n",
         "2:10: `nftables` publishes the bans of `standing`, which is missing\n"},
        {STANDING "kernel: {nftables: {table: 'a b'}}\n",
         "3:28: `table` must begin with a letter and have 1 to 31 letters, digits and `_`\n"},
        {STANDING "kernel: {nftables: {hook: netdev}}\n",
         "3:20: `hook: netdev` needs `interfaces`, at which packets are dropped\n"},
        {STANDING "kernel: {nftables: {interfaces: [eth0]}}\n",
         "3:21: `hook: inet` is for all interfaces; remove `interfaces`, or use `hook: netdev`\n"},
        {STANDING "kernel: {nftables: {hook: netdev, interfaces: [eth0, 'a;b']}}\n",
         "3:54: `a;b` is not the name of an interface; `ip link` lists them\n"},
        {STANDING "kernel: {nftables: {helper: kernel.sock}}\n",
         "3:29: `helper` must be the absolute path of a socket, of at most 107 bytes\n"},
        {"limits: []\nkernel: {limits: 5}\n",
         "2:18: `limits` of `kernel` must be a list of at most 32 limits\n"},
        {"limits: []\nkernel: {limits: [{name: a, packets: 5/s, icmp: 5/s}]}\n",
         "2:19: a limit of the kernel needs one of `new_connections`, `open_connections`, "
         "`packets` and `icmp`\n"},
        {"limits: []\nkernel: {limits: [{name: a, packets: 5/2s}]}\n",
         "2:38: `packets` must be 1 to 1000000000 a second, minute, hour or day: `50/s burst "
         "100`\n"},
        {"limits: []\nkernel: {limits: [{name: a, packets: 0/s}]}\n",
         "2:38: `packets` must be 1 to 1000000000 a second, minute, hour or day: `50/s burst "
         "100`\n"},
        {"limits: []\nkernel: {limits: [{name: a-b, packets: 5/s}]}\n",
         "2:26: `name` of a limit of the kernel must begin with a letter and have 1 to 31 letters, "
         "digits and `_`\n"},
        {"limits: []\nkernel: {limits: [{packets: 5/s}]}\n", "2:19: `name` is missing\n"},
        {"limits: []\nkernel: {limits: [{name: a, icmp: 5/s}, {name: a, icmp: 5/s}]}\n",
         "2:48: two limits of the kernel are named a\n"},
        {"limits: []\nkernel: {limits: [{name: a, icmp: 5/s, ports: 80}]}\n",
         "2:40: ICMP has no `ports`\n"},
        {"limits: []\nkernel: {limits: [{name: a, packets: 5/s, ports: []}]}\n",
         "2:50: `ports` must have 1 to 16 entries; without it all ports count\n"},
    };
    TEST_REFUSED_ALL(bad);
}

RUN_TESTS()
