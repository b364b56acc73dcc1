/* SPDX-License-Identifier: Apache-2.0 */
/* Who an API key belongs to, and whose plan counts. */
#include "keys_test.h"
#include "test.h"

static const char rules_text[] =
    "identify: [header.x-api-key, client.ip/64]\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: {api: 1/s}, pro: {api: 5/s}, max: {api: unlimited} }\n"
    "limits:\n"
    "- {name: api, key: [user], rate: plan}\n"
    "- {name: org, key: [org], rate: 1/s}\n"
    "- {name: pros, match: {plan: pro}, key: [], rate: 1/s}\n"
    "- {name: raw, match: {path: /raw}, key: [header.X-Api-Key], rate: 1/s}\n";

static struct weir_rules *load_with_keys(const char *keys)
{
    return load_text(rules_text, keys);
}

static void expect_problems(const char *keys, const char *expected)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    char text[4096] = "", path[128];
    write_keys(keys);
    snprintf(path, sizeof(path), "%s/keys.yaml", folder);
    assert_int_equal(weir_rules_parse(&rules, "weir.yaml", folder, rules_text,
                                      sizeof(rules_text) - 1, &problems),
                     WEIR_ERR_RULES);
    assert_null(rules);
    for (uint32_t i = 0; i < problems.count; i++) {
        assert_string_equal(problems.list[i].file, path);
        sprintf(text + strlen(text), "%u:%u: %s\n", problems.list[i].line, problems.list[i].column,
                problems.list[i].message);
    }
    weir_problems_free(&problems);
    assert_string_equal(text, expected);
}

TEST("a known key gives user org and plan")
{
    struct weir_rules *rules =
        load_with_keys(ALICE ": { user: alice, org: acme, plan: pro }\n" BOB
                             ":\n  user: bob\n" CAROL ": { plan: max, user: carol, org: acme }\n");
    struct test_request *test = ASK(rules, "header.x-api-key", "alice-key");
    test_expect(test, "api{user=alice} org{org=acme} pros{}");
    assert_int_equal(test->checks[0].limit->spec.rate, 5);
    assert_memory_equal(test->identity.plan.data, "pro", 3);
    assert_memory_equal(test->identity.org.data, "acme", 4);
    test = ASK(rules, "header.x-api-key", "bob-key");
    test_expect(test, "api{user=bob}");
    assert_int_equal(test->checks[0].limit->spec.rate, 1);
    test = ASK(rules, "header.x-api-key", "carol-key");
    test_expect(test, "api{user=carol} org{org=acme}");
    assert_int_equal(test->checks[0].flags, WEIR_CHECK_UNLIMITED);
    weir_rules_unref(rules);
}

TEST("an unknown key counts as absent")
{
    struct weir_rules *rules = load_with_keys(ALICE ": { user: alice, plan: pro }\n");
    struct test_request *test =
        ASK(rules, "header.x-api-key", "nobody", "client.ip", "2001:db8::9");
    test_expect(test, "api{user=ip:2001:db8::/64}");
    assert_int_equal(test->checks[0].limit->spec.rate, 1);
    test_expect(ASK(rules, "header.x-api-key", "nobody"), "");
    test_expect(ASK(rules, "header.x-api-key", ""), "");
    test_expect(ASK_EMPTY(rules), "");
    weir_rules_unref(rules);
}

TEST("what a trusted request says goes first")
{
    struct weir_rules *rules = load_with_keys(ALICE ": { user: alice, org: acme, plan: pro }\n");
    test_expect(ASK(rules, "header.x-api-key", "alice-key", "user", "root"),
                "api{user=root} org{org=acme} pros{}");
    struct test_request *test = ASK(rules, "user", "u", "org", "o", "plan", "pro");
    test_expect(test, "api{user=u} org{org=o} pros{}");
    assert_int_equal(test->checks[0].limit->spec.rate, 5);
    /* A plan that the file does not know is limited as the default. */
    test = ASK(rules, "user", "u", "plan", "gold");
    test_expect(test, "api{user=u}");
    assert_int_equal(test->checks[0].limit->spec.rate, 1);
    weir_rules_unref(rules);
}

TEST("api keys are never in texts")
{
    struct weir_rules *rules = load_with_keys("");
    test_expect(ASK(rules, "path", "/raw", "header.x-api-key", "alice-key"),
                "raw{header.x-api-key=sha256:72ee9d4355ccb9d3}");
    weir_rules_unref(rules);
}

