/* SPDX-License-Identifier: Apache-2.0 */
/* The strikes that a request may be: whose they are, and where they are counted. */
#include "core/bytes.h"
#include "feature/penalties/rules/strikes.h"
#include "feature/standing/rules/match.h"
#include "rules_test.h"
#include "standing_map.h"
#include "test.h"

#define NOW UINT64_C(1700000000000000000)
#define SECOND UINT64_C(1000000000)

static struct weir_strikes strikes;
static struct weir_caller_standing found;

static struct test_request *meet(struct test_request *test)
{
    test->query.map = map;
    test->query.standing = &found;
    test->query.strikes = &strikes;
    test->query.refuses = true;
    test->query.now_ns = NOW;
    test->scratch.used = 0;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}
#define MEET(rules, ...) meet(ASK(rules, __VA_ARGS__))

static void assert_strike(uint32_t i, uint8_t penalty, const char *key)
{
    assert_true(i < strikes.count);
    const struct weir_strike *strike = &strikes.strikes[i];
    assert_int_equal(strike->penalty, penalty);
    assert_int_equal(strike->check.key.size, strlen(key));
    assert_memory_equal(strike->check.key.data, key, strlen(key));
    assert_false(strike->check.key_is_tuple);
    assert_int_equal(strike->check.rule, UINT32_MAX);
    assert_int_equal(strike->check.cost, 1);
}

static void assert_value(uint32_t i, const char *value)
{
    assert_int_equal(strikes.strikes[i].value.size, strlen(value));
    assert_memory_equal(strikes.strikes[i].value.data, value, strlen(value));
}

static const char three[] =
    "standing: {file: s.db, by: [client.ip/64/24, user, header.x-api-key]}\n"
    "limits: [{name: all, key: [], rate: 1/s}]\n"
    "penalties:\n"
    "- {name: a, key: client.ip/64/24, strikes: 5/h, ladder: [warn 1h]}\n"
    "- {name: b, key: user, strikes: 5/h, ladder: [warn 1h], strikes_while_suspended: true}\n"
    "- {name: c, key: header.x-api-key, strikes: 5/h, ladder: [warn 1h]}\n"
    "- {name: d, key: user, strikes: 5/h, ladder: [warn 1h]}\n";

TEST_WITH(open_map, close_map, "each penalty has its own value and count")
{
    struct weir_rules *rules = test_load(three);
    struct test_request *test =
        MEET(rules, "client.ip", "192.0.2.77", "user", "ada", "header.x-api-key", "secret");
    uint64_t id[2];
    assert_int_equal(test->count, 1);
    assert_int_equal(strikes.count, 4);
    assert_strike(0, 0, "client.ip=192.0.2.0/24");
    assert_int_equal(strikes.strikes[0].network.bits, 24);
    assert_int_equal(strikes.strikes[0].network.address.bytes[3], 0);
    assert_strike(1, 1, "user=ada");
    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of("ada"), id);
    assert_memory_equal(strikes.strikes[1].id, id, sizeof(id));
    assert_value(1, "ada");
    assert_value(2, "secret");
    assert_null(strikes.strikes[0].value.data); /* a network */
    assert_ptr_equal(strikes.strikes[3].value.data, strikes.strikes[1].value.data);
    assert_string_equal(strikes.strikes[1].check.limit->name, "b~strikes");
    assert_strike(2, 2, "header.x-api-key=sha256:2bb80d537b1da3e3");
    assert_strike(3, 3, "user=ada");
    assert_memory_not_equal(strikes.strikes[1].check.hash, strikes.strikes[3].check.hash,
                            sizeof(uint64_t[2])); /* two penalties of one value count apart */
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "who has no such value gets no strike")
{
    struct weir_rules *rules = test_load(three);
    MEET(rules, "client.ip", "2001:db8::1");
    assert_int_equal(strikes.count, 1);
    assert_strike(0, 0, "client.ip=2001:db8::/64");
    MEET(rules, "user", "ada");
    assert_int_equal(strikes.count, 2);
    assert_strike(0, 1, "user=ada");
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a value that no standing can name gets no strike")
{
    static char long_value[WEIR_STRIKE_VALUE_MAX + 2];
    struct weir_rules *rules = test_load(three);
    memset(long_value, 'a', WEIR_STRIKE_VALUE_MAX);
    MEET(rules, "header.x-api-key", long_value);
    assert_int_equal(strikes.count, 1);
    assert_value(0, long_value);
    long_value[WEIR_STRIKE_VALUE_MAX] = 'a';
    MEET(rules, "header.x-api-key", long_value);
    assert_int_equal(strikes.count, 0);
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "addresses of one network are counted together")
{
    struct weir_rules *rules = test_load(three);
    MEET(rules, "client.ip", "2001:db8::1");
    struct weir_check first = strikes.strikes[0].check;
    MEET(rules, "client.ip", "2001:db8::ffff:2");
    assert_memory_equal(strikes.strikes[0].check.hash, first.hash, sizeof(first.hash));
    MEET(rules, "client.ip", "2001:db8:0:1::1");
    assert_memory_not_equal(strikes.strikes[0].check.hash, first.hash, sizeof(first.hash));
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "a refused request is a strike only where the penalty says so")
{
    struct weir_rules *rules = test_load(three);
    struct weir_standing_entry entry = {.since_ns = NOW - SECOND,
                                        .until_ns = NOW + SECOND,
                                        .level = WEIR_STANDING_SUSPENDED,
                                        .origin = WEIR_STANDING_BY_PENALTY};
    uint64_t id[2];
    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of("eve"), id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
    MEET(rules, "client.ip", "192.0.2.77", "user", "eve");
    assert_true(found.refused);
    assert_int_equal(strikes.count, 1);
    assert_strike(0, 1, "user=eve");
    weir_rules_unref(rules);
}

/* The user "192.0.2.1" of `identify: client.ip` is not the user of that name. */
TEST_WITH(open_map, close_map, "a user that is an address gets no strike")
{
    struct weir_rules *rules =
        test_load("identify: client.ip\n"
                  "standing: {file: s.db, by: [client.ip, user]}\n"
                  "limits: [{name: all, key: [user], rate: 1/s}]\n"
                  "penalties: [{name: a, key: user, strikes: 5/h, ladder: [warn 1h]}]\n");
    MEET(rules, "client.ip", "192.0.2.1");
    assert_int_equal(strikes.count, 0);
    weir_rules_unref(rules);
}

TEST_WITH(open_map, close_map, "without a map there is none")
{
    struct weir_rules *rules = test_load(three);
    struct test_request *test = ASK(rules, "user", "ada");
    strikes.count = 5;
    test->query.strikes = &strikes;
    assert_int_equal(weir_rules_checks(&test->query, test->checks), 1);
    assert_int_equal(strikes.count, 0);
    weir_rules_unref(rules);
}

RUN_TESTS()
