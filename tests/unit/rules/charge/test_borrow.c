/* SPDX-License-Identifier: Apache-2.0 */
/* `borrow`, `reserve` and `pool`: what may be borrowed, and which files are refused. */
#include "rules/charge/borrow.h"
#include "rules_test.h"
#include "test.h"

static struct weir_loans loans;

static struct test_request *ask(const struct weir_rules *rules, const char *const *pairs)
{
    struct test_request *test = test_ask(rules, pairs);
    test->query.loans = &loans;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}
#define BORROW(rules, ...) ask(rules, (const char *const[]){__VA_ARGS__, NULL})

/* Expects "limit<-pool{key}*cost ..." of the first check of each loan. */
static void expect_loans(const struct weir_rules *rules, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    for (uint16_t i = 0; i < loans.count; i++) {
        const struct weir_loan *loan = &loans.loans[i];
        const struct weir_check *check = &loans.checks[loan->first];
        struct weir_rule_info limit, pool;
        weir_rules_info(rules, loan->rule, &limit);
        weir_rules_info(rules, loan->pool, &pool);
        assert_string_equal(limit.pool, pool.name);
        assert_true(pool.lends && !limit.lends);
        for (uint16_t c = 0; c < loan->count; c++)
            assert_int_equal(loans.checks[loan->first + c].rule, loan->pool);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s<-%s{%.*s}*%llu",
                                 i > 0 ? " " : "", limit.name, pool.name, (int)check->key.size,
                                 check->key.data, (unsigned long long)check->cost);
    }
    assert_string_equal(text, expected);
}

TEST("a paid caller borrows from the bucket of the free plans")
{
    struct weir_rules *rules = test_load(
        "limits:\n"
        "- {name: paid, match: {plan: [pro, max]}, key: [user], rate: 5/min, pool: free}\n"
        "- {name: free, match: {plan: free}, key: [plan], rate: 100/min, cost: 3,\n"
        "   borrow: true}\n");
    struct test_request *free = BORROW(rules, "user", "ann", "plan", "free");
    test_expect(free, "free{plan=free}");
    expect_loans(rules, "");
    struct weir_check own = free->checks[0];
    struct test_request *paid = BORROW(rules, "user", "bob", "plan", "pro");
    test_expect(paid, "paid{user=bob}");
    expect_loans(rules, "paid<-free{plan=free}*3");
    assert_memory_equal(loans.checks[0].hash, own.hash, sizeof(own.hash));
    assert_ptr_equal(loans.checks[0].limit, own.limit);
    weir_rules_unref(rules);
}

TEST("the pool is met with its key and not with its match")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: pool, match: {method: POST, path: /a}, key: [org, method], rate: 9/s,\n"
                  "   borrow: true}\n"
                  "- {name: own, key: [user], rate: 1/s, pool: pool}\n");
    BORROW(rules, "user", "ann", "org", "acme", "method", "GET", "path", "/b");
    expect_loans(rules, "own<-pool{org=acme,method=POST}*1");
    BORROW(rules, "user", "ann", "method", "GET", "path", "/b"); /* no org: nothing to borrow */
    expect_loans(rules, "");
    weir_rules_unref(rules);
}

TEST("a pool is asked once")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [user], rate: 1/s, pool: pool}\n"
                  "- {name: pool, key: [], rate: [9/s, 99/h], borrow: true}\n"
                  "- {name: b, key: [], rate: [2/s, 9/h], pool: pool}\n");
    struct test_request *test = BORROW(rules, "user", "ann");
    assert_int_equal(test->count, 5);
    assert_int_equal(loans.check_count, 2);
    expect_loans(rules, "a<-pool{}*1 b<-pool{}*1");
    weir_rules_unref(rules);
}

