/* SPDX-License-Identifier: Apache-2.0 */
/* `challenge`: what it becomes, what is wrong with it, and its attribute of a request. */
#include "feature/challenge/keys.h"
#include "feature/challenge/token.h"
#include "rules/source.h"
#include "rules_test.h"
#include "temporary.h"
#include "test.h"

#define NS_PER_S UINT64_C(1000000000)
#define NOW_S UINT64_C(1700000000)
#define LIFE_S 3600
#define KEY "0123456789abcdef0123456789abcdef"
#define LIMITS                                                                                     \
    "limits:\n"                                                                                    \
    "- {name: passed, match: {challenge: passed}, key: [], rate: 1/s}\n"                           \
    "- {name: other, unless: [passed], key: [], rate: 1/s}\n"

static char secret_path[TEMPORARY_MAX];

static void write_secret(const char *text)
{
    int file = temporary_file(secret_path);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
}

static int open_secret(void **state)
{
    (void)state;
    write_secret(KEY "\n");
    return 0;
}

static int remove_secret(void **state)
{
    (void)state;
    temporary_remove(secret_path);
    return 0;
}

/* The rules with this section, which has %s where the secret file belongs. */
static const char *with(const char *section)
{
    static char text[2048];
    int used =
        snprintf(text, sizeof(text), "challenge: {secret_file: %s%s}\n", secret_path, section);
    snprintf(text + used, sizeof(text) - (size_t)used, "%s", LIMITS);
    return text;
}

static struct weir_bytes cookie(char text[256], const struct weir_rules *rules, const char *address,
                                uint64_t expires_s, const char *before)
{
    struct weir_address client;
    char token[WEIR_CHALLENGE_TOKEN_SIZE];
    assert_int_equal(weir_address_parse(&client, address, strlen(address)), 0);
    weir_challenge_token_make(weir_rules_settings(rules)->challenge.keys, &client, 18, expires_s,
                              token);
    int size = snprintf(text, 256, "%s%.*s", before, (int)sizeof(token), token);
    return (struct weir_bytes){text, (size_t)size};
}

/* Asks as `address` at NOW_S, with one attribute; "passed{}" or "other{}". */
static const char *asked(const struct weir_rules *rules, const char *address, const char *name,
                         struct weir_bytes value)
{
    struct test_request *test = ASK(rules, "path", "/");
    int attribute = weir_rules_source(rules, name, strlen(name)).attribute;
    assert_true(attribute >= 0);
    test->request.values[attribute] = value;
    if (address != NULL)
        test_set(test, "client.ip", address);
    test->query.now_ns = NOW_S * NS_PER_S;
    test->count = weir_rules_checks(&test->query, test->checks);
    assert_int_equal(test->count, 1);
    struct weir_rule_info info;
    weir_rules_info(rules, test->checks[0].rule, &info);
    return info.name;
}

TEST("there is none unless the file says so")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_settings(rules)->challenge.keys);
    assert_false(weir_rules_timed(rules));
    weir_rules_unref(rules);
}

TEST_WITH(open_secret, remove_secret, "everything is read")
{
    struct weir_rules *rules = test_load(with(""));
    const struct weir_challenge_settings *settings = &weir_rules_settings(rules)->challenge;
    assert_null(settings->listener.address);
    assert_int_equal(settings->keys->count, 1);
    assert_string_equal(settings->cookie.data, "__Host-weir");
    assert_int_equal(settings->life_ns, 3600 * NS_PER_S);
    assert_int_equal(settings->difficulty[0], 18);
    assert_true(settings->secure);
    assert_true(weir_rules_timed(rules));
    weir_rules_unref(rules);
    rules = test_load(with(", listen: 'localhost:8082', life: 2h, difficulty: 26, cookie: c, "
                           "secure: false"));
    settings = &weir_rules_settings(rules)->challenge;
    assert_string_equal(settings->listener.address, "127.0.0.1:8082");
    assert_string_equal(settings->cookie.data, "c");
    assert_int_equal(settings->life_ns, 7200 * NS_PER_S);
    assert_int_equal(settings->difficulty[2], 26);
    assert_false(settings->secure);
    weir_rules_unref(rules);
}

