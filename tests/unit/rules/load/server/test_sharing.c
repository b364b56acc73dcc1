/* SPDX-License-Identifier: Apache-2.0 */
/* Limits whose states several nodes share: modes, tags, parts of a node, texts that all agree on.
 */
#include "rules_test.h"
#include "test.h"

#define STORE "store: {redis: 'redis://h', nodes: 3}\n"

/* The check of rule `name` in the last request; NULL: it made none. */
static const struct weir_check *check_of(const struct test_request *test, const char *name)
{
    int rule = weir_rules_find(test->rules, name, strlen(name));
    assert_true(rule >= 0);
    for (int i = 0; i < test->count; i++)
        if (test->checks[i].rule == (uint32_t)rule)
            return &test->checks[i];
    return NULL;
}

TEST("without a store checks carry nothing for one")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a], rate: 9/s}\n");
    const struct weir_check *check = check_of(ASK(rules, "a", "x"), "l");
    assert_int_equal(check->flags, 0);
    assert_true(check->tag == 0);
    assert_null(check->limit->local);
    assert_string_equal(check->limit->name, "l");
    weir_rules_unref(rules);
}

TEST("a limit overrides the mode of the store")
{
    struct weir_rules *rules =
        test_load("store: {redis: {url: 'redis://h', mode: leased, nodes: 3}}\n"
                  "limits:\n"
                  "- {name: a, key: [u], rate: 9/s}\n"
                  "- {name: b, key: [u], rate: 9/s, mode: exact}\n"
                  "- {name: c, key: [u], algorithm: concurrency, limit: 9}\n"
                  "- {name: d, key: [u], algorithm: leaky_bucket, queue: true, rate: 9/s}\n"
                  "- {name: e, key: [u], algorithm: gcra, rate: 9/s, mode: leased}\n");
    struct test_request *test = ASK(rules, "u", "x");
    assert_int_equal(test->count, 5);
    static const bool leased[] = {true, false, false, false, true};
    for (int i = 0; i < 5; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, (uint32_t)i, &info);
        assert_int_equal(info.leased, leased[i]);
        assert_int_equal((test->checks[i].flags & WEIR_CHECK_LEASED) != 0, leased[i]);
    }
    weir_rules_unref(rules);
    rules = test_load(STORE "limits:\n- {name: a, key: [u], rate: 9/s, mode: leased}\n"
                            "- {name: b, key: [u], rate: 9/s}\n");
    test = ASK(rules, "u", "x");
    assert_int_equal(check_of(test, "a")->flags, WEIR_CHECK_LEASED);
    assert_int_equal(check_of(test, "b")->flags, 0);
    weir_rules_unref(rules);
}

TEST("each limit has its part for when the store fails")
{
    struct weir_rules *rules =
        test_load("store: {redis: 'redis://h', nodes: 3, on_store_error: closed}\n"
                  "plans: {free: {p: 30/s}, pro: {p: 300/s}, all: {p: unlimited}}\n"
                  "default_plan: free\n"
                  "limits:\n"
                  "- {name: a, key: [u], rate: 9/s, on_store_error: local}\n"
                  "- {name: b, key: [u], rate: 9/s}\n"
                  "- {name: c, key: [u], rate: 9/s, on_store_error: open}\n"
                  "- {name: p, key: [u], rate: plan, on_store_error: local}\n");
    struct test_request *test = ASK(rules, "u", "x");
    const struct weir_check *a = check_of(test, "a");
    assert_int_equal(a->on_store_error, WEIR_FAIL_LOCAL);
    assert_true(a->limit->local->spec.rate == 3);
    assert_string_equal(a->limit->local->name, "a");
    assert_int_equal(check_of(test, "b")->on_store_error, WEIR_FAIL_CLOSED);
    assert_null(check_of(test, "b")->limit->local);
    assert_int_equal(check_of(test, "c")->on_store_error, WEIR_FAIL_OPEN);
    assert_null(check_of(test, "c")->limit->local);
    assert_true(check_of(test, "p")->limit->local->spec.rate == 10);
    assert_string_equal(check_of(test, "p")->limit->name, "p");
    test = ASK(rules, "u", "x", "plan", "pro");
    assert_true(check_of(test, "p")->limit->local->spec.rate == 100);
    assert_int_equal(weir_rules_settings(rules)->store.on_store_error, WEIR_FAIL_CLOSED);
    weir_rules_unref(rules);
}

TEST("one node alone decides the whole limit")
{
    struct weir_rules *rules = test_load("store: {redis: 'redis://h', nodes: 1}\n"
                                         "limits:\n- {name: a, key: [u], rate: 9/s}\n");
    assert_null(check_of(ASK(rules, "u", "x"), "a")->limit->local);
    weir_rules_unref(rules);
}