TEST("what is in the way of a pool leaves nothing to borrow")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: own, key: [user], rate: 1/s, pool: pool}\n"
                  "- {name: pool, match: {path: /x}, key: [org], on_missing: deny, rate: 9/s,\n"
                  "   borrow: true, cost: {from: header.tokens, default: 2, max: 9}}\n");
    BORROW(rules, "user", "ann", "org", "acme");
    expect_loans(rules, "own<-pool{org=acme}*2");
    BORROW(rules, "user", "ann");
    expect_loans(rules, "");
    struct test_request *bad = BORROW(rules, "user", "ann", "org", "acme", "header.tokens", "many");
    assert_int_equal(bad->count, 1); /* the request is not refused for its pool's sake */
    expect_loans(rules, "");
    weir_rules_unref(rules);
}

TEST("a pool of one plan has the rates of that plan")
{
    struct weir_rules *rules =
        test_load("default_plan: free\n"
                  "plans:\n"
                  "  free: {pool: 7/s, own: 1/s}\n"
                  "  pro: {pool: 70/s, own: 2/s}\n"
                  "limits:\n"
                  "- {name: pool, match: {plan: free}, key: [plan], rate: plan, borrow: true}\n"
                  "- {name: own, match: {plan: pro}, key: [user], rate: plan, pool: pool}\n");
    BORROW(rules, "user", "ann", "plan", "pro");
    assert_int_equal(loans.count, 1);
    assert_int_equal(loans.checks[0].limit->spec.rate, 7);
    weir_rules_unref(rules);
}

TEST("a reserve lowers what borrowers meet")
{
    static const struct {
        const char *rate;
        uint64_t capacity[2];
    } cases[] = {
        {"rate: 10/s", {8, 0}},
        {"rate: [10/s, 101/h]", {8, 80}},
        {"rate: 10/s burst 5, algorithm: gcra", {4, 0}},
        {"quota: 1000/month, rollover: 10%", {900, 0}}, /* 800 and what came over */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "limits:\n- {name: own, key: [user], rate: 1/s, pool: pool}\n"
                 "- {name: pool, key: [], borrow: true, reserve: 20%%, %s}\n",
                 cases[i].rate);
        struct weir_rules *rules = test_load(text);
        BORROW(rules, "user", "ann");
        assert_int_equal(loans.count, 1);
        for (uint16_t c = 0; c < loans.check_count; c++) {
            assert_int_equal(loans.checks[c].limit->capacity, cases[i].capacity[c]);
            assert_string_equal(loans.checks[c].limit->name, c == 0 ? "pool" : "pool#2");
        }
        weir_rules_unref(rules);
    }
}

TEST("borrowers meet a pool that decides")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: own, key: [user], rate: 1/s, pool: pool}\n"
                  "- {name: pool, key: [], rate: 9/s, shadow: true, borrow: true}\n");
    struct test_request *test = BORROW(rules, "user", "ann");
    assert_int_equal(test->checks[1].flags, WEIR_CHECK_SHADOW);
    assert_int_equal(loans.checks[0].flags, 0);
    weir_rules_unref(rules);
}

TEST("a pool with a reserve is decided exactly")
{
    struct weir_rules *rules =
        test_load("store: {redis: {url: redis://127.0.0.1, mode: leased}, nodes: 2}\n"
                  "limits:\n"
                  "- {name: own, key: [user], rate: 1/s, pool: pool}\n"
                  "- {name: pool, key: [], rate: 9/s, borrow: true, reserve: 20%}\n");
    struct test_request *test = BORROW(rules, "user", "ann");
    assert_int_equal(test->checks[0].flags, WEIR_CHECK_LEASED);
    assert_int_equal(test->checks[1].flags, 0);
    assert_int_equal(loans.checks[0].flags, 0);
    weir_rules_unref(rules);
}

TEST("more checks than there is room for are refused")
{
    char text[4096] = "limits:\n";
    for (int i = 0; i < 31; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "- {name: l%d, key: [user], rate: 1/s%s}\n", i,
                 i == 0 ? ", pool: pool" : "");
    }
    size_t end = strlen(text);
    snprintf(text + end, sizeof(text) - end,
             "- {name: pool, match: {path: /x}, key: [], rate: [9/s, 99/h], borrow: true}\n");
    struct weir_rules *rules = test_load(text);
    struct test_request *test = BORROW(rules, "user", "ann");
    test_expect(test, "-4 more than 32 limits apply to this request");
    assert_int_equal(test->count, WEIR_ERR_TOO_LARGE);
    weir_rules_unref(rules);
}

