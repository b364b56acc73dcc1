/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/sticky/rules/sticky.h"
#include "test.h"

#include <unistd.h>

#include "../../../lib/rules_test.h"

#define HEAD                                                                                       \
    "sticky: {by: user, self: b, peers: PEERS, deadline: 50ms, token: abc}\n"                      \
    "limits:\n"
#define ONE "  - {name: a, key: [user], rate: [5/min, 50/hour]}\n"

/* With a file of three peers in the place of PEERS. */
static char *with_peers(const char *text)
{
    static char out[4096], path[64];
    static const char peers[] = "a redis://h:1\nb redis://h:2\nc redis://h:3\n";
    snprintf(path, sizeof path, "/tmp/weir-test-peers-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(peers, 1, sizeof peers - 1, file), sizeof peers - 1);
    fclose(file);
    const char *at = strstr(text, "PEERS");
    assert_non_null(at);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, path, at + 5);
    return out;
}

static int end_peers(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/weir-test-peers-%d", (int)getpid());
    return remove(path);
}

TEST("the section names nodes and how to reach them")
{
    struct weir_rules *rules = test_load(with_peers(HEAD ONE));
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_string_equal(settings->sticky.by, "user");
    assert_int_equal(settings->sticky.count, 3);
    assert_int_equal(settings->sticky.self, 1);
    assert_string_equal(settings->sticky.peers[2].url, "redis://h:3");
    assert_string_equal(settings->sticky.access.password, "abc");
    assert_int_equal(settings->store.deadline_ns, 50000000);
    assert_int_equal(settings->store.nodes, 3);
    const struct weir_limit *limit = ASK(rules, "user", "x")->checks[0].limit;
    assert_int_equal(limit->spec.rate, 5);
    assert_int_equal(limit->local->spec.rate, 1); /* a third, rounded down */
    weir_rules_unref(rules);
}

TEST("checks of one user have one tag and those per node none")
{
    struct weir_rules *rules =
        test_load(with_peers(HEAD ONE "  - {name: b, key: [path, user], rate: 9/min}\n"
                                      "  - {name: c, key: [], rate: 9/min, per_node: true}\n"));
    struct test_request *test = ASK(rules, "user", "x", "path", "/1");
    assert_int_equal(test->count, 4);
    uint64_t tag = test->checks[0].tag;
    assert_true(tag != 0);
    assert_true(test->checks[1].tag == tag && test->checks[2].tag == tag);
    assert_true(test->checks[3].tag == 0);
    assert_true(ASK(rules, "user", "y", "path", "/1")->checks[0].tag != tag);
    weir_rules_unref(rules);
}

TEST("every node is home of some tags")
{
    struct weir_rules *rules = test_load(with_peers(HEAD ONE));
    unsigned of[3] = {0, 0, 0};
    for (uint64_t tag = 1; tag <= 3000; tag++)
        of[weir_rules_sticky_home(rules, tag * UINT64_C(0x9E3779B97F4A7C15))]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(of[i], 850, 1150);
    weir_rules_unref(rules);
}

TEST("a limit is found by its name and numbers")
{
    struct weir_rules *rules =
        test_load(with_peers(HEAD ONE "  - {name: plan, key: [user], rate: plan}\n"
                                      "plans: {free: {plan: 10/min}, paid: {plan: 99/min}}\n"
                                      "default_plan: free\n"));
    const struct weir_limit *limit = ASK(rules, "user", "x")->checks[1].limit;
    struct weir_limit_spec spec = limit->spec;
    assert_string_equal(limit->name, "a#2");
    assert_ptr_equal(weir_rules_limit_like(rules, (struct weir_bytes){"a#2", 3}, &spec), limit);
    assert_null(weir_rules_limit_like(rules, (struct weir_bytes){"a", 1}, &spec));
    assert_null(weir_rules_limit_like(rules, (struct weir_bytes){"b#1", 3}, &spec));
    spec.rate++;
    assert_null(weir_rules_limit_like(rules, (struct weir_bytes){"a#2", 3}, &spec));
    limit = ASK(rules, "user", "x", "plan", "paid")->checks[2].limit;
    assert_int_equal(limit->spec.rate, 99);
    assert_ptr_equal(weir_rules_limit_like(rules, (struct weir_bytes){"plan", 4}, &limit->spec),
                     limit);
    struct weir_limit_spec record = {.algorithm = WEIR_GCRA,
                                     .rate = 1,
                                     .window_ns = UINT64_C(600000000000),
                                     .burst = 1,
                                     .segments = 0};
    assert_non_null(weir_rules_limit_like(rules, (struct weir_bytes){NULL, 0}, &record));
    record.burst = 2;
    assert_null(weir_rules_limit_like(rules, (struct weir_bytes){NULL, 0}, &record));
    weir_rules_unref(rules);
}

