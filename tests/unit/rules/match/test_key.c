/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: different tuples are different keys, in hash and in text; secrets are not shown. */
#include "core/bytes.h"
#include "rules/match/key_values.h"
#include "rules_test.h"
#include "test.h"

struct key {
    uint64_t hash[2];
    char text[300];
};

/* The key of the only check. */
static struct key key_of(const struct test_request *test)
{
    struct key key = {{0}, ""};
    assert_int_equal(test->count, 1);
    memcpy(key.hash, test->checks[0].hash, sizeof(key.hash));
    assert_true(test->checks[0].key.size < sizeof(key.text));
    memcpy(key.text, test->checks[0].key.data, test->checks[0].key.size);
    return key;
}

static void expect_different(struct key a, struct key b)
{
    assert_true(memcmp(a.hash, b.hash, sizeof(a.hash)) != 0);
    assert_string_not_equal(a.text, b.text);
}

static void expect_same(struct key a, struct key b)
{
    assert_memory_equal(a.hash, b.hash, sizeof(a.hash));
    assert_string_equal(a.text, b.text);
}

TEST("values do not run into each other")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a, b], rate: 1/s}\n");
    struct key one = key_of(ASK(rules, "a", "x:y", "b", "z"));
    expect_different(one, key_of(ASK(rules, "a", "x", "b", "y:z")));
    expect_different(key_of(ASK(rules, "a", "xy", "b", "z")),
                     key_of(ASK(rules, "a", "x", "b", "yz")));
    expect_different(key_of(ASK(rules, "a", "", "b", "x")), key_of(ASK(rules, "a", "x", "b", "")));
    /* A value that looks like two. */
    expect_different(key_of(ASK(rules, "a", "x,b=y", "b", "z")),
                     key_of(ASK(rules, "a", "x", "b", "y,b=z")));
    expect_same(one, key_of(ASK(rules, "b", "z", "a", "x:y")));
    weir_rules_unref(rules);
}

TEST("names of limits are part of the key")
{
    struct weir_rules *rules = test_load("limits:\n"
                                         "- {name: l, match: {m: '1'}, key: [a], rate: 1/s}\n"
                                         "- {name: lx, match: {m: '2'}, key: [a], rate: 1/s}\n");
    struct key one = key_of(ASK(rules, "m", "1", "a", "xy"));
    struct key two = key_of(ASK(rules, "m", "2", "a", "y"));
    assert_true(memcmp(one.hash, two.hash, sizeof(one.hash)) != 0);
    weir_rules_unref(rules);
}

TEST("a user is no address of the same text")
{
    struct weir_rules *rules =
        test_load("identify: [client.ip]\nlimits:\n- {name: l, key: [user], rate: 1/s}\n");
    struct key address = key_of(ASK(rules, "client.ip", "127.0.0.1"));
    assert_string_equal(address.text, "user=ip:127.0.0.1");
    expect_different(address, key_of(ASK(rules, "user", "127.0.0.1")));
    expect_different(address, key_of(ASK(rules, "user", "ip:127.0.0.1")));
    weir_rules_unref(rules);
}

TEST("a missing value is no value at all")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: l, key: [user], on_missing: shared, rate: 1/s}\n");
    struct key missing = key_of(ASK_EMPTY(rules));
    expect_different(missing, key_of(ASK(rules, "user", "")));
    expect_different(missing, key_of(ASK(rules, "user", "-")));
    weir_rules_unref(rules);
}

TEST("what replaces a value is not the value")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: l, key: [user], on_missing: session, rate: 1/s}\n");
    expect_different(key_of(ASK(rules, "user", "bob")), key_of(ASK(rules, "session", "bob")));
    weir_rules_unref(rules);
}