TEST("pools that mean nothing are refused")
{
    static const char *const cases[][3] = {
        {"pool: pol", "borrow: true",
         "2:45: `pool` names no limit of this file: `pol`; did you mean `pool`?\n"},
        {"pool: own", "borrow: true", "2:45: a limit cannot borrow from itself\n"},
        {"pool: pool", "borrow: false", "2:45: `pool` lends nothing: give it `borrow: true`\n"},
        {"pool: pool", "shadow: false", "2:45: `pool` lends nothing: give it `borrow: true`\n"},
        {"pool: pool", "borrow: perhaps", "3:48: `borrow` must be true or false, not `perhaps`\n"},
        {"pool: pool", "borrow: true, pool: own",
         "3:48: a limit with `pool` cannot lend\n"
         "3:60: `own` lends nothing: give it `borrow: true`\n"},
        {"pool: pool, on_deny: charge", "borrow: true",
         "2:39: `pool` does not work with `on_deny: charge`: a borrowed request would be charged "
         "twice\n"},
        {"pool: pool", "borrow: true, on_deny: charge",
         "3:48: `borrow` does not work with `on_deny: charge`: a loan that fails would be charged "
         "here\n"},
        {"pool: pool", "reserve: 10%",
         "2:45: `pool` lends nothing: give it `borrow: true`\n"
         "3:40: `reserve` goes with `borrow: true`\n"},
        {"pool: pool", "borrow: true, reserve: 100%",
         "3:63: `reserve` must be 1% to 99%, as in `reserve: 20%`\n"},
        {"pool: pool", "borrow: true, reserve: 90%",
         "3:63: a reserve of 90% of 9 leaves nothing to borrow\n"},
        {"pool: pool", "borrow: true, reserve: 10%, algorithm: sliding_log",
         "3:54: `reserve` goes with windows, buckets, queues and quotas, not with sliding_log\n"},
        {"pool: pool", "borrow: true, match: {plan: [free, basic]}",
         "3:40: `plan` is in the key, but `match` allows more than one value (`free`, "
         "`basic`): a borrower could not tell which one to charge\n"},
        {"pool: pool", "borrow: true, match: {plan: 'f*'}",
         "3:40: `plan` is in the key, but `match` allows more than one value (`f*`): a borrower "
         "could not tell which one to charge\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "limits:\n- {name: own, key: [user], rate: 1/s, %s}\n"
                 "- {name: pool, key: [plan], rate: 9/s, %s}\n",
                 cases[i][0], cases[i][1]);
        test_refused(text, cases[i][2]);
    }
    test_refused("limits:\n- {name: own, key: [], rate: 1/s, pool: pool}\n"
                 "- {name: pool, key: [], algorithm: concurrency, limit: 3, borrow: true}\n",
                 "2:35: a limit and its pool must both be concurrency limits, or neither\n");
    /* 2^31 is what the counters of a second's sliding window hold in 12 bytes. */
    test_refused(
        "limits:\n- {name: pool, key: [], rate: 2147483700/s, borrow: true, reserve: 1%}\n",
        "2:68: a sliding window of this length counts to 2147483647 where its capacity is "
        "below that, and the pool's is above: with a reserve it must be below, or a "
        "fixed_window\n");
    test_refused("limits:\n- {name: pool, key: [], rate: unlimited, borrow: true}\n",
                 "2:50: an unlimited limit has nothing to lend\n");
    test_refused("store: {redis: {url: redis://127.0.0.1}, nodes: 2}\n"
                 "limits:\n- {name: pool, key: [], rate: 9/s, borrow: true, reserve: 20%, mode: "
                 "leased}\n",
                 "3:64: a pool with a reserve is always decided exactly; remove `mode`\n");
}

RUN_TESTS()
