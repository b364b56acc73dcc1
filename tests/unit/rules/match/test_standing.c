/* SPDX-License-Identifier: Apache-2.0 */
/* The standing of a request's caller: which values count, what beats what, which limits it meets.
 */
#include <unistd.h>

#include "core/bytes.h"
#include "fake_directory.h"
#include "feature/standing/rules/match.h"
#include "feature/standing/settings.h"
#include "keys_test.h"
#include "rules/match/key_values.h"
#include "standing_map.h"
#include "test.h"

#define NOW UINT64_C(1700000000000000000)
#define SECOND UINT64_C(1000000000)

static struct weir_caller_standing found;
static struct test_request *asked;

static struct weir_standing_entry entry_of(uint8_t level, uint8_t origin, uint64_t until_ns)
{
    struct weir_standing_entry entry = {.since_ns = NOW - SECOND,
                                        .until_ns = until_ns,
                                        .level = level,
                                        .origin = origin,
                                        .reason_size = 5,
                                        .reason = "abuse"};
    return entry;
}

static void hold(const char *kind, const char *value, uint8_t level, uint8_t origin,
                 uint64_t until_ns)
{
    struct weir_standing_entry entry = entry_of(level, origin, until_ns);
    uint64_t id[2];
    weir_standing_id(map, weir_bytes_of(kind), weir_bytes_of(value), id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
}

static void hold_network(const char *network, uint8_t level, uint8_t origin, uint64_t until_ns)
{
    struct weir_standing_entry entry = entry_of(level, origin, until_ns);
    struct weir_cidr cidr;
    assert_int_equal(weir_cidr_parse(&cidr, network, strlen(network)), 0);
    assert_int_equal(weir_standing_set_network(map, &cidr, &entry), 0);
}

/* Asks again, with the map. */
static struct test_request *meet(struct test_request *test)
{
    asked = test;
    test->query.map = map;
    test->query.standing = &found;
    test->query.refuses = true;
    test->query.now_ns = NOW;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}
#define MEET(rules, ...) meet(ASK(rules, __VA_ARGS__))

static void assert_found(uint8_t level, const char *by)
{
    assert_int_equal(found.entry.level, level);
    if (level == WEIR_STANDING_GOOD)
        return;
    const struct weir_standing_kind *kind =
        &weir_rules_settings(asked->rules)->standing->kinds[found.kind];
    assert_memory_equal(kind->name.data, by, kind->name.size);
    assert_int_equal(by[kind->name.size], '=');
    if (!found.refused) {
        assert_int_equal(found.by.size, 0); /* only refusals are named, and explanations: */
        struct weir_explanation explanations[8];
        assert_true(weir_rules_explain(&asked->query, asked->checks, explanations) >= 0);
    }
    assert_int_equal(found.by.size, strlen(by));
    assert_memory_equal(found.by.data, by, found.by.size);
}

static const char by_all[] =
    "standing: {by: [client.ip/64, user, org, header.x-api-key, tenant]}\n"
    "limits:\n"
    "- {name: all, key: [], rate: 1/s}\n"
    "- {name: bad, match: {standing: [warned, throttled]}, key: [standing], rate: 1/s}\n"
    "- {name: good, match: {standing: good}, key: [standing], rate: 1/s}\n"
    "- {name: vip, match: {standing: trusted}, key: [standing], rate: 1/s}\n";

TEST_WITH(open_map, close_map, "without a map everybody is good")
{
    struct weir_rules *rules = test_load(by_all);
    test_expect(ASK(rules, "user", "alice"), "all{} good{standing=good}");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "nothing held is good")
{
    struct weir_rules *rules = test_load(by_all);
    test_expect(MEET(rules, "user", "alice"), "all{} good{standing=good}");
    assert_found(WEIR_STANDING_GOOD, "");
    hold("user", "bob", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    test_expect(MEET(rules, "user", "alice"), "all{} good{standing=good}");
    assert_found(WEIR_STANDING_GOOD, "");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "limits match by it and count by it")
{
    struct weir_rules *rules = test_load(by_all);
    hold("tenant", "t1", WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    test_expect(MEET(rules, "tenant", "t1"), "all{} bad{standing=throttled}");
    assert_found(WEIR_STANDING_THROTTLED, "tenant=t1");
    assert_false(found.refused);
    hold("tenant", "t2", WEIR_STANDING_CHALLENGED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    test_expect(MEET(rules, "tenant", "t2"), "all{}");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "the suspended and the revoked meet no limit")
{
    struct weir_rules *rules = test_load(by_all);
    hold("user", "sus", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, NOW + 5 * SECOND);
    hold("user", "rev", WEIR_STANDING_REVOKED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    test_expect(MEET(rules, "user", "sus"), "");
    assert_true(found.refused);
    assert_found(WEIR_STANDING_SUSPENDED, "user=sus");
    assert_int_equal(found.entry.until_ns, NOW + 5 * SECOND);
    assert_int_equal(found.entry.reason_size, 5);
    assert_memory_equal(found.entry.reason, "abuse", 5);
    test_expect(MEET(rules, "user", "rev"), "");
    assert_true(found.refused);
    assert_found(WEIR_STANDING_REVOKED, "user=rev");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a query that does not refuse gets their checks")
{
    struct weir_rules *rules = test_load(by_all);
    hold("user", "sus", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    struct test_request *test = MEET(rules, "user", "sus");
    test->query.refuses = false;
    test->count = weir_rules_checks(&test->query, test->checks);
    test_expect(test, "all{}");
    assert_false(found.refused);
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "it ends to the nanosecond")
{
    struct weir_rules *rules = test_load(by_all);
    hold("user", "u", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, NOW + 1);
    test_expect(MEET(rules, "user", "u"), "");
    hold("user", "u", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, NOW);
    test_expect(MEET(rules, "user", "u"), "all{} good{standing=good}");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "trusted callers meet only limits that say so")
{
    struct weir_rules *rules = test_load(by_all);
    hold("org", "acme", WEIR_STANDING_TRUSTED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    test_expect(MEET(rules, "user", "u", "org", "acme"), "vip{standing=trusted}");
    assert_found(WEIR_STANDING_TRUSTED, "org=acme");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "all kinds are joined")
{
    struct weir_rules *rules = test_load(by_all);
    hold_network("192.0.2.0/24", WEIR_STANDING_WARNED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    hold("user", "u", WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    hold("org", "vip", WEIR_STANDING_TRUSTED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    hold("tenant", "off", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, NOW + SECOND);
#define HERE "client.ip", "192.0.2.7"
    MEET(rules, HERE);
    assert_found(WEIR_STANDING_WARNED, "client.ip=192.0.2.7");
    MEET(rules, HERE, "user", "u"); /* the strictest */
    assert_found(WEIR_STANDING_THROTTLED, "user=u");
    MEET(rules, HERE, "user", "u", "org", "vip"); /* trusted beats lists and penalties */
    assert_found(WEIR_STANDING_TRUSTED, "org=vip");
    MEET(rules, HERE, "user", "u", "org", "vip", "tenant", "off"); /* an operator beats trusted */
    assert_found(WEIR_STANDING_SUSPENDED, "tenant=off");
    hold("user", "r", WEIR_STANDING_REVOKED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    MEET(rules, HERE, "user", "r", "org", "vip"); /* and so does a revocation */
    assert_found(WEIR_STANDING_REVOKED, "user=r");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "networks of any length count")
{
    struct weir_rules *rules = test_load(by_all);
    hold_network("2001:db8::/32", WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    hold_network("2001:db8::7/128", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    MEET(rules, "client.ip", "2001:db8::8");
    assert_found(WEIR_STANDING_WARNED, "client.ip=2001:db8::/64");
    MEET(rules, "client.ip", "2001:db8::7");
    assert_found(WEIR_STANDING_SUSPENDED, "client.ip=2001:db8::/64");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a value counts by its kind")
{
    struct weir_rules *rules = test_load(by_all);
    hold("user", "acme", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    hold("jwt.sub", "other", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    MEET(rules, "org", "acme", "user", "other");
    assert_found(WEIR_STANDING_GOOD, "");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "secrets are named by their digest")
{
    struct weir_rules *rules = test_load(by_all);
    hold("header.x-api-key", "alice-key", WEIR_STANDING_REVOKED, WEIR_STANDING_BY_OPERATOR,
         WEIR_NEVER);
    MEET(rules, "header.x-api-key", "alice-key");
    assert_found(WEIR_STANDING_REVOKED, "header.x-api-key=sha256:72ee9d4355ccb9d3");
    weir_rules_unref(rules);
}

static const char identified[] = "identify: [header.x-api-key, client.ip/64]\n"
                                 "keys: keys.yaml\n"
                                 "standing: {by: [client.ip/64, user]}\n"
                                 "limits: [{name: all, key: [], rate: 1/s}]\n";

static struct weir_rules *load_identified(void)
{
    char problems[1024];
    struct weir_rules *rules =
        parse(identified, ALICE ": { user: alice }\n", problems, sizeof(problems));
    assert_string_equal(problems, "");
    return rules;
}

TEST_WITH(open_map, close_map, "a user counts when the key is known")
{
    struct weir_rules *rules = load_identified();
    hold("user", "alice", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    test_expect(MEET(rules, "header.x-api-key", "alice-key"), "");
    assert_found(WEIR_STANDING_SUSPENDED, "user=alice");
    test_expect(MEET(rules, "header.x-api-key", "alice"), "all{}");
    test_expect(MEET(rules, "header.x-api-key", "mallory-key", "client.ip", "192.0.2.1"), "all{}");
    weir_rules_unref(rules);
}

/* The user "192.0.2.1" of `identify: client.ip` is not the user of that name. */
TEST_WITH(open_map, close_map, "a user that is an address has the standing of the address")
{
    struct weir_rules *rules = load_identified();
    hold("user", "192.0.2.1", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    test_expect(MEET(rules, "client.ip", "192.0.2.1"), "all{}");
    assert_found(WEIR_STANDING_GOOD, "");
    hold_network("192.0.2.1/32", WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    MEET(rules, "client.ip", "192.0.2.1");
    assert_found(WEIR_STANDING_THROTTLED, "client.ip=192.0.2.1");
    weir_rules_unref(rules);
}

static const char looked_up[] = "identify: header.x-api-key\n"
                                "identities: redis://h\n"
                                "standing: {by: [client.ip/64, user]}\n"
                                "limits: [{name: all, key: [], rate: 1/s}]\n";

TEST_WITH(open_map, close_map, "a caller in another store is waited for")
{
    static struct fake_directory fake;
    struct weir_rules *rules = test_load(looked_up);
    struct test_request *test = ASK(rules, "header.x-api-key", "k", "client.ip", "192.0.2.1");
    fake_directory_init(&fake);
    hold("user", "eve", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    test->query.directory = &fake.base;
    assert_int_equal(meet(test)->count, WEIR_ERR_PENDING);
    fake_directory_answer(&fake, 0, FAKE_KNOWN, "eve", NULL);
    test_expect(meet(test), "");
    assert_found(WEIR_STANDING_SUSPENDED, "user=eve");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "who is suspended by address is refused though the directory fails")
{
    static struct fake_directory fake;
    struct weir_rules *rules = test_load(looked_up);
    struct test_request *test = ASK(rules, "header.x-api-key", "k", "client.ip", "192.0.2.1");
    fake_directory_init(&fake);
    test->query.directory = &fake.base;
    hold("user", "eve", WEIR_STANDING_WARNED, WEIR_STANDING_BY_OPERATOR, WEIR_NEVER);
    assert_int_equal(meet(test)->count, WEIR_ERR_PENDING);
    fake_directory_answer(&fake, 0, FAKE_FAILED, NULL, NULL);
    assert_int_equal(meet(test)->count, WEIR_ERR_STORE);
    hold_network("192.0.2.0/24", WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER);
    test_expect(meet(test), "");
    assert_found(WEIR_STANDING_SUSPENDED, "client.ip=192.0.2.1");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a state is found by a level as by any value")
{
    static struct weir_scratch scratch;
    struct weir_rules *rules = test_load(by_all);
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_reason reason;
    struct weir_key_values values = {.count = 1, .values = {weir_bytes_of("throttled")}};
    hold("tenant", "t1", WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    struct test_request *test = MEET(rules, "tenant", "t1");
    assert_int_equal(
        weir_rules_key_check(rules, 1, &values, test_secret, &scratch, checks, &reason), 1);
    assert_memory_equal(checks[0].hash, test->checks[1].hash, sizeof(checks[0].hash));
    values.values[0] = weir_bytes_of("bad");
    assert_int_equal(
        weir_rules_key_check(rules, 1, &values, test_secret, &scratch, checks, &reason),
        WEIR_ERR_SYNTAX);
    assert_string_equal(reason.text, "key: not a level of standing: standing");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a limit has the scale of the level")
{
    struct weir_rules *rules =
        test_load("standing: {by: user}\n"
                  "limits:\n"
                  "- {name: a, key: [], rate: [100/s, 1000/h], by_standing: {warned: 100%, "
                  "throttled: 20%}}\n"
                  "- {name: b, key: [], rate: 10/s}\n");
    hold("user", "w", WEIR_STANDING_WARNED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    hold("user", "t", WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    hold("user", "c", WEIR_STANDING_CHALLENGED, WEIR_STANDING_BY_PENALTY, NOW + SECOND);
    struct test_request *test = MEET(rules, "user", "t");
    assert_int_equal(test->count, 3);
    assert_int_equal(test->checks[0].scale, 20);
    assert_int_equal(test->checks[0].scale_kind, WEIR_SCALE_RATE);
    assert_int_equal(test->checks[1].scale, 20);
    assert_int_equal(test->checks[2].scale, 0);
    test = MEET(rules, "user", "w");
    assert_int_equal(test->checks[0].scale, 0);
    test = MEET(rules, "user", "c");
    assert_int_equal(test->checks[0].scale, 0);
    test = MEET(rules, "user", "x");
    assert_int_equal(test->checks[0].scale, 0);
    weir_rules_unref(rules);
}

RUN_TESTS_WITH(make_folder, remove_folder)