TEST("limits of one caller have one tag")
{
    struct weir_rules *rules =
        test_load(STORE "limits:\n"
                        "- {name: a, key: [user], rate: 9/s, hash_tag: user}\n"
                        "- {name: b, key: [path, user], rate: 9/s, hash_tag: [user]}\n"
                        "- {name: c, key: [user, path], rate: 9/s, hash_tag: [path, user]}\n"
                        "- {name: d, key: [path, user], rate: 9/s, hash_tag: [path, user]}\n"
                        "- {name: e, key: [user], rate: 9/s}\n");
    struct test_request *test = ASK(rules, "user", "bob", "path", "/x");
    uint64_t tag = check_of(test, "a")->tag, both = check_of(test, "c")->tag;
    assert_true(tag != 0 && both != 0 && tag != both);
    assert_true(check_of(test, "b")->tag == tag);
    assert_true(check_of(test, "d")->tag == both);
    assert_true(check_of(test, "e")->tag == 0);
    test = ASK(rules, "user", "bob", "path", "/y");
    assert_true(check_of(test, "b")->tag == tag);
    assert_true(check_of(test, "c")->tag != both);
    test = ASK(rules, "user", "eve", "path", "/x");
    assert_true(check_of(test, "a")->tag != tag);
    struct weir_rule_info info;
    weir_rules_info(rules, 2, &info);
    assert_int_equal(info.tag_count, 2);
    assert_string_equal(info.tag[0], "path");
    assert_string_equal(info.tag[1], "user");
    weir_rules_unref(rules);
}

TEST("tags are of addresses by their prefix and of headers in any case")
{
    struct weir_rules *rules =
        test_load(STORE "limits:\n"
                        "- {name: a, key: [client.ip/64], rate: 9/s, hash_tag: client.ip}\n"
                        "- {name: b, key: [client.ip/64, x], rate: 9/s, hash_tag: client.ip/64}\n"
                        "- {name: c, key: [header.X-Team], rate: 9/s, hash_tag: header.x-TEAM}\n");
    struct test_request *test =
        ASK(rules, "client.ip", "2001:db8::1", "x", "1", "header.x-team", "red");
    assert_int_equal(test->count, 3);
    uint64_t tag = check_of(test, "a")->tag;
    assert_true(tag != 0 && check_of(test, "b")->tag == tag);
    assert_true(check_of(test, "c")->tag != 0 && check_of(test, "c")->tag != tag);
    test = ASK(rules, "client.ip", "2001:db8::2", "x", "2");
    assert_true(check_of(test, "a")->tag == tag && check_of(test, "b")->tag == tag);
    test = ASK(rules, "client.ip", "2001:db8:0:1::1", "x", "2");
    assert_true(check_of(test, "a")->tag != tag);
    weir_rules_unref(rules);
}

/* What another node, whose secret is another, makes of the same request. */
static const struct test_request *ask_elsewhere(struct test_request *test)
{
    static const uint64_t other[2] = {1, 2};
    static struct test_request elsewhere;
    memcpy(&elsewhere, test, sizeof(elsewhere));
    elsewhere.query.secret = other;
    elsewhere.query.scratch = &elsewhere.scratch;
    elsewhere.count = weir_rules_checks(&elsewhere.query, elsewhere.checks);
    return &elsewhere;
}

static void expect_same_everywhere(struct test_request *test)
{
    const struct test_request *other = ask_elsewhere(test);
    assert_true(test->count > 0);
    assert_int_equal(test->count, other->count);
    for (int i = 0; i < test->count; i++) {
        const struct weir_check *here = &test->checks[i], *there = &other->checks[i];
        assert_true(memcmp(here->hash, there->hash, sizeof(here->hash)) != 0);
        assert_int_equal(here->key.size, there->key.size);
        assert_memory_equal(here->key.data, there->key.data, here->key.size);
        assert_true(here->tag == there->tag);
    }
}

TEST("all nodes find the same texts and tags")
{
    struct weir_rules *rules =
        test_load(STORE "identify: [client.ip]\n"
                        "limits:\n"
                        "- {name: a, key: [user, x], rate: 9/s, hash_tag: [x, user]}\n"
                        "- {name: b, key: [x, y], on_missing: shared, rate: 9/s, hash_tag: x}\n");
    char longer[1000];
    memset(longer, 'x', sizeof(longer));
    static const size_t sizes[] = {1, 128, 129, 260, 999};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        longer[sizes[i]] = '\0';
        expect_same_everywhere(ASK(rules, "client.ip", "192.0.2.1", "x", longer));
        expect_same_everywhere(ASK(rules, "client.ip", "192.0.2.1", "x", "1", "y", longer));
        longer[sizes[i]] = 'x';
    }
    weir_rules_unref(rules);
}

TEST("long values have texts of their own everywhere")
{
    struct weir_rules *rules = test_load(STORE "limits:\n- {name: a, key: [x, y], rate: 9/s}\n");
    char one[1000], two[1000], first[256];
    memset(one, 'x', sizeof(one));
    one[999] = '\0';
    memcpy(two, one, sizeof(two));
    two[998] = 'y';
    const struct weir_check *check = check_of(ASK(rules, "x", one, "y", "1"), "a");
    assert_int_equal(check->key.size, sizeof(first));
    assert_int_equal(check->key.data[256 - 33], '~');
    memcpy(first, check->key.data, sizeof(first));
    check = check_of(ASK(rules, "x", two, "y", "1"), "a");
    assert_int_equal(check->key.size, sizeof(first));
    assert_memory_not_equal(check->key.data, first, sizeof(first));
    assert_memory_equal(check->key.data, first, 256 - 33);
    check = check_of(ASK(rules, "x", one, "y", "2"), "a");
    assert_memory_not_equal(check->key.data, first, sizeof(first));
    weir_rules_unref(rules);
}

