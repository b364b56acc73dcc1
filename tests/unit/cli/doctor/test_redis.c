/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor/redis.h"
#include "test.h"

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

TEST("a healthy redis has no findings")
{
    struct redis_facts facts = healthy();
    assert_int_equal(count_of(&facts), 0);
    facts.version[0] = facts.policy[0] = '\0'; /* an account that may not run INFO */
    facts.used_bytes = facts.max_bytes = 0;
    assert_int_equal(count_of(&facts), 0);
}

TEST("a redis before 6 2 is too old")
{
    struct redis_facts facts = healthy();
    strcpy(facts.version, "6.0.16");
    assert_found(&facts, "redis_version");
    strcpy(facts.version, "6.2.0");
    assert_int_equal(count_of(&facts), 0);
    strcpy(facts.version, "10.1.0");
    assert_int_equal(count_of(&facts), 0);
}

TEST("eviction is a fault where the memory has a bound")
{
    struct redis_facts facts = healthy();
    strcpy(facts.policy, "volatile-ttl");
    assert_found(&facts, "redis_evicts");
    facts.max_bytes = 0;
    assert_int_equal(count_of(&facts), 0);
    facts = healthy();
    facts.used_bytes = 90001;
    assert_found(&facts, "redis_memory");
}

TEST("a round trip of more than half the deadline is slow")
{
    struct redis_facts facts = healthy();
    facts.round_trip_ns = DEADLINE_NS / 2;
    assert_int_equal(count_of(&facts), 0);
    facts.round_trip_ns++;
    assert_found(&facts, "redis_latency");
}

TEST("clocks more than a second apart are a fault")
{
    struct redis_facts facts = healthy();
    facts.ahead_ns = INT64_C(1000000000);
    assert_int_equal(count_of(&facts), 0);
    facts.ahead_ns = INT64_C(1002000000);
    assert_found(&facts, "redis_clock");
    facts.ahead_ns = -facts.ahead_ns;
    assert_found(&facts, "redis_clock");
    facts.has_time = false;
    assert_int_equal(count_of(&facts), 0);
}

RUN_TESTS()
