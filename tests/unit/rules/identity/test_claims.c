/* SPDX-License-Identifier: Apache-2.0 */
/* Claims in rules: as attributes in every place, as who is calling, and never unverified. */
#include "rules_test.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feature/identity/rules/caller.h"
#include "feature/identity/rules/identify.h"
#include "rules/match/key_values.h"
#include "rules/source.h"
#include "temporary.h"
#include "text_file.h"
#include "token_maker.h"

#define NOW_NS (UINT64_C(1700000000) * UINT64_C(1000000000))
#define HEAD "jwt:\n  keys: [{file: set.json}]\n"
#define BEARER "header.authorization"

static struct token_maker maker;
static char folder[TEMPORARY_MAX];

static int make_keys(void **state)
{
    char set[TOKEN_SET_MAX];
    token_maker_open(&maker);
    token_maker_set(&maker, 1, set);
    temporary_folder(folder);
    assert_int_equal(chdir(folder), 0);
    text_file_write("set.json", set);
    return 0;
}

static int remove_keys(void **state)
{
    assert_int_equal(chdir("/"), 0);
    temporary_remove(folder);
    token_maker_close(&maker);
    return 0;
}

/* "Bearer " and a token of these claims. One at a time. */
static const char *bearer(const char *claims)
{
    static char value[TOKEN_TEXT_MAX + 8];
    char token[TOKEN_TEXT_MAX];
    snprintf(value, sizeof(value), "Bearer %s", token_of(&maker, TOKEN_ES256, claims, token));
    return value;
}

static struct test_request *ask_at(const struct weir_rules *rules, uint64_t now_ns,
                                   const char *const *pairs)
{
    struct test_request *test = test_ask(rules, pairs);
    test->query.now_ns = now_ns;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}
#define ASK_NOW(rules, ...) ask_at(rules, NOW_NS, (const char *const[]){__VA_ARGS__, NULL})

static void expect_text(struct weir_bytes text, const char *expected)
{
    assert_int_equal(text.data == NULL, expected == NULL);
    if (expected != NULL) {
        assert_int_equal(text.size, strlen(expected));
        assert_memory_equal(text.data, expected, text.size);
    }
}

TEST("claims are read in match and key")
{
    struct weir_rules *rules = test_load(
        HEAD "  audience: any\n"
             "limits:\n"
             "- {name: each, key: [jwt.sub], rate: 1/s}\n"
             "- {name: admin, match: {jwt.realm.role: admin}, key: [jwt.realm.role], rate: 1/s}\n"
             "- {name: group, key: [], match: {jwt.groups: [\"*,ops\", ops]}, rate: 1/s}\n"
             "- {name: other, match: {jwt.sub: \"b*\"}, key: [jwt.n, method], rate: 1/s}\n");
    test_expect(ASK_NOW(rules, BEARER,
                        bearer("{\"exp\":1700000060,\"sub\":\"alice\",\"realm\":{\"role\":"
                               "\"admin\"},\"groups\":[\"dev\",\"ops\"]}")),
                "each{jwt.sub=alice} admin{jwt.realm.role=admin} group{}");
    test_expect(ASK_NOW(rules, "method", "GET", BEARER,
                        bearer("{\"exp\":1700000060,\"sub\":\"bob\",\"realm\":{},\"n\":-3}")),
                "each{jwt.sub=bob} other{jwt.n=%2d3,method=GET}");
    test_expect(ASK_NOW(rules, "method", "GET"), "");
    weir_rules_unref(rules);
}

