/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment in addresses, URLs and names of files. */
#include "rules_test.h"
#include "test.h"

#define STATE "limits: []\nstate: {file: "

/* Expects a problem at a place that says something. */
static void test_problem(const char *text, unsigned line, unsigned column, const char *expected)
{
    static char problems[TEST_PROBLEMS_MAX];
    char place[40];
    assert_null(test_parse(text, problems));
    snprintf(place, sizeof place, "%u:%u: ", line, column);
    if (strncmp(problems, place, strlen(place)) != 0 || !strstr(problems, expected))
        print_error("%s", problems);
    assert_memory_equal(problems, place, strlen(place));
    assert_non_null(strstr(problems, expected));
}

static void set(void **state)
{
    (void)state;
    setenv("WEIR_TEST_HOST", "db.example", 1);
    setenv("WEIR_TEST_EMPTY", "", 1);
    setenv("WEIR_TEST_NESTED", "${WEIR_TEST_HOST}", 1);
    setenv("_9", "nine", 1);
    unsetenv("WEIR_TEST_NONE");
}

/* The state file of a rules file in which it is written like this. */
static void check_file(const char *written, const char *expected)
{
    char text[512];
    snprintf(text, sizeof text, STATE "%s}\n", written);
    struct weir_rules *rules = test_load(text);
    assert_string_equal(weir_rules_settings(rules)->state_file, expected);
    weir_rules_unref(rules);
}

TEST("variables are replaced by their values")
{
    set(state);
    check_file("'/var/${WEIR_TEST_HOST}/state'", "/var/db.example/state");
    check_file("\"${WEIR_TEST_HOST}${_9}\"", "db.examplenine");
    check_file("'/${WEIR_TEST_HOST:-other}'", "/db.example");
}

TEST("a default is taken where there is no value")
{
    set(state);
    check_file("'/${WEIR_TEST_NONE:-a/b}'", "/a/b");
    check_file("'/${WEIR_TEST_EMPTY:-x:-y}'", "/x:-y");
    check_file("'/a${WEIR_TEST_NONE:-}b'", "/ab");
}

TEST("everything else stands for itself")
{
    set(state);
    check_file("'/$WEIR_TEST_HOST/$$/$'", "/$WEIR_TEST_HOST/$$/$");
    check_file("'/$${WEIR_TEST_HOST}'", "/${WEIR_TEST_HOST}");
    check_file("'/${WEIR_TEST_NESTED}'", "/${WEIR_TEST_HOST}");
    check_file("'/}{'", "/}{");
}

TEST("every kind of place takes them")
{
    set(state);
    setenv("WEIR_TEST_PORT", "8123", 1);
    struct weir_rules *rules =
        test_load("server: {http: '127.0.0.1:${WEIR_TEST_PORT}', admin: {address: "
                  "'unix:/run/${WEIR_TEST_HOST}'}}\n"
                  "store: {redis: 'redis://${WEIR_TEST_HOST}:6379/0', nodes: 1}\n"
                  "limits: []\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_string_equal(settings->http.address, "127.0.0.1:8123");
    assert_string_equal(settings->admin.address, "unix:/run/db.example");
    assert_string_equal(settings->store.redis.url, "redis://db.example:6379/0");
    weir_rules_unref(rules);
    rules = test_load("store: {redis: {url: 'rediss://${WEIR_TEST_HOST}', tls: {ca: "
                      "'/${WEIR_TEST_HOST}.pem'}}, nodes: 1}\nlimits: []\n");
    assert_string_equal(weir_rules_settings(rules)->store.redis.ca_file, "/db.example.pem");
    weir_rules_unref(rules);
}

TEST("other values do not take them")
{
    set(state);
    test_problem("limits:\n- {name: '${WEIR_TEST_HOST}', key: [a], rate: 1/s}\n", 2, 10,
                 "must be 1 to");
}

TEST("a variable that is not set is a problem with its place")
{
    set(state);
    test_problem(STATE "'/a/${WEIR_TEST_NONE}'}\n", 2, 19,
                 "`file`: the environment has no variable WEIR_TEST_NONE; set it, or give a "
                 "default: `${WEIR_TEST_NONE:-...}`");
    test_problem(STATE "\"${WEIR_TEST_EMPTY}\"}\n", 2, 16, "no variable WEIR_TEST_EMPTY");
    test_problem("limits: []\nstate:\n  file: /a/${WEIR_TEST_NONE}\n", 3, 12,
                 "no variable WEIR_TEST_NONE");
    test_problem("limits: []\nstate:\n  file: '/a${WEIR_TEST_HOST}\n\n   ${WEIR_TEST_NONE}'\n", 3,
                 9, "no variable WEIR_TEST_NONE");
}

TEST("malformed variables are problems")
{
    set(state);
    test_problem(STATE "'${A'}\n", 2, 16,
                 "`${` has no `}`; for these characters alone write `$${`");
    static const char *const wrong[] = {"${}", "${9}", "${A B}", "${A-b}", "${A:b}", "${:-b}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        snprintf(text, sizeof text, STATE "'%s'}\n", wrong[i]);
        test_problem(text, 2, 16, "a variable is `${NAME}` or `${NAME:-default}`");
    }
    char long_name[300], text[400];
    memset(long_name, 'A', sizeof long_name);
    snprintf(text, sizeof text, STATE "'${%.129s}'}\n", long_name);
    test_problem(text, 2, 16, "a variable is");
    snprintf(text, sizeof text, STATE "'${%.128s}'}\n", long_name);
    test_problem(text, 2, 16, "the environment has no variable AAA");
}

TEST("a value that is too long is a problem and is not quoted")
{
    char *secret = calloc(1, 5000);
    set(state);
    memset(secret, 's', 4096);
    setenv("WEIR_TEST_LONG", secret, 1);
    check_file("'${WEIR_TEST_LONG}'", secret);
    test_problem(STATE "'/${WEIR_TEST_LONG}'}\n", 2, 15,
                 "`file` has more than 4096 bytes with its variables");
    free(secret);
    unsetenv("WEIR_TEST_LONG");
}

RUN_TESTS()
