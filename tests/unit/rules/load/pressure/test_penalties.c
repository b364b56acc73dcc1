/* SPDX-License-Identifier: Apache-2.0 */
/* `penalties`: what they become, and what is wrong with them. */
#include "feature/penalties/rules/penalty.h"
#include "feature/standing/settings.h"
#include "rules_test.h"
#include "test.h"

#define HOUR_NS (UINT64_C(3600) * 1000000000)

#define SHELL                                                                                      \
    "standing: {file: s.db, by: [client.ip/64, user, header.X-Api-Key]}\n"                         \
    "limits:\n"                                                                                    \
    "- {name: login, key: client.ip, rate: 5/min}\n"                                               \
    "- {name: look, key: client.ip, rate: 5/min, shadow: true}\n"                                  \
    "- {name: none, key: client.ip, rate: 5/min, enforce: 0%}\n"                                   \
    "- {name: reset, key: user, rate: 5/min}\n"

/* The first of these begins in line 7, column 13. */
#define PENALTIES(text) SHELL "penalties: [" text "]\n"
#define REST "key: user, strikes: 5/h, ladder: [warn 1h]"

static void assert_bytes(struct weir_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

TEST("there is none unless the file says so")
{
    struct weir_rules *rules = test_load(SHELL);
    assert_int_equal(weir_rules_penalty_count(rules), 0);
    assert_int_equal(weir_rules_penalty_find(rules, (struct weir_bytes){"login", 5}), -1);
    weir_rules_unref(rules);
}

TEST("everything is read")
{
    struct weir_rules *rules = test_load(SHELL "penalties:\n"
                                               "- name: brute-force\n"
                                               "  key: [client.ip/64]\n"
                                               "  strikes: 5/h\n"
                                               "  for: [login]\n"
                                               "  outcomes: [401, 5xx]\n"
                                               "  ladder: [warn 1h, throttle 2h, suspend 10min]\n"
                                               "  forgive: 2d\n"
                                               "  strikes_while_suspended: true\n");
    assert_int_equal(weir_rules_penalty_count(rules), 1);
    assert_int_equal(weir_rules_penalty_find(rules, (struct weir_bytes){"brute-force", 11}), 0);
    const struct weir_penalty *penalty = weir_rules_penalty(rules, 0);
    assert_bytes(penalty->name, "brute-force");
    assert_bytes(weir_rules_settings(rules)->standing->kinds[penalty->kind].name, "client.ip");
    assert_true(penalty->while_suspended);
    assert_int_equal(penalty->ladder.forgive_ns, 48 * HOUR_NS);
    assert_int_equal(penalty->ladder.count, 3);
    assert_int_equal(penalty->ladder.steps[0].level, WEIR_STANDING_WARNED);
    assert_int_equal(penalty->ladder.steps[0].term_ns, HOUR_NS);
    assert_int_equal(penalty->ladder.steps[1].level, WEIR_STANDING_THROTTLED);
    assert_int_equal(penalty->ladder.steps[1].term_ns, 2 * HOUR_NS);
    assert_int_equal(penalty->ladder.steps[2].level, WEIR_STANDING_SUSPENDED);
    assert_int_equal(penalty->ladder.steps[2].term_ns, HOUR_NS / 6);
    const struct weir_limit *limit = weir_rules_penalty_limit(rules, 0);
    assert_int_equal(limit->spec.algorithm, WEIR_SLIDING_LOG);
    assert_int_equal(limit->spec.rate, 6);
    assert_int_equal(limit->spec.window_ns, HOUR_NS);
    assert_string_equal(limit->name, "brute-force~strikes");
    static const bool denials[] = {true, false, false, false};
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(weir_rules_penalty_denial(rules, 0, i), denials[i]);
    assert_false(weir_rules_penalty_denial(rules, 0, UINT32_MAX)); /* a command's */
    static const struct {
        unsigned status;
        bool strike;
    } outcomes[] = {{0, false},   {99, false}, {200, false}, {400, false}, {401, true},
                    {402, false}, {500, true}, {599, true},  {600, false}};
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        assert_int_equal(weir_rules_penalty_outcome(rules, 0, outcomes[i].status),
                         outcomes[i].strike);
    weir_rules_unref(rules);
}

TEST("all limits that deny are the default")
{
    struct weir_rules *rules = test_load(PENALTIES("{name: a, " REST "}"));
    static const bool denials[] = {true, false, false, true}; /* not in shadow, nor at 0 % */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(weir_rules_penalty_denial(rules, 0, i), denials[i]);
    assert_false(weir_rules_penalty_outcome(rules, 0, 401));
    assert_false(weir_rules_penalty(rules, 0)->while_suspended);
    assert_int_equal(weir_rules_penalty(rules, 0)->ladder.forgive_ns, 24 * HOUR_NS);
    weir_rules_unref(rules);
}

TEST("outcomes may be the only strikes")
{
    struct weir_rules *rules = test_load(PENALTIES("{name: a, for: [], outcomes: 401, " REST "}"));
    for (uint32_t i = 0; i < 4; i++)
        assert_false(weir_rules_penalty_denial(rules, 0, i));
    assert_true(weir_rules_penalty_outcome(rules, 0, 401));
    weir_rules_unref(rules);
}

TEST("users and keys may be revoked")
{
    struct weir_rules *rules =
        test_load(PENALTIES("{name: a, key: user, strikes: 1/h, ladder: [warn 1h, revoke]}, "
                            "{name: b, key: header.x-api-key, strikes: 9999/h, ladder: revoke}"));
    assert_int_equal(weir_rules_penalty_count(rules), 2);
    const struct weir_ladder *ladder = &weir_rules_penalty(rules, 0)->ladder;
    assert_int_equal(ladder->steps[1].level, WEIR_STANDING_REVOKED);
    assert_int_equal(ladder->steps[1].term_ns, WEIR_NEVER);
    assert_int_equal(weir_rules_penalty_limit(rules, 1)->spec.rate, 10000);
    weir_rules_unref(rules);
}

struct names {
    char text[256];
};

static int note(void *context, struct weir_limit *limit, const char *name)
{
    struct names *names = context;
    if (strcmp(name, "penalties") == 0)
        strcat(strcat(names->text, limit->name), " ");
    return 0;
}

TEST("their limits are made known to the store")
{
    struct weir_rules *rules = test_load(PENALTIES("{name: a, " REST "}, {name: b, " REST "}"));
    struct names names = {{0}};
    assert_int_equal(weir_rules_prepare(rules, note, &names), 0);
    assert_string_equal(names.text, "a~strikes b~strikes ");
    weir_rules_unref(rules);
}

TEST("mistakes in the section are named")
{
    static const struct test_problem_case cases[] = {
        {"limits: []\npenalties: []\n", "2:1: `penalties` needs the section `standing:`\n"},
        {"standing: {by: [user]}\nlimits: []\npenalties: []\n",
         "3:1: `penalties` needs `file` in `standing`, or `store: redis`: there the steps of "
         "callers are kept\n"},
        {SHELL "penalties: 5\n", "7:12: `penalties` must be a list of at most 16 mappings\n"},
        {PENALTIES("5"), "7:13: a penalty must be a mapping, not a text\n"},
        {PENALTIES("{}"), "7:13: `name` is missing in a penalty\n"
                          "7:13: `key` is missing in a penalty\n"
                          "7:13: `strikes` is missing in a penalty\n"
                          "7:13: `ladder` is missing in a penalty\n"},
        {PENALTIES("{name: a, forgiv: 1d, " REST "}"),
         "7:23: a penalty has no key `forgiv`; did you mean `forgive`?\n"},
        {PENALTIES("{name: a, " REST "}, {name: a, " REST "}"),
         "7:75: two penalties are called `a`\n"},
        {PENALTIES("{name: a, forgive: 0s, " REST "}"), "7:32: `0s` is not a time: it is 0 long\n"},
        {PENALTIES("{name: a, forgive: 9ms, " REST "}"),
         "7:32: `forgive` must be 1s to 3660d, not `9ms`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

#define OF(key, strikes, ladder)                                                                   \
    PENALTIES("{name: a, key: " key ", strikes: " strikes ", ladder: " ladder "}")

TEST("mistakes in keys strikes and ladders are named")
{
    static const struct test_problem_case cases[] = {
        {OF("usr", "5/h", "warn 1h"),
         "7:28: `usr` is not in `by` of `standing`; did you mean `user`?\n"},
        {OF("client.ip/48", "5/h", "warn 1h"),
         "7:28: `client.ip/48` is not in `by` of `standing`; did you mean `client.ip/64`?\n"},
        {OF("[user, user]", "5/h", "warn 1h"),
         "7:28: `key` of a penalty must be one attribute of `by` of `standing`\n"},
        {OF("user", "0/h", "warn 1h"),
         "7:43: `strikes` must be 1 to 9999 in a window, such as `5/h`\n"},
        {OF("user", "10000/h", "warn 1h"),
         "7:43: `strikes` must be 1 to 9999 in a window, such as `5/h`\n"},
        {OF("user", "5/h burst 3", "warn 1h"),
         "7:43: `strikes` must be 1 to 9999 in a window, such as `5/h`\n"},
        {OF("user", "unlimited", "warn 1h"),
         "7:43: `strikes` must be 1 to 9999 in a window, such as `5/h`\n"},
        {OF("user", "5/367d", "warn 1h"),
         "7:43: `strikes`: the window of a rate must be 1ms to 366d\n"},
        {OF("user", "5/h", "[]"),
         "7:56: `ladder` must be a list of 1 to 16 steps, such as [warn 1h, suspend 10min]\n"},
        {OF("user", "5/h", "[warn]"), "7:57: `ladder`: warn needs a duration, such as `10min`\n"},
        {OF("user", "5/h", "[warn 1ms]"),
         "7:57: `ladder`: the duration of a step must be 1s to 3660d\n"},
        {OF("user", "5/h", "[revoke, warn 1h]"),
         "7:57: no step comes after `revoke`, which has no end: remove those\n"},
        {OF("client.ip/64", "5/h", "[warn 1h, revoke]"),
         "7:74: a ladder on addresses cannot revoke, because addresses change hands: use "
         "`suspend` with a duration\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("mistakes in what is a strike are named")
{
    static const struct test_problem_case cases[] = {
        {PENALTIES("{name: a, for: [logn], " REST "}"),
         "7:29: `for` names no limit of this file: `logn`; did you mean `login`?\n"},
        {"standing: {by: [user], file: h}\nlimits: [5]\npenalties: [{name: a, for: [logn], " REST
         "}]\n",
         "2:10: a limit must be a mapping, not a text\n"
         "3:29: `for` names no limit of this file: `logn`\n"},
        {PENALTIES("{name: a, for: [look, none], " REST "}"),
         "7:29: `look` denies nothing, so it gives no strikes\n"
         "7:35: `none` denies nothing, so it gives no strikes\n"},
        {PENALTIES("{name: a, for: [], " REST "}"),
         "7:28: nothing is a strike: name limits in `for`, or statuses in `outcomes`\n"},
        {PENALTIES("{name: a, for: {}, " REST "}"), "7:28: `for` must be a list of limits\n"},
        {PENALTIES("{name: a, outcomes: [], " REST "}"),
         "7:33: `outcomes` must be a status or a list: [401, 403]\n"},
    };
    TEST_REFUSED_ALL(cases);
}

RUN_TESTS()