TEST("a token that is not valid counts as none")
{
    struct weir_rules *rules =
        test_load(HEAD "  audience: api\n"
                       "limits:\n"
                       "- {name: api, key: [jwt.sub], rate: 1/s, on_missing: shared}\n");
    char broken[TOKEN_TEXT_MAX + 8];
    strcpy(broken, bearer("{\"exp\":1700000060,\"aud\":\"api\",\"sub\":\"alice\"}"));
    test_expect(ASK_NOW(rules, BEARER, broken), "api{jwt.sub=alice}");
    char *last = broken + strlen(broken) - 2; /* the last has bits that say nothing */
    *last = *last == 'A' ? 'B' : 'A';
    struct test_request *test = ASK_NOW(rules, BEARER, broken);
    test_expect(test, "api{jwt.sub=-}");
    assert_string_equal(weir_rules_token_state(rules, &test->request, NOW_NS), "signature");
    static const struct {
        const char *claims, *state;
    } cases[] = {
        {"{\"exp\":1700000000,\"aud\":\"api\",\"sub\":\"alice\"}", "expired"},
        {"{\"exp\":1700000060,\"aud\":\"web\",\"sub\":\"alice\"}", "audience"},
        {"{\"exp\":\"1\",\"aud\":\"api\",\"sub\":\"alice\"}", "malformed"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test = ASK_NOW(rules, BEARER, bearer(cases[i].claims));
        test_expect(test, "api{jwt.sub=-}");
        assert_string_equal(weir_rules_token_state(rules, &test->request, NOW_NS), cases[i].state);
    }
    test = ASK_NOW(rules, "method", "GET");
    assert_null(weir_rules_token_state(rules, &test->request, NOW_NS));
    weir_rules_unref(rules);
}

TEST("no request can say a claim")
{
    struct weir_rules *rules = test_load(HEAD "  audience: any\n"
                                              "limits:\n"
                                              "- {name: api, key: [jwt.sub], rate: 1/s}\n");
    assert_int_equal(weir_rules_source(rules, "jwt.sub", 7).attribute, -1);
    struct test_request *test = ASK_NOW(rules, "jwt.sub", "mallory");
    test_expect(test, "");
    for (uint16_t i = WEIR_ATTR_FIRST_NAMED; i < test->request.count; i++) /* whatever its number */
        test->request.values[i] = (struct weir_bytes){"mallory", 7};
    test->count = weir_rules_checks(&test->query, test->checks);
    test_expect(test, "");
    weir_rules_unref(rules);
}

TEST("a token says who is calling")
{
    struct weir_rules *rules = test_load(
        HEAD "  audience: any\n  user: email\n  org: tenant.id\n  plan: tier\n"
             "identify: [jwt, client.ip/64]\n"
             "default_plan: free\n"
             "plans:\n  free: {api: 1/s}\n  pro: {api: 9/s}\n"
             "limits:\n- {name: api, key: [user, org], on_missing: shared, rate: plan}\n");
    struct test_request *test =
        ASK_NOW(rules, "client.ip", "192.0.2.1", BEARER,
                bearer("{\"exp\":1700000060,\"sub\":\"x\",\"email\":\"a@b\",\"tenant\":{\"id\":7},"
                       "\"tier\":\"pro\"}"));
    test_expect(test, "api{user=a@b,org=7}");
    expect_text(test->identity.user, "a@b");
    expect_text(test->identity.org, "7");
    expect_text(test->identity.plan, "pro");
    assert_int_equal(test->checks[0].limit->spec.rate, 9);

    /* A plan that the file does not know is limited as the default; none is the default. */
    test = ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"email\":\"a\",\"tier\":\"gold\"}"));
    test_expect(test, "api{user=a,org=-}");
    expect_text(test->identity.plan, "gold");
    assert_int_equal(test->checks[0].limit->spec.rate, 1);
    test = ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"email\":\"a\",\"tier\":7}"));
    expect_text(test->identity.plan, "7");
    test = ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"email\":\"a\"}"));
    expect_text(test->identity.plan, "free");

    /* Without a user in it, the next source counts. */
    static const char *const nobody[] = {
        "{\"exp\":1700000060,\"tenant\":{\"id\":7},\"tier\":\"pro\"}",
        "{\"exp\":1700000060,\"email\":\"\",\"tier\":\"pro\"}",
        "{\"exp\":1700000060,\"email\":null,\"tier\":\"pro\"}",
        "{\"exp\":1600000060,\"email\":\"a\",\"tier\":\"pro\"}",
    };
    for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
        test = ASK_NOW(rules, "client.ip", "192.0.2.1", BEARER, bearer(nobody[i]));
        test_expect(test, "api{user=ip:192.0.2.1,org=-}");
        expect_text(test->identity.plan, "free");
    }
    weir_rules_unref(rules);
}

/* The caller is looked for first while the key is being written, beside which it is kept. */
TEST("callers who are known only when a key is written have keys of their own")
{
    static const char *const missing[] = {"shared", "deny", "skip"};
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 HEAD "  audience: any\n  org: o\nidentify: [jwt, client.ip/64]\nlimits:\n"
                      "- {name: a, key: [method, user, org], rate: 1/s, on_missing: %s}\n"
                      "- {name: b, key: [user], rate: 1/s, on_missing: %s}\n",
                 missing[i], missing[i]);
        struct weir_rules *rules = test_load(text);
        uint64_t seen[2][2];
        for (int n = 0; n < 2; n++) {
            char claims[96], expected[96];
            const char *user = n == 0 ? "alice" : "bobby";
            snprintf(claims, sizeof(claims), "{\"exp\":1700000060,\"sub\":\"%s\",\"o\":\"x%d\"}",
                     user, n);
            struct test_request *test = ASK_NOW(rules, "method", "GET", BEARER, bearer(claims));
            snprintf(expected, sizeof(expected), "a{method=GET,user=%s,org=x%d} b{user=%s}", user,
                     n, user);
            test_expect(test, expected);
            expect_text(test->identity.user, user);
            memcpy(seen[n], test->checks[1].hash, sizeof(seen[n]));
        }
        assert_memory_not_equal(seen[0], seen[1], sizeof(seen[0]));
        struct test_request *test =
            ASK_NOW(rules, "method", "GET", "client.ip", "192.0.2.1", BEARER, "Bearer x");
        expect_text(test->identity.user, "192.0.2.1");
        weir_rules_unref(rules);
    }
}