TEST_WITH(open_secret, remove_secret, "a wrong section is refused with its places")
{
    static char problems[TEST_PROBLEMS_MAX];
    static const struct {
        const char *section, *problem;
    } cases[] = {
        {", listen: 80", "`80` is not an address to listen on"},
        {", life: 59s", "`life` must be 1min to 30d, not `59s`"},
        {", life: 31d", "`life` must be 1min to 30d, not `31d`"},
        {", difficulty: 0", "`difficulty` must be"},
        {", difficulty: 27", "`difficulty` must be"},
        {", cookie: 'a b'", "`a b` is not the name of a cookie"},
        {", cookie: ''", "is not the name of a cookie"},
        {", secure: false", "browsers refuse a cookie `__Host-weir` without `secure: true`"},
        {", secure: false, cookie: __secure-x", "browsers refuse a cookie `__secure-x`"},
        {", more: 1", "more"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_null(test_parse(with(cases[i].section), problems));
        assert_true(strncmp(problems, "1:", 2) == 0);
        if (strstr(problems, cases[i].problem) == NULL)
            print_error("%s\n%s", cases[i].problem, problems);
        assert_non_null(strstr(problems, cases[i].problem));
    }
    test_refused("challenge: {}\nlimits: []\n",
                 "1:12: `secret_file` is missing: a file with a key, such as the output of "
                 "`openssl rand -hex 32`\n");
    test_refused("challenge: {secret_file: /nowhere/key}\nlimits: []\n",
                 "1:26: cannot read /nowhere/key: No such file or directory\n");
    test_refused("challenge: yes\nlimits: []\n",
                 "1:12: `challenge` must be a mapping, not a text\n");
}

TEST_WITH(open_secret, remove_secret, "a wrong secret file is refused with its line")
{
    static char problems[TEST_PROBLEMS_MAX];
    temporary_remove(secret_path);
    write_secret(KEY "\nshort\n");
    assert_null(test_parse(with(""), problems));
    assert_non_null(strstr(problems, ", line 2: the key has 5 bytes; use 32 to 512"));
    assert_int_equal(truncate(secret_path, 0), 0);
    assert_null(test_parse(with(""), problems));
    assert_non_null(strstr(problems, ": there is no key in it"));
}

TEST_WITH(open_secret, remove_secret, "the attribute needs the section and is only ever passed")
{
    test_refused("limits:\n- {name: a, match: {challenge: passed}, key: [], rate: 1/s}\n",
                 "2:21: the attribute `challenge` needs the section `challenge:`, which says how "
                 "clients prove themselves\n");
    test_refused("limits:\n- {name: a, key: [challenge], rate: 1/s}\n",
                 "2:19: the attribute `challenge` needs the section `challenge:`, which says how "
                 "clients prove themselves\n");
    char text[512];
    snprintf(text, sizeof(text),
             "challenge: {secret_file: %s}\n"
             "limits:\n- {name: a, match: {challenge: failed}, key: [], rate: 1/s}\n",
             secret_path);
    test_refused(text,
                 "3:32: `challenge` is never `failed`; it is `passed`, or the request has none\n");
}

TEST_WITH(open_secret, remove_secret, "a request passes with a token of its own")
{
    char text[256];
    struct weir_rules *rules = test_load(with(""));
    uint64_t end_s = NOW_S + LIFE_S;
#define COOKIE(address, until_s, before) cookie(text, rules, address, until_s, before)
    struct weir_bytes value = COOKIE("192.0.2.1", end_s, "a=b; __Host-weir=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "passed");
    assert_string_equal(asked(rules, "192.0.2.2", "header.cookie", value), "other");
    assert_string_equal(asked(rules, NULL, "header.cookie", value), "other");
    value = COOKIE("192.0.2.1", end_s, "__Host-weir=x; __Host-weir=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "passed");
    value = COOKIE("192.0.2.1", end_s, "__Host-weir2=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "other");
    value = COOKIE("192.0.2.1", NOW_S, "__Host-weir=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "other");
    value = COOKIE("192.0.2.1", end_s, "");
    assert_string_equal(asked(rules, "192.0.2.1", "header.x-weir-challenge", value), "passed");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "other");
    weir_rules_unref(rules);
}

TEST_WITH(open_secret, remove_secret, "a token is shown as sha 256")
{
    char text[512];
    snprintf(text, sizeof(text),
             "challenge: {secret_file: %s}\n"
             "limits:\n- {name: a, key: [header.X-Weir-Challenge], rate: 1/s}\n",
             secret_path);
    struct weir_rules *rules = test_load(text);
    test_expect(ASK(rules, "header.x-weir-challenge", "abc"),
                "a{header.x-weir-challenge=sha256:ba7816bf8f01cfea}");
    weir_rules_unref(rules);
}

/* However many a client sends, only so many are verified. */
TEST_WITH(open_secret, remove_secret, "four cookies of the name are looked at")
{
    char text[256];
    struct weir_rules *rules = test_load(with(", cookie: c, secure: false"));
    struct weir_bytes value = COOKIE("192.0.2.1", NOW_S + 60, "c=1;c=2;c=3;c=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "passed");
    value = COOKIE("192.0.2.1", NOW_S + 60, "c=1;c=2;c=3;c=4;c=");
    assert_string_equal(asked(rules, "192.0.2.1", "header.cookie", value), "other");
    weir_rules_unref(rules);
}

TEST_WITH(open_secret, remove_secret, "no request can say that it has passed")
{
    struct weir_rules *rules = test_load(with(""));
    assert_int_equal(weir_rules_source(rules, "challenge", 9).attribute, -1);
    struct test_request *test = ASK(rules, "client.ip", "192.0.2.1");
    test->request.values[WEIR_ATTR_CHALLENGE] = (struct weir_bytes){"passed", 6};
    test->count = weir_rules_checks(&test->query, test->checks);
    test_expect(test, "other{}");
    weir_rules_unref(rules);
}

RUN_TESTS()
