/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the overrides of a keys file, and how many it may have. */
#include "keys_test.h"
#include "test.h"

#include <inttypes.h>

TEST("problems of overrides are reported with their places")
{
    refused(ALICE ": { user: a, limits: { apii: 5/s, nothing-like-it: 5/s } }\n",
            "1:88: no limit is called `apii`; did you mean `api`?\n"
            "1:99: no limit is called `nothing-like-it`\n");
    refused(ALICE ": { user: a, limits: { api: 5/fortnight, org: plan, both: 5/s burst 9 } }\n",
            "1:93: `5/fortnight`: unknown unit `fortnight`; units are ms, s, sec, min, h, hour, d, "
            "day, w, week\n"
            "1:111: `plan` is not allowed for one caller\n"
            "1:123: a burst needs a bucket (token_bucket, gcra, leaky_bucket); sliding_window has "
            "none\n");
    refused(ALICE
            ": { user: a, limits: { both: [5/s, unlimited], api: [], org: {}, month: [[1]] } }\n",
            "1:94: `unlimited` is not allowed in a list of rates\n"
            "1:117: must be a rate, as in `5000/min burst 200`, or a list of them\n"
            "1:126: must be a rate, as in `5000/min burst 200`, or a list of them\n"
            "1:137: must be a rate, as in `5000/min burst 200`, or a list of them\n");
    refused(ALICE ": { user: a, limits: { both: [5/min, 6/s], org: 7/7ms, slots: 5/s, month: "
                  "[5/month, 6/month] } }\n",
            "1:94: beside `5/min` the rate `6/s` never denies anything; remove it\n"
            "1:113: `segments` 6 does not divide the window; the nearest that does is 5\n"
            "1:127: concurrency limits requests in flight, not a rate: remove the unit\n"
            "1:139: a quota or a concurrency limit takes exactly one number\n");
    refused(ALICE ": { user: a, limits: { api: 5/s, api: 5/s } }\n",
            "1:103: the limit `api` is given twice\n");
    refused(ALICE ": { user: a, limits: [api], limits: {} }\n",
            "1:86: `limits` must be a mapping of limits to rates\n"
            "1:93: `limits` is given twice\n");
    refused(ALICE ": { user: a, limits: { [api]: 5/s, api: 5/s } }\n",
            "1:88: a key must be a word\n");
    refused(ALICE ": { user: a, limits: { both: '1/s,2/min,3/h,4/d,5/w,6/2w,7/3w,8/4w,9/5w', api: "
                  "'5/s,' } }\n",
            "1:94: more than 8 rates of one limit\n"
            "1:144: `` is not a rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`\n");
}

TEST("a wrong rules file is reported once")
{
    char problems[4096];
    struct weir_rules *rules = parse(
        "identify: header.x-api-key\nkeys: keys.yaml\nlimits:\n- {name: api, key: [user], rate: "
        "5/fortnight}\n",
        ALICE ": { user: a, limits: { api: 5/s, apo: 1/s } }\n", problems, sizeof(problems));
    assert_null(rules);
    assert_string_equal(problems, "4:34: `5/fortnight`: unknown unit `fortnight`; units are ms, s, "
                                  "sec, min, h, hour, d, day, w, week\n"
                                  "1:98: no limit is called `apo`; did you mean `api`?\n");
}

/* Digests that begin as differently as true ones, for that is how they are found. */
#define DIGEST "%016" PRIx64 "%048d"

static uint64_t mixed(int number)
{
    return ((uint64_t)number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* A million callers may have the same few; not a million different ones. */
TEST("the number of different overrides is bounded")
{
    enum { MOST = 4096 };
    static char text[(MOST + 2) * 128];
    size_t used = 0;
    for (int i = 0; i < MOST; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 DIGEST ": { user: u%d, limits: { api: %d/min } }\n", mixed(i), 0,
                                 i, i + 1);
    }
    weir_rules_unref(load(text));
    /* As often as one likes. */
    snprintf(text + used, sizeof(text) - used, DIGEST ": { user: more, limits: { api: 77/min } }\n",
             mixed(MOST), 0);
    weir_rules_unref(load(text));
    snprintf(text + used, sizeof(text) - used,
             DIGEST ": { user: more, limits: { api: 77/h } }\n" DIGEST ": { user: x, plan: y }\n",
             mixed(MOST), 0, mixed(MOST + 1), 0);
    refused(text, "4097:96: more than 4096 different limits of callers in this file; let callers "
                  "with equal numbers share a plan\n");
}

TEST("the number of different sets is bounded")
{
    enum { MOST = 65536, EACH = 256 };
    static char text[(MOST + 1) * 160];
    size_t used = 0;
    for (int i = 0; i < MOST; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 DIGEST ": { user: u, limits: { api: %d/min, both: %d/s } }\n",
                                 mixed(i), 0, i % EACH + 1, i / EACH + 1);
    }
    weir_rules_unref(load(text));
    snprintf(text + used, sizeof(text) - used, DIGEST ": { user: u, limits: { api: 1/min } }\n",
             mixed(MOST), 0);
    refused(text, "65537:1: more than 65536 different sets of callers' limits in this file; let "
                  "callers with equal numbers share a plan\n");
}

TEST("a caller has at most 64 overrides")
{
    static char text[65536], keys[65536];
    char *at = text, problems[4096];
    at += sprintf(at, "identify: header.x-api-key\nkeys: keys.yaml\nlimits:\n");
    for (int i = 0; i < 65; i++)
        at += sprintf(at, "- {name: l%d, match: {path: /%d}, key: [user], rate: 1/s}\n", i, i);
    for (int most = 64; most <= 65; most++) {
        at = keys + sprintf(keys, ALICE ": { user: alice, limits: { l0: 2/s");
        for (int i = most - 1; i > 0; i--)
            at += sprintf(at, ", l%d: 2/s", i);
        sprintf(at, " } }\n");
        struct weir_rules *rules = parse(text, keys, problems, sizeof(problems));
        assert_string_equal(problems,
                            most == 64 ? "" : "1:727: more than 64 limits of one caller\n");
        for (int i = 0; rules != NULL && i < 64; i++) {
            char path[16];
            snprintf(path, sizeof(path), "/%d", i);
            assert_int_equal(ask(rules, path, "alice-key")->limit->spec.rate, 2);
        }
        weir_rules_unref(rules);
    }
}

RUN_TESTS_WITH(make_folder, remove_folder)
