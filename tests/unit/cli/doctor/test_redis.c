/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor/redis.h"

#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (20 * MS_NS)

static struct redis_facts healthy(void)
{
    return (struct redis_facts){.version = "7.0.15",
                                .policy = "noeviction",
                                .used_bytes = 1000,
                                .max_bytes = 100000,
                                .round_trip_ns = MS_NS,
                                .has_time = true};
}

static uint32_t count_of(const struct redis_facts *facts)
{
    static struct findings findings;
    findings = (struct findings){.count = 0};
    redis_judge(&findings, facts, "store.redis", DEADLINE_NS);
    return findings.count;
}

static void assert_found(const struct redis_facts *facts, const char *name)
{
    static struct findings findings;
    findings = (struct findings){.count = 0};
    redis_judge(&findings, facts, "store.redis", DEADLINE_NS);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.list[0].name, name);
}

static void a_healthy_redis_has_no_findings(void **state)
{
    struct redis_facts facts = healthy();
    (void)state;
    assert_int_equal(count_of(&facts), 0);
    facts.version[0] = facts.policy[0] = '\0'; /* an account that may not run INFO */
    facts.used_bytes = facts.max_bytes = 0;
    assert_int_equal(count_of(&facts), 0);
}

static void a_redis_before_6_2_is_too_old(void **state)
{
    struct redis_facts facts = healthy();
    (void)state;
    strcpy(facts.version, "6.0.16");
    assert_found(&facts, "redis_version");
    strcpy(facts.version, "6.2.0");
    assert_int_equal(count_of(&facts), 0);
    strcpy(facts.version, "10.1.0");
    assert_int_equal(count_of(&facts), 0);
}

static void eviction_is_a_fault_where_the_memory_has_a_bound(void **state)
{
    struct redis_facts facts = healthy();
    (void)state;
    strcpy(facts.policy, "volatile-ttl");
    assert_found(&facts, "redis_evicts");
    facts.max_bytes = 0;
    assert_int_equal(count_of(&facts), 0);
    facts = healthy();
    facts.used_bytes = 90001;
    assert_found(&facts, "redis_memory");
}

static void a_round_trip_of_more_than_half_the_deadline_is_slow(void **state)
{
    struct redis_facts facts = healthy();
    (void)state;
    facts.round_trip_ns = DEADLINE_NS / 2;
    assert_int_equal(count_of(&facts), 0);
    facts.round_trip_ns++;
    assert_found(&facts, "redis_latency");
}

static void clocks_more_than_a_second_apart_are_a_fault(void **state)
{
    struct redis_facts facts = healthy();
    (void)state;
    facts.ahead_ns = INT64_C(1000000000);
    assert_int_equal(count_of(&facts), 0);
    facts.ahead_ns = INT64_C(1002000000);
    assert_found(&facts, "redis_clock");
    facts.ahead_ns = -facts.ahead_ns;
    assert_found(&facts, "redis_clock");
    facts.has_time = false;
    assert_int_equal(count_of(&facts), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_redis_has_no_findings),
        cmocka_unit_test(a_redis_before_6_2_is_too_old),
        cmocka_unit_test(eviction_is_a_fault_where_the_memory_has_a_bound),
        cmocka_unit_test(a_round_trip_of_more_than_half_the_deadline_is_slow),
        cmocka_unit_test(clocks_more_than_a_second_apart_are_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
