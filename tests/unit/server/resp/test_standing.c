/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECK and its like for callers whose standing is not good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "feature/standing/standing.h"
#include "redis_harness.h"
#include "test.h"

static const char rules[] = "standing: { by: [client.ip/64, user] }\n"
                            "limits:\n"
                            "  - { name: api, key: [client.ip], algorithm: fixed_window,\n"
                            "      rate: 2/h }\n";

static struct weir_standing *map;

static void hold(const char *network, uint8_t level, uint64_t until_ns)
{
    const struct weir_standing_entry entry = {.until_ns = until_ns,
                                              .level = level,
                                              .origin = WEIR_STANDING_BY_OPERATOR,
                                              .reason_size = 5,
                                              .reason = "abuse"};
    struct weir_cidr cidr;
    assert_int_equal(weir_cidr_parse(&cidr, network, strlen(network)), 0);
    assert_int_equal(weir_standing_set_network(map, &cidr, &entry), 0);
}

static int set_up(void **state)
{
    const struct weir_standing_options options = {.entries_max = 100, .secret = {3, 4}};
    struct weir_reason reason;
    if (weir_standing_create(&map, &options, &reason) < 0)
        return -1;
    struct redis_harness *harness = redis_harness_open(rules, 100);
    weir_engine_set_standing(harness->worker->engine, map);
    hold("192.0.2.1/32", WEIR_STANDING_SUSPENDED, harness->now_ns + UINT64_C(60000000000));
    hold("192.0.2.2/32", WEIR_STANDING_REVOKED, WEIR_NEVER);
    hold("192.0.2.3/32", WEIR_STANDING_THROTTLED, WEIR_NEVER);
    *state = harness;
    return 0;
}

static int tear_down(void **state)
{
    redis_harness_close(*state);
    weir_standing_close(map);
    return 0;
}

static void expect(struct redis_harness *harness, uint64_t t_ms, const char *command,
                   const char *reply)
{
    assert_string_equal(redis_harness_ask(harness, t_ms, command), reply);
}

TEST_WITH(set_up, tear_down, "the reply names the standing and its end")
{
#define REFUSED(wait) "allowed 0 denied_by standing retry_after_ms " wait " delay_ms 0 limits "
#define SUSPENDED(wait) REFUSED(wait) "standing suspended reason abuse"
    expect(*state, 0, "WEIR.CHECK client.ip 192.0.2.1", SUSPENDED("60000"));
    expect(*state, 59999, "WEIR.CHECK client.ip 192.0.2.1", SUSPENDED("1"));
    expect(*state, 60001, "WEIR.CHECK client.ip 192.0.2.2",
           REFUSED("-1") "standing revoked reason abuse");
    expect(*state, 60001, "WEIR.PEEK client.ip 192.0.2.2",
           REFUSED("-1") "standing revoked reason abuse");
    expect(*state, 60001, "WEIR.CHECK client.ip 192.0.2.1",
           "allowed 1 denied_by nil retry_after_ms 0 delay_ms 0 limits name api algorithm "
           "fixed_window allowed 1 shadow 0 limit 2 remaining 1 retry_after_ms 0 reset_after_ms "
           "2739876");
    expect(*state, 60001, "WEIR.CHECK client.ip 192.0.2.3",
           "allowed 1 denied_by nil retry_after_ms 0 delay_ms 0 limits name api algorithm "
           "fixed_window allowed 1 shadow 0 limit 2 remaining 1 retry_after_ms 0 reset_after_ms "
           "2739876 standing throttled reason abuse");
}

/* No attribute sets it, and what was charged can be given back. */
TEST_WITH(set_up, tear_down, "operations on states are not refused")
{
    expect(*state, 0, "WEIR.CHECK client.ip 192.0.2.1 standing trusted", SUSPENDED("60000"));
    expect(*state, 0, "WEIR.RESET client.ip 192.0.2.1", "0");
}

TEST_WITH(set_up, tear_down, "nothing is reserved")
{
    expect(*state, 0, "WEIR.RESERVE client.ip 192.0.2.1", SUSPENDED("60000"));
}

TEST_WITH(set_up, tear_down, "commands with limits of their own know no caller")
{
    expect(*state, 0, "CL.THROTTLE 192.0.2.1 15 30 60 1", "0 16 15 -1 2");
}

RUN_TESTS()