TEST("secrets are reported apart by 128 bits")
{
    struct weir_rules *rules =
        test_load(STORE "limits:\n- {name: a, key: [header.authorization], rate: 9/s}\n");
    struct test_request *test = ASK(rules, "header.authorization", "Bearer x");
    /* printf 'Bearer x' | sha256sum */
    test_expect(test, "a{header.authorization=sha256:b937a6fd6074f3650930dd9a8c3ea51f}");
    weir_rules_unref(rules);
}

static const struct test_problem_case cases[] = {
    {"limits:\n- {name: a, key: [u], rate: 9/s, mode: exact, hash_tag: u}\n",
     "2:34: `mode` needs a shared store: add `store: {redis: …}`\n"
     "2:47: `hash_tag` needs a shared store: add `store: {redis: …}`\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, mode: leasd}\n",
     "3:40: `mode` must be one of exact, leased, not `leasd`; did you mean `leased`?\n"},
    {STORE "limits:\n- {name: a, key: [u], algorithm: concurrency, limit: 9, mode: leased}\n",
     "3:63: concurrency cannot be leased: nodes do not know each other's requests in flight; "
     "remove `mode`, or set it to exact\n"},
    {STORE "limits:\n- {name: a, key: [u], algorithm: leaky_bucket, queue: true, rate: 9/s, "
           "mode: leased}\n",
     "3:78: a queue cannot be leased: all nodes share one order; remove `mode`, or set it to "
     "exact\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, hash_tag: v}\n",
     "3:44: `hash_tag` `v` is not in `key`, so one state would be in several places\n"},
    {STORE "limits:\n- {name: a, key: [], rate: 9/s, hash_tag: [v, w]}\n",
     "3:44: `hash_tag` `v` is not in `key`, so one state would be in several places\n"
     "3:47: `hash_tag` `w` is not in `key`, so one state would be in several places\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, hash_tag: [u, u]}\n",
     "3:48: `u` is twice in `hash_tag`\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, hash_tag: []}\n",
     "3:44: `hash_tag` must be an attribute of the key, or a list of them\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, hash_tag: {u: v}}\n",
     "3:44: `hash_tag` must be an attribute of the key, or a list of them\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, hash_tag: [[u]]}\n",
     "3:45: `hash_tag` must be a text, not a list\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/s, on_store_error: shut}\n",
     "3:50: `on_store_error` must be one of local, open, closed, not `shut`\n"},
    {STORE "limits:\n- {name: a, key: [u], rate: 9/ms, segments: 64}\n"
           "- {name: b, key: [u], rate: 9/64ms, segments: 64}\n",
     "3:45: `segments` 64: a segment is 15625 ns long; Redis counts in whole microseconds\n"},
    /* nodes: reported once, where Redis stands. */
    {"store: {redis: 'redis://h'}\n"
     "limits:\n- {name: a, key: [u], rate: 9/s, on_store_error: open}\n"
     "- {name: b, key: [u], rate: 9/s}\n- {name: c, key: [u], rate: 9/s}\n",
     "1:9: `nodes` is missing: while Redis fails, each node decides its part of limit `b` "
     "alone; give the number of nodes, or set `on_store_error: open` or `closed`\n"},
    {"store: {redis: 'redis://h', on_store_error: open}\n"
     "limits: [{name: a, key: [u], rate: 9/s, on_store_error: local}]\n",
     "1:9: `nodes` is missing: while Redis fails, each node decides its part of limit `a` "
     "alone; give the number of nodes, or set `on_store_error: open` or `closed`\n"},
    {"server: {redis: '127.0.0.1:6380'}\nstore: {redis: 'redis://h'}\nlimits: []\n",
     "2:9: `nodes` is missing: while Redis fails, each node decides its part of limits in "
     "commands alone; give the number of nodes, or set `on_store_error: open` or `closed`\n"},
};

TEST("every problem of sharing is reported")
{
    TEST_REFUSED_ALL(cases);
}

TEST("nodes are not needed where nothing is decided alone")
{
    struct weir_rules *rules =
        test_load("store: {redis: 'redis://h'}\n"
                  "limits: [{name: a, key: [u], rate: 9/s, on_store_error: open}]\n");
    /* Limits in commands, which the file knows nothing of, are then on the safe side. */
    assert_int_equal(weir_rules_settings(rules)->store.on_store_error, WEIR_FAIL_CLOSED);
    assert_int_equal(check_of(ASK(rules, "u", "x"), "a")->on_store_error, WEIR_FAIL_OPEN);
    weir_rules_unref(rules);
}

RUN_TESTS()