TEST("what replaces a value is of its kind whatever comes before it")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [user], rate: 1/s,\n"
                                         "   on_missing: [session, org, tenant, shared]}\n");
    static const char *const names[] = {"user", "session", "org", "tenant"};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = i + 1; j < 4; j++)
            expect_different(key_of(ASK(rules, names[i], "bob")),
                             key_of(ASK(rules, names[j], "bob")));
    expect_same(key_of(ASK(rules, "org", "bob", "tenant", "x")), key_of(ASK(rules, "org", "bob")));
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct key long_one = key_of(ASK(rules, "tenant", text)); /* written from the tuple's hash */
    assert_memory_equal(long_one.text, "tenant=xxxx", 11);
    expect_different(long_one, key_of(ASK(rules, "org", text)));
    weir_rules_unref(rules);
}

TEST("prefixes group addresses")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: l, key: [client.ip/64/24], rate: 1/s}\n");
    struct key v6 = key_of(ASK(rules, "client.ip", "2001:db8:0:1::5"));
    assert_string_equal(v6.text, "client.ip=2001:db8:0:1::/64");
    expect_same(v6, key_of(ASK(rules, "client.ip", "2001:db8:0:1:ffff::")));
    expect_different(v6, key_of(ASK(rules, "client.ip", "2001:db8:0:2::5")));
    struct key v4 = key_of(ASK(rules, "client.ip", "192.0.2.200"));
    assert_string_equal(v4.text, "client.ip=192.0.2.0/24");
    expect_same(v4, key_of(ASK(rules, "client.ip", "::ffff:192.0.2.7")));
    expect_different(v4, key_of(ASK(rules, "client.ip", "192.0.3.200")));
    weir_rules_unref(rules);
    rules = test_load("limits:\n- {name: l, key: [client.ip/64], rate: 1/s}\n");
    assert_string_equal(key_of(ASK(rules, "client.ip", "192.0.2.200")).text,
                        "client.ip=192.0.2.200");
    weir_rules_unref(rules);
}

TEST("long values are hashed and not cut")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a], rate: 1/s}\n");
    char one[2000], two[2000];
    memset(one, 'x', sizeof(one));
    one[sizeof(one) - 1] = '\0';
    memcpy(two, one, sizeof(two));
    two[sizeof(two) - 2] = 'y';
    struct key first = key_of(ASK(rules, "a", one));
    expect_different(first, key_of(ASK(rules, "a", two)));
    assert_int_equal(strlen(first.text), strlen("a=") + 96 + strlen("~") + 16);
    for (size_t size = 100; size < 300; size++) {
        memcpy(two, one, sizeof(two));
        two[size] = '\0';
        struct key shorter = key_of(ASK(rules, "a", two));
        two[size] = 'x';
        two[size + 1] = '\0';
        expect_different(shorter, key_of(ASK(rules, "a", two)));
    }
    weir_rules_unref(rules);
}

TEST("a text is one printable line")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a], rate: 1/s}\n");
    assert_string_equal(key_of(ASK(rules, "a", "x\r\n\x01 %,\xff")).text,
                        "a=x%0d%0a%01%20%25%2c%ff");
    assert_string_equal(key_of(ASK(rules, "a", "-x")).text, "a=%2dx");
    assert_string_equal(key_of(ASK(rules, "a", "sha256:1")).text, "a=%73ha256:1");
    weir_rules_unref(rules);
}

TEST("secrets are shown as sha256")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: l, key: [header.Authorization], rate: 1/s}\n");
    /* printf 'Bearer x' | sha256sum */
    struct key key = key_of(ASK(rules, "header.authorization", "Bearer x"));
    assert_string_equal(key.text, "header.authorization=sha256:b937a6fd6074f365");
    expect_different(key, key_of(ASK(rules, "header.authorization", "Bearer y")));
    weir_rules_unref(rules);
}

