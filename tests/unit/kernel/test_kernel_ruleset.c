/* SPDX-License-Identifier: Apache-2.0 */
/* The text for nft; tests/integration/kernel/test_weir_nft.py gives it to nft. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/kernel/ruleset.h"
#include "test.h"

static char *write_text(const struct weir_kernel_limit *limits, uint32_t count,
                        const struct weir_cidr *proxies, size_t proxies_count)
{
    const struct weir_kernel_settings settings = {.limits = limits, .limits_count = count};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    weir_kernel_ruleset_write(out, &settings, proxies, proxies_count);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void expect(const struct weir_kernel_limit *limit, const char *part)
{
    char *text = write_text(limit, 1, NULL, 0);

    if (!strstr(text, part))
        fail_msg("%s lacks %s", text, part);
    free(text);
}

TEST("each limit is one rule a family")
{
    struct weir_kernel_limit limit = {.name = "a",
                                      .count = WEIR_KERNEL_COUNT_NEW,
                                      .prefix4 = 24,
                                      .prefix6 = 64,
                                      .most = 50,
                                      .per_s = 1,
                                      .burst = 100,
                                      .sources = 1000,
                                      .ports = {80, 443},
                                      .ports_count = 2};

    expect(&limit, "meta nfproto ipv4 tcp flags & (fin | syn | rst | ack) == syn tcp dport { 80, "
                   "443 } update @a_4 { ip saddr & 255.255.255.0 limit rate over 50/second burst "
                   "100 packets } counter name a_over drop\n");
    expect(&limit, "update @a_6 { ip6 saddr & ffff:ffff:ffff:ffff:: limit rate over 50/second");
    limit.dry_run = true;
    expect(&limit, "counter name a_over\n");
    limit.count = WEIR_KERNEL_COUNT_OPEN;
    expect(&limit, "add @a_4 { ip saddr & 255.255.255.0 ct count over 50 }");
    limit.count = WEIR_KERNEL_COUNT_PACKETS;
    limit.prefix4 = 32;
    expect(&limit, "th dport { 80, 443 } update @a_4 { ip saddr . th dport limit rate");
}

TEST("a source is forgotten when its burst is back")
{
    struct weir_kernel_limit limit = {
        .name = "a", .prefix4 = 32, .prefix6 = 64, .most = 10, .per_s = 60, .burst = 100};

    expect(&limit, "timeout 601s;"); /* 100 of 10 a minute */
    limit.per_s = 1;
    expect(&limit, "timeout 60s;");
    limit.burst = 0; /* one unit's packets */
    expect(&limit, "burst 10 packets");
}

TEST("proxies pass before all limits")
{
    const struct weir_cidr proxies[] = {{{.family = 4, .bytes = {127}}, 8},
                                        {{.family = 6, .bytes = {[15] = 1}}, 128},
                                        {{.family = 4, .bytes = {10, 0, 0, 1}}, 32}};
    char *text = write_text(NULL, 0, proxies, 3);

    assert_non_null(strstr(text, "\t\tip saddr { 127.0.0.0/8, 10.0.0.1/32 } accept\n"
                                 "\t\tip6 saddr { ::1/128 } accept\n"));
    assert_non_null(strstr(text, "add table inet weir_limits\ndelete table inet weir_limits\n"
                                 "table inet weir_limits {\n"));
    free(text);
}

RUN_TESTS()