TEST("a user that is too long is none but its claim stays one")
{
    static char claims[1024], user[WEIR_IDENTITY_MAX + 2];
    struct weir_rules *rules =
        test_load(HEAD "  audience: any\n"
                       "identify: [jwt]\n"
                       "limits:\n"
                       "- {name: a, key: [user], rate: 1/s}\n"
                       "- {name: b, key: [], match: {jwt.sub: \"*\"}, rate: 1/s}\n");
    memset(user, 'u', WEIR_IDENTITY_MAX);
    snprintf(claims, sizeof(claims), "{\"exp\":1700000060,\"sub\":\"%s\"}", user);
    struct test_request *test = ASK_NOW(rules, BEARER, bearer(claims));
    assert_int_equal(test->count, 2);
    expect_text(test->identity.user, user);
    user[WEIR_IDENTITY_MAX] = 'u';
    snprintf(claims, sizeof(claims), "{\"exp\":1700000060,\"sub\":\"%s\"}", user);
    test = ASK_NOW(rules, BEARER, bearer(claims));
    test_expect(test, "b{}");
    expect_text(test->identity.user, NULL);
    weir_rules_unref(rules);
}

TEST("a trusted request says who is calling before its token does")
{
    struct weir_rules *rules = test_load(HEAD "  audience: any\n"
                                              "identify: [jwt]\n"
                                              "limits: [{name: a, key: [user], rate: 1/s}]\n");
    test_expect(
        ASK_NOW(rules, "user", "boss", BEARER, bearer("{\"exp\":1700000060,\"sub\":\"alice\"}")),
        "a{user=boss}");
    weir_rules_unref(rules);
}

TEST("the scheme is bearer in any case")
{
    struct weir_rules *rules = test_load(HEAD "  audience: any\n"
                                              "limits: [{name: a, key: [jwt.sub], rate: 1/s}]\n");
    static const struct {
        const char *scheme;
        bool good;
    } cases[] = {
        {"Bearer ", true},         {"bearer ", true},   {"BEARER   ", true}, {"", false},
        {"Bearer", false},         {"Bearer\t", false}, {"Basic ", false},   {" Bearer ", false},
        {"Bearer Bearer ", false}, {"Bearer, ", false},
    };
    static char value[3 * TOKEN_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *token = bearer("{\"exp\":1700000060,\"sub\":\"alice\"}") + strlen("Bearer ");
        snprintf(value, sizeof(value), "%s%.4000s", cases[i].scheme, token);
        test_expect(ASK_NOW(rules, BEARER, value), cases[i].good ? "a{jwt.sub=alice}" : "");
    }
    /* Two fields of one name are joined; then neither counts. */
    const char *one = bearer("{\"exp\":1700000060,\"sub\":\"alice\"}");
    snprintf(value, sizeof(value), "%.*s, %s", 4000, one, one);
    test_expect(ASK_NOW(rules, BEARER, value), "");
    test_expect(ASK_NOW(rules, BEARER, ""), "");
    test_expect(ASK_NOW(rules, BEARER, "Bearer "), "");
    weir_rules_unref(rules);
}

TEST("the first source with a valid token counts")
{
    struct weir_rules *rules =
        test_load(HEAD "  from: [header.x-token, header.authorization, session]\n"
                       "  audience: any\n"
                       "limits: [{name: a, key: [jwt.sub], rate: 1/s}]\n");
    char first[TOKEN_TEXT_MAX + 8], second[TOKEN_TEXT_MAX + 8];
    strcpy(first, bearer("{\"exp\":1700000060,\"sub\":\"first\"}"));
    strcpy(second, bearer("{\"exp\":1700000060,\"sub\":\"second\"}"));
    const char *bare = second + strlen("Bearer ");
    test_expect(ASK_NOW(rules, "header.x-token", first, BEARER, second), "a{jwt.sub=first}");
    test_expect(ASK_NOW(rules, "header.x-token", bare, BEARER, first), "a{jwt.sub=second}");
    test_expect(ASK_NOW(rules, "header.x-token", "x", BEARER, second), "a{jwt.sub=second}");
    test_expect(ASK_NOW(rules, "header.x-token", "x", BEARER, "Basic x", "session", bare),
                "a{jwt.sub=second}");
    test_expect(ASK_NOW(rules, BEARER, bare), "");
    weir_rules_unref(rules);
}

