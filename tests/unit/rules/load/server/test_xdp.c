/* SPDX-License-Identifier: Apache-2.0 */
/* The section `kernel.xdp`: what it sets, and what is wrong in it. */
#include "feature/xdp/settings.h"
#include "rules_test.h"
#include "test.h"

#define SECTION "limits: []\nkernel:\n  xdp:\n"

TEST("without the section there is no filter")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_settings(rules)->xdp);
    weir_rules_unref(rules);
}

TEST("an interface is enough")
{
    struct weir_rules *rules = test_load(SECTION "    interface: eth0\n");
    const struct weir_xdp_settings *xdp = weir_rules_settings(rules)->xdp;
    assert_string_equal(xdp->interface, "eth0");
    assert_int_equal(xdp->limits_count, 0);
    assert_int_equal(xdp->states, 65536);
    assert_int_equal(xdp->sample, 64);
    assert_int_equal(xdp->percent, 100);
    assert_int_equal(xdp->mode, WEIR_XDP_AUTO);
    assert_false(xdp->dry_run || xdp->drop_fragments || xdp->no_room_passes);
    weir_rules_unref(rules);
}

TEST("limits lists and modes are read")
{
    struct weir_rules *rules = test_load(
        SECTION "    interface: eth0.5\n    mode: generic\n    dry_run: true\n    share: 5%\n"
                "    states: 1024\n    sample: 1\n    fragments: drop\n    when_full: pass\n"
                "    allow: [10.0.0.0/8, '2001:db8::/32']\n    ban: 192.0.2.1\n    limits:\n"
                "      - {name: packets, packets: 100/s burst 200}\n"
                "      - {name: dns, bytes: 1000/s, prefix4: 24, prefix6: 48, protocol: udp,\n"
                "         ports: [53, 8000-8100], dry_run: true}\n"
                "      - {name: syn, new_connections: 10/s}\n");
    const struct weir_xdp_settings *xdp = weir_rules_settings(rules)->xdp;
    const struct weir_xdp_limit *limit = xdp->limits;
    assert_int_equal(xdp->mode, WEIR_XDP_GENERIC);
    assert_true(xdp->dry_run && xdp->drop_fragments && xdp->no_room_passes);
    assert_int_equal(xdp->percent, 5);
    assert_int_equal(xdp->states, 1024);
    assert_int_equal(xdp->allow_count, 2);
    assert_int_equal(xdp->ban_count, 1);
    assert_int_equal(xdp->ban[0].bits, 32);
    assert_int_equal(xdp->limits_count, 3);
    assert_string_equal(limit[0].name, "packets");
    assert_int_equal(limit[0].limit.spec.rate, 100);
    assert_int_equal(limit[0].limit.capacity, 200);
    assert_int_equal(limit[0].bits4, 32);
    assert_int_equal(limit[0].bits6, 64);
    assert_false(limit[0].bytes || limit[0].syn || limit[0].dry_run);
    assert_true(limit[1].bytes && limit[1].dry_run);
    assert_int_equal(limit[1].bits4, 24);
    assert_int_equal(limit[1].bits6, 48);
    assert_int_equal(limit[1].protocol, WEIR_XDP_UDP);
    assert_int_equal(limit[1].ports_count, 2);
    assert_int_equal(limit[1].ports[0].last, 53);
    assert_int_equal(limit[1].ports[1].first, 8000);
    assert_int_equal(limit[1].ports[1].last, 8100);
    assert_true(limit[2].syn);
    weir_rules_unref(rules);
}

TEST("problems are reported where they are")
{
    static const struct {
        const char *section, *wanted;
    } cases[] = {
        {"    mode: native\n", "`xdp` needs `interface`"},
        {"    interface: a/b\n", "`interface` must be an interface's name of 1 to 15 letters"},
        {"    interface: 'a\"b'\n", "1 to 15 letters"},
        {"    interface: ..\n", "1 to 15 letters"},
        {"    interface: a234567890123456\n", "1 to 15 letters"},
        {"    interface: a\n    states: 1000\n", "`states`"},
        {"    interface: a\n    states: 1025\n", "`states` must be a power of two"},
        {"    interface: a\n    ban: [10.0.0.1/8]\n", "is no address or network"},
        {"    interface: a\n    limits: [{packets: 1/s}]\n", "`name` is missing"},
        {"    interface: a\n    limits: [{name: a}]\n", "needs `packets`, `bytes`"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, bytes: 1/s}]\n",
         "has either `packets` or `bytes`"},
        {"    interface: a\n    limits: [{name: a, packets: unlimited}]\n", "must be a rate"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s}, {name: a, packets: 2/s}]\n",
         "`xdp` has two limits `a`"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, prefix4: 0}]\n", "`prefix4`"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, ports: [0]}]\n", "1 to 65535"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, ports: [9-8]}]\n", "1 to 65535"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, ports: [1, 2, 3, 4, 5]}]\n",
         "a list of 1 to 4 ports"},
        {"    interface: a\n    limits: [{name: a, new_connections: 1/s, protocol: udp}]\n",
         "remove `protocol`"},
        {"    interface: a\n    limits: [{name: a, packets: 1/s, protocol: icmp, ports: [1]}]\n",
         "ICMP has no `ports`"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static char problems[TEST_PROBLEMS_MAX];
        char text[512];
        snprintf(text, sizeof(text), SECTION "%s", cases[i].section);
        assert_null(test_parse(text, problems));
        if (!strstr(problems, cases[i].wanted) || strchr(problems, '\n')[1] != '\0')
            fail_msg("%s instead of %s", problems, cases[i].wanted);
    }
}

RUN_TESTS()