TEST("another secret makes other hashes and the same texts")
{
    static const uint64_t other[2] = {1, 2};
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a], rate: 1/s}\n");
    struct test_request *test = ASK(rules, "a", "x");
    struct key one = key_of(test);
    test->query.secret = other;
    assert_int_equal(weir_rules_checks(&test->query, test->checks), 1);
    struct key two = key_of(test);
    assert_true(memcmp(one.hash, two.hash, sizeof(one.hash)) != 0);
    assert_string_equal(one.text, two.text);
    weir_rules_unref(rules);
}

TEST("the longest path and 32 long keys fit the scratch")
{
    static char text[16384] = "limits:\n", path[7200], host[300];
    for (int i = 0; i < 32; i++)
        sprintf(text + strlen(text), "- {name: g%d, key: [path, host], rate: 1/s}\n", i);
    struct weir_rules *rules = test_load(text);
    memset(path, 'a', 7167);
    path[0] = '/';
    path[1] = '%'; /* so that it is copied */
    memcpy(path + 2, "41", 2);
    memset(host, 'A', 255);
    assert_int_equal(ASK(rules, "path", path, "host", host)->count, 32);
    weir_rules_unref(rules);
}

/* The values of a key, as an operator gives them, lead to the key of requests. */
TEST("a key is found by its values")
{
    struct weir_rules *rules =
        test_load("identify: [client.ip]\n"
                  "limits:\n"
                  "- {name: l, match: {path: '/g/:id'}, key: [user, path.id, client.ip/64, a],"
                  "   on_missing: shared, rate: 1/s}\n");
    struct test_request *test = ASK(rules, "path", "/g/7", "client.ip", "2001:db8::1", "a", "x");
    struct key asked = key_of(test);
    struct weir_key_values values = {.count = 4};
    static const char *const texts[] = {"ip:2001:db8::1", "7", "2001:db8::/64", "x"};
    for (int i = 0; i < 4; i++)
        values.values[i] = weir_bytes_of(texts[i]);
    assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &test->scratch,
                                          test->checks, &test->reason),
                     1);
    expect_same(asked, key_of(test));
    values.count = 3;
    assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &test->scratch,
                                          test->checks, &test->reason),
                     WEIR_ERR_RANGE);
    weir_rules_unref(rules);
}

TEST("captures that are missing lead to the key of requests without them")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: l, match: {path: ['/a/:x', '/b/:y', '/c']}, key: [path.x, path.y],"
                  "   on_missing: shared, rate: 1/s}\n");
    static const struct {
        const char *path, *x, *y;
    } cases[] = {{"/a/1", "1", NULL}, {"/b/1", NULL, "1"}, {"/c", NULL, NULL}};
    for (int i = 0; i < 3; i++) {
        struct test_request *test = ASK(rules, "path", cases[i].path);
        struct key asked = key_of(test);
        struct weir_key_values values = {.count = 2};
        const char *const texts[] = {cases[i].x, cases[i].y};
        for (int v = 0; v < 2; v++) {
            values.values[v] =
                (struct weir_bytes){texts[v], texts[v] != NULL ? strlen(texts[v]) : 0};
        }
        assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &test->scratch,
                                              test->checks, &test->reason),
                         1);
        expect_same(asked, key_of(test));
        values.values[0] = values.values[1] = (struct weir_bytes){"1", 1};
        assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &test->scratch,
                                              test->checks, &test->reason),
                         WEIR_ERR_RANGE);
    }
    weir_rules_unref(rules);
}

TEST("a value that counts as absent leads to no key")
{
    struct weir_rules *rules =
        test_load("limits: [ {name: l, key: [header.user-agent], rate: 1/s} ]\n");
    struct test_request *test = ASK(rules, "header.user-agent", "");
    struct weir_key_values values = {.count = 1, .values = {{"", 0}}};
    assert_int_equal(test->count, 0);
    assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &test->scratch,
                                          test->checks, &test->reason),
                     WEIR_ERR_RANGE);
    assert_string_equal(test->reason.text, "key: no state without header.user-agent");
    weir_rules_unref(rules);
}

RUN_TESTS()