TEST("tokens are shown only as hashes")
{
    struct weir_rules *rules =
        test_load(HEAD "  from: header.x-token\n  audience: any\n"
                       "limits:\n"
                       "- {name: a, key: [header.x-token], rate: 1/s}\n"
                       "- {name: b, key: [], match: {header.x-token: x}, rate: 1/s}\n");
    struct test_request *test = ASK_NOW(rules, "header.x-token", "secret");
    test_expect(test, "a{header.x-token=sha256:2bb80d537b1da3e3}");
    struct weir_explanation explanations[2];
    char why[WEIR_EXPLANATION_TEXT_MAX];
    assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), 1);
    weir_explanation_text(rules, &explanations[1], why);
    assert_string_equal(why, "header.x-token is sha256:2bb80d537b1da3e3; wanted `x`");
    weir_rules_unref(rules);
}

TEST("costs come from claims")
{
    struct weir_rules *rules = test_load(
        HEAD "  audience: any\n"
             "limits:\n"
             "- {name: a, key: [], rate: 100/s, cost: {from: jwt.weight, max: 50, default: 3}}\n");
    struct test_request *test =
        ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"weight\":40}"));
    assert_int_equal(test->count, 1);
    assert_int_equal(test->checks[0].cost, 40);
    test = ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"weight\":51}"));
    assert_int_equal(test->count, WEIR_ERR_SYNTAX);
    test = ASK_NOW(rules, BEARER, "Bearer x");
    assert_int_equal(test->checks[0].cost, 3);
    weir_rules_unref(rules);
}

TEST("explanations quote claims")
{
    struct weir_rules *rules =
        test_load(HEAD "  audience: any\n"
                       "limits:\n"
                       "- {name: a, key: [], match: {jwt.role: admin}, rate: 1/s}\n"
                       "- {name: b, key: [], match: {jwt.none: x}, rate: 1/s}\n"
                       "- {name: c, key: [jwt.none], rate: 1/s}\n"
                       "- {name: d, key: [jwt.role], rate: 1/s}\n");
    struct weir_explanation explanations[4];
    char why[WEIR_EXPLANATION_TEXT_MAX];
    struct test_request *test =
        ASK_NOW(rules, BEARER, bearer("{\"exp\":1700000060,\"role\":\"guest\"}"));
    test->count = weir_rules_explain(&test->query, test->checks, explanations);
    test_expect(test, "d{jwt.role=guest}");
    weir_explanation_text(rules, &explanations[0], why);
    assert_string_equal(why, "jwt.role is `guest`; wanted `admin`");
    weir_explanation_text(rules, &explanations[1], why);
    assert_string_equal(why, "jwt.none is missing; wanted `x`");
    weir_explanation_text(rules, &explanations[2], why);
    assert_string_equal(why, "its key needs jwt.none, which is missing");
    weir_rules_unref(rules);
}

TEST("states are found by the claims of their keys")
{
    struct weir_rules *rules =
        test_load(HEAD "  audience: any\n"
                       "limits: [{name: a, key: [jwt.sub, method], rate: 1/s}]\n");
    struct test_request *test =
        ASK_NOW(rules, "method", "GET", BEARER, bearer("{\"exp\":1700000060,\"sub\":\"alice\"}"));
    assert_int_equal(test->count, 1);
    struct weir_check found;
    struct weir_scratch scratch;
    struct weir_reason reason;
    struct weir_key_values values = {.count = 2};
    values.values[0] = (struct weir_bytes){"alice", 5};
    values.values[1] = (struct weir_bytes){"GET", 3};
    assert_int_equal(
        weir_rules_key_check(rules, 0, &values, test_secret, &scratch, &found, &reason), 1);
    assert_memory_equal(found.hash, test->checks[0].hash, sizeof(found.hash));
    weir_rules_unref(rules);
}

TEST("long claims fit beside a long path and keys that are too long are refused")
{
    static char claims[8192], path[7001], text[2048];
    size_t used = (size_t)snprintf(text, sizeof(text), HEAD "  audience: any\nlimits:\n");
    for (int i = 0; i < 32; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "- {name: l%d, key: [jwt.long], rate: 1/s}\n", i);
    }
    struct weir_rules *rules = test_load(text);
    used = (size_t)sprintf(claims, "{\"exp\":1700000060,\"long\":\"");
    memset(claims + used, 'x', 5600);
    strcpy(claims + used + 5600, "\"}");
    memset(path, 'p', sizeof(path) - 1);
    memcpy(path, "/%41/", 5); /* not in normal form, so it is copied */
    struct test_request *test = ASK_NOW(rules, "path", path, BEARER, bearer(claims));
    assert_int_equal(test->count, 32);
    struct weir_explanation explanations[32];
    assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations),
                     WEIR_ERR_TOO_LARGE); /* which keeps the claims too */
    assert_string_equal(test->reason.text, "path and keys are too long together");
    weir_rules_unref(rules);
}

RUN_TESTS_WITH(make_keys, remove_keys)