TEST("broken entries are reported with their lines")
{
    expect_problems("alice-key: { user: alice }\n",
                    "1:1: not a SHA-256 (64 hexadecimal digits) of an API key\n");
    expect_problems(ALICE ": { org: acme }\n" BOB ": { user: '' }\n" CAROL ": bob\n",
                    "1:1: `user` is missing\n"
                    "2:75: `user` must have 1 to 256 bytes\n"
                    "3:67: must be a mapping of user, org, plan, limits\n");
    expect_problems(ALICE ": { user: a, plan: prro, name: x, user: b, org: [x] }\n",
                    "1:84: plan `prro` is not in `plans`; did you mean `pro`?\n"
                    "1:90: unknown key `name`; allowed are user, org, plan, limits\n"
                    "1:99: `user` is given twice\n"
                    "1:113: must be a text\n");
    expect_problems(ALICE ": { user: a, org: o }\n" ALICE ": { user: b, org: o }\n",
                    "2:1: this SHA-256 is given twice; first in line 1\n");
    expect_problems("- a\n", "1:1: a keys file is one mapping of SHA-256 to { user, org, plan, "
                             "limits }\n");
    expect_problems("? [a, {b: c}]\n: { user: x }\n",
                    "1:3: not a SHA-256 (64 hexadecimal digits) of an API key\n");
    expect_problems(ALICE ": { ? [x] : y, user: a }\n", "1:71: a key must be a word\n");
    expect_problems(ALICE ": {\n", "2:1: not valid YAML: did not find expected node content, while "
                                   "parsing a flow node\n");
}

TEST("thousands of keys are reported apart")
{
    static char text[200000];
    size_t used = 0;
    for (int i = 0; i < 2000; i++) {
        used += (size_t)sprintf(text + used, "%056x%08x: { user: u%d, org: o%d }\n", i % 3, i, i,
                                i % 5);
    }
    sprintf(text + used, ALICE ": { user: alice, org: o1 }\n");
    struct weir_rules *rules = load_with_keys(text);
    test_expect(ASK(rules, "header.x-api-key", "alice-key"), "api{user=alice} org{org=o1}");
    weir_rules_unref(rules);
}

/* What a keys file means: its problems, or who the three callers are. */
static void tell(const char *keys, char *out)
{
    static const char *const names[] = {"alice-key", "bob-key", "carol-key"};
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    write_keys(keys);
    int err = weir_rules_parse(&rules, "weir.yaml", folder, rules_text, sizeof(rules_text) - 1,
                               &problems);
    out += sprintf(out, "%d\n", err);
    for (uint32_t i = 0; i < problems.count; i++) {
        out += sprintf(out, "%u:%u: %s\n", problems.list[i].line, problems.list[i].column,
                       problems.list[i].message);
    }
    weir_problems_free(&problems);
    for (int i = 0; err == 0 && i < 3; i++) {
        struct test_request *test = ASK(rules, "header.x-api-key", names[i]);
        const struct weir_identity *who = &test->identity;
        out += sprintf(out, "user %.*s org %.*s plan %.*s", (int)who->user.size, who->user.data,
                       (int)who->org.size, who->org.data, (int)who->plan.size, who->plan.data);
        for (int c = 0; c < test->count; c++) {
            const struct weir_limit *limit = test->checks[c].limit;
            uint64_t rate = limit != NULL ? limit->spec.rate : 0;
            uint64_t window_s = limit != NULL ? limit->spec.window_ns / 1000000000 : 0;
            out += sprintf(out, " %u:%llu/%llu", test->checks[c].rule, (unsigned long long)rate,
                           (unsigned long long)window_s);
        }
        *out++ = '\n';
    }
    *out = '\0';
    weir_rules_unref(rules);
}

/* Files of plain lines are read without the YAML parser (identity/keys_lines.h). A byte order mark
 * sends the same text to the YAML parser, which has to agree. */
static void expect_as_yaml(const char *keys)
{
    static char yaml[4096], by_lines[4096], by_yaml[4096];
    snprintf(yaml, sizeof(yaml), "\xef\xbb\xbf%s", keys);
    tell(keys, by_lines);
    tell(yaml, by_yaml);
    if (strcmp(by_lines, by_yaml) != 0)
        fail_msg("%s\nby lines: %s\nas YAML: %s", keys, by_lines, by_yaml);
}

static const char plain_lines[] =
    "# made by a program\n" ALICE ": { user: alice, org: acme, plan: pro }\n\n" BOB
    ": {user: b.o-b@example.com}\n" CAROL
    ": { plan: max,  org: acme ,user: 0_c, limits: { api: 7/s ,org:  [3/s, 100/min ]} }\n";