TEST("a quota takes the bounds of its calendar")
{
    struct weir_rules *rules =
        test_load(with_peers(HEAD ONE "  - {name: month, key: [user], quota: 5/month}\n"
                                      "  - {name: day, key: [user], quota: 5/day}\n"));
    const struct weir_limit *limit = ASK(rules, "user", "x")->checks[2].limit;
    assert_string_equal(limit->name, "month");
    struct weir_limit_spec spec = {
        .algorithm = WEIR_QUOTA, .rate = 99, .calendar = limit->spec.calendar};
    assert_true(weir_rules_quota_bounds(rules, weir_bytes_of("month"), &spec));
    assert_ptr_equal(spec.bounds, limit->spec.bounds);
    assert_int_equal(spec.bound_count, limit->spec.bound_count);
    assert_int_equal(spec.rate, 99);
    assert_false(weir_rules_quota_bounds(rules, weir_bytes_of("day"), &spec));
    assert_false(weir_rules_quota_bounds(rules, weir_bytes_of("a"), &spec));
    assert_false(weir_rules_quota_bounds(rules, weir_bytes_of("none"), &spec));
    assert_false(weir_rules_quota_bounds(rules, (struct weir_bytes){NULL, 0}, &spec));
    weir_rules_unref(rules);
}

static void refuses(const char *text, const char *says)
{
    static char problems[TEST_PROBLEMS_MAX];
    assert_null(test_parse(text, problems));
    if (!strstr(problems, says))
        print_error("%s\n%s", text, problems);
    assert_non_null(strstr(problems, says));
}

TEST("what does not go with it is refused")
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {HEAD "  - {name: a, key: [path], rate: 5/min}\n", "`user`, by which `sticky` chooses"},
        {HEAD "  - {name: a, key: [], rate: 5/min}\n", "`per_node: true`"},
        {HEAD "  - {name: a, key: [user], rate: 5/min, top_up: 1d}\n", "`top_up`"},
        {HEAD "  - {name: a, key: [], rate: 5/min, per_node: true, top_up: 1d}\n",
         "`top_up` does not work with `sticky`"},
        {HEAD "  - {name: a, key: [user], algorithm: concurrency, limit: 5}\n",
         "concurrency does not work with `sticky`"},
        {HEAD ONE "  - {name: b, key: [user], algorithm: concurrency, limit: 5, per_node: true}\n",
         "concurrency does not work with `sticky`"},
        {HEAD "  - {name: a, key: [user], rate: 5/min, on_missing: client.ip}\n",
         "skip, shared or deny"},
        {HEAD "  - {name: a, key: [user], rate: 5/min, on_missing: [client.ip, shared]}\n",
         "skip, shared or deny"},
        {HEAD "  - {name: a, key: [user], rate: 5/min, borrow: true}\n",
         "`borrow` does not work with `sticky`"},
        {HEAD "  - {name: a, key: [user], rate: 5/min, mode: leased}\n", "needs a shared store"},
        {"store: {redis: 'redis://h', nodes: 2}\n" HEAD ONE, "does not go with `store`"},
        {"sticky: {by: user, self: d, peers: PEERS}\nlimits: []\n", "`self` names no peer"},
        {"sticky: {by: user, peers: PEERS}\nlimits: []\n", "`sticky` needs `self`"},
        {"sticky: {by: user, self: a, peers: PEERS.not}\nlimits: []\n", "cannot read"},
        {"sticky: {by: user, self: a, peers: PEERS, token: a, token_file: b}\nlimits: []\n",
         "are the same"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text =
            strstr(cases[i].text, "PEERS") ? with_peers(cases[i].text) : cases[i].text;
        refuses(text, cases[i].says);
    }
    refuses("limits: [{name: a, key: [user], rate: 5/min, per_node: true}]\n",
            "`per_node` goes with the section `sticky`");
}

#define BY_CLIENT "sticky: {by: client.ip, self: b, peers: PEERS}\nlimits:\n"

/* A tag is of the prefix: with two lengths, one decision would have two homes. */
TEST("an address chooses the node by one prefix length")
{
    static const char says[] = "`client.ip/64` chooses the node by another prefix than `client.ip`";
    refuses(with_peers(BY_CLIENT "  - {name: a, key: [client.ip], rate: 5/min}\n"
                                 "  - {name: b, key: [client.ip/64], rate: 9/min}\n"),
            says);
    weir_rules_unref(
        test_load(with_peers(BY_CLIENT "  - {name: a, key: [client.ip/64], rate: 5/min}\n"
                                       "  - {name: b, key: [client.ip/64, path], rate: 9/min}\n"
                                       "  - name: c\n    key: [client.ip]\n    rate: 9/min\n"
                                       "    per_node: true\n")));
}

RUN_TESTS_WITH(NULL, end_peers)
