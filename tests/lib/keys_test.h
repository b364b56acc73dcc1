/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of callers share: rules with a keys file, and one request of a key. */
#ifndef KEYS_TEST_H
#define KEYS_TEST_H

#include <unistd.h>

#include "feature/identity/rules/caller.h"
#include "rules_test.h"
#include "temporary.h"
#include "text_file.h"

/* SHA-256 of "alice-key", "bob-key", "carol-key". */
#define ALICE "72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20"
#define BOB "9b94dc1a51a38769f135edf04033ad7f2f487b6c25929be7a861cfc1ab10cf98"
#define CAROL "368c3387fc9b5ce6ab156ad952031f52bc9154e89a727020cd314f8910a21823"

static char folder[TEMPORARY_MAX];

/* Limits of every kind. */
static const char callers_rules[] =
    "identify: [header.x-api-key, client.ip/64]\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: {api: 100/min, month: 1000/month}, pro: {api: 1000/min burst 300,\n"
    "                month: unlimited}, odd: {api: 5/s, month: 50/day} }\n"
    "limits:\n"
    "- {name: api, match: {path: /api}, key: [user], algorithm: token_bucket, rate: plan}\n"
    "- {name: month, match: {path: /month}, key: [user], quota: plan, rollover: 20%}\n"
    "- {name: org, match: {path: /org}, key: [org], rate: 60/min, segments: 6, strict: true}\n"
    "- {name: both, match: {path: /both}, key: [user], rate: [10/s, 500/h]}\n"
    "- {name: slots, match: {path: /slots}, key: [user], algorithm: concurrency, limit: 2,\n"
    "   life: 7s}\n"
    "- {name: free, match: {path: /free}, key: [user], rate: unlimited}\n"
    "- {name: back, match: {path: /back}, key: [user], rate: 100/min, refund_on: [5xx]}\n"
    "- {name: queue, match: {path: /queue}, key: [user], algorithm: leaky_bucket, queue: true,\n"
    "   rate: 5/s burst 3}\n";

static inline void write_keys(const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/keys.yaml", folder);
    text_file_write(path, text);
}

/* The rules with these keys; or their problems, "line:column: message\n", in `out`. */
static inline struct weir_rules *parse(const char *text, const char *keys, char *out, size_t room)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    size_t used = 0;
    write_keys(keys);
    out[0] = '\0';
    int err = weir_rules_parse(&rules, "weir.yaml", folder, text, strlen(text), &problems);
    for (uint32_t i = 0; i < problems.count && used < room; i++) {
        used += (size_t)snprintf(out + used, room - used, "%u:%u: %s\n", problems.list[i].line,
                                 problems.list[i].column, problems.list[i].message);
    }
    weir_problems_free(&problems);
    assert_int_equal(err, out[0] != '\0' ? WEIR_ERR_RULES : 0);
    return rules;
}

static inline struct weir_rules *load_text(const char *text, const char *keys)
{
    char problems[4096];
    struct weir_rules *rules = parse(text, keys, problems, sizeof(problems));
    assert_string_equal(problems, "");
    assert_non_null(rules);
    return rules;
}

static inline struct weir_rules *load(const char *keys)
{
    return load_text(callers_rules, keys);
}

static inline void refused(const char *keys, const char *expected)
{
    char problems[4096];
    struct weir_rules *rules = parse(callers_rules, keys, problems, sizeof(problems));
    assert_string_equal(problems, expected);
    assert_null(rules);
}

static inline const struct weir_check *ask(struct weir_rules *rules, const char *path,
                                           const char *key)
{
    struct test_request *test =
        ASK(rules, "path", path, "header.x-api-key", key, "client.ip", "192.0.2.1");
    assert_true(test->count >= 1);
    return test->checks;
}

#define BYTES(text) ((struct weir_bytes){text, sizeof(text) - 1})

static inline int make_folder(void **state)
{
    temporary_folder(folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

#endif