TEST("plain lines mean what yaml means")
{
    char result[1024];
    tell(plain_lines, result);
    assert_string_equal(result, "0\nuser alice org acme plan pro 0:5/1 1:1/1 2:1/1\n"
                                "user b.o-b@example.com org  plan free 0:1/1\n"
                                "user 0_c org acme plan max 0:7/1 1:3/1 1:100/60\n");
    static const char *const texts[] = {
        plain_lines,
        "",
        "# only this",
        ALICE ": { user: a }",
        "  " ALICE ": { user: a }\n",
        ALICE ":  {  user:  a  }  \n",
        ALICE ": { user: a } # b\n",
        ALICE ": { user: a }\r\n",
        ALICE ": { user: a,b }\n",
        ALICE ": { user:a }\n",
        ALICE ": { user: a, }\n",
        ALICE ": { user: -a }\n",
        ALICE ": { user: @a }\n",
        ALICE ": { user: null }\n",
        ALICE ": { user: a b }\n",
        ALICE ": { user: a:b }\n",
        ALICE ": { user: a, plan: prro }\n",
        ALICE ": { user: a, user: b }\n",
        ALICE ": { org: a }\n",
        ALICE ": {}\n",
        ALICE ": { user: a }}\n",
        ALICE ": { user: a }\n" ALICE ": { user: b }\n",
        ALICE ":\t{ user: a }\n",
        ALICE "0: { user: a }\n",
        ALICE ": { user: a, limits: {} }\n",
        ALICE ": { limits: {api: 9/min}, user: a }\n",
        ALICE ": { user: a, limits: {api: 9/min}, limits: {api: 9/min} }\n",
        ALICE ": { user: a, limits: {api: 9/min, api: 9/min} }\n",
        ALICE ": { user: a, limits: {api:  9/min  ,  org:9/min} }\n",
        ALICE ": { user: a, limits: {api: 9/2min, org: unlimited} }\n",
        ALICE ": { user: a, limits: {api: 9 / min} }\n",
        ALICE ": { user: a, limits: {api: 9/min burst 3} }\n",
        ALICE ": { user: a, limits: {api: [9/min]} }\n",
        ALICE ": { user: a, limits: {api: [9/min,3/s,]} }\n",
        ALICE ": { user: a, limits: {api: [9/min,700/h} }\n",
        ALICE ": { user: a, limits: {api: [9/min  ,  700/h  ] , pros: unlimited }}\n",
        ALICE ": { user: a, limits: {api: []} }\n",
        ALICE ": { user: a, limits: {api: '9/min'} }\n",
        ALICE ": { user: a, limits: {api: 9/min # x\n} }\n",
        ALICE ": { user: a, limits: {apo: 9/min} }\n",
        ALICE ": { user: a, limits: {api: 9/min x} }\n",
        ALICE ": { user: a, limits: {api: } }\n",
        ALICE ": { user: a, limits: {api} }\n",
        ALICE ": { user: a, limits: {api: 9/min}, plan: pro }\n",
        ALICE ": { user: a, limits: api }\n",
        ALICE ": { user: a, limits: {api: 9/min} x }\n",
        ALICE ": { user: a, limits: {api: 9/min }\n",
        ALICE ": { user: a, limits: {api: 9/min}}\n" BOB ": { user: b, limits: {api: 9/min}}\n",
        "---\n" ALICE ": { user: a }\n...\n",
        "%YAML 1.1\n---\n" ALICE ": { user: a }\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_as_yaml(texts[i]);
}

TEST("a caller in a long comment is none")
{
    static char text[3 * 16384];
    char result[1024];
    for (size_t before = 16380; before < 16390; before++) {
        memset(text, ' ', before);
        text[0] = '#';
        strcpy(text + before, ALICE ": { user: alice }\n" BOB ": { user: bob }\n");
        tell(text, result);
        assert_string_equal(result, "0\nuser  org  plan free\n"
                                    "user bob org  plan free 0:1/1\n"
                                    "user  org  plan free\n");
    }
}

TEST("random changes to plain lines mean what yaml means")
{
    static const char bytes[] = " \n\r\t{}:,#'\"-@._ab0!&*%|>[]?~\\/\x01\x7f\xc3";
    uint64_t random = 1;
    for (int i = 0; i < 1200; i++) {
        char text[1024];
        strcpy(text, plain_lines);
        for (int change = 0; change <= i % 3; change++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            size_t size = strlen(text), at = (random >> 33) % size;
            if ((random >> 30) % 4 != 0) /* most changes near the end of a SHA-256 or behind it */
                at = at % 64 + (size - 64) * (random >> 60) / 16;
            char byte = bytes[(random >> 40) % (sizeof(bytes) - 1)];
            switch ((random >> 50) % 3) {
            case 0:
                text[at] = byte;
                break;
            case 1:
                memmove(text + at, text + at + 1, size - at);
                break;
            default:
                memmove(text + at + 1, text + at, size - at + 1);
                text[at] = byte;
            }
        }
        expect_as_yaml(text);
    }
}

RUN_TESTS_WITH(make_folder, remove_folder)
