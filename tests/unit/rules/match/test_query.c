/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of queries, and attributes that the rules find in a request's path and cookies. */
#include "core/bytes.h"
#include "rules/match/checks.h"
#include "rules/match/query.h"
#include "rules/source.h"
#include "rules_test.h"
#include "test.h"

/* The decoded value of a parameter; NULL: there is none. */
static const char *value_of(const char *target, const char *name)
{
    static char text[WEIR_QUERY_VALUE_MAX + 1];
    char room[WEIR_QUERY_VALUE_MAX];
    struct weir_bytes value;
    if (!weir_query_find(weir_bytes_of(target), weir_bytes_of(name), &value))
        return NULL;
    assert_true(weir_query_decode(value, &value, room, sizeof room) >= 0);
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    return text;
}

TEST("a parameter is found by its decoded name")
{
    assert_string_equal(value_of("/a?b=1&c=2", "b"), "1");
    assert_string_equal(value_of("/a?b=1&c=2", "c"), "2");
    assert_string_equal(value_of("/a?%61pi_%6bey=x", "api_key"), "x");
    assert_string_equal(value_of("/a?filter[name]=x", "filter[name]"), "x");
    assert_string_equal(value_of("/a?filter%5Bname%5D=x", "filter[name]"), "x");
    assert_string_equal(value_of("https://h/a?b=1", "b"), "1");
    assert_string_equal(value_of("/a?x=?b&b=1", "b"), "1");
    assert_null(value_of("/a", "b"));
    assert_null(value_of("/a?", "b"));
    assert_null(value_of("/a?B=1", "b"));
    assert_null(value_of("/a?bb=1&ab=2", "b"));
    assert_null(value_of("/b=1", "b"));
    assert_null(value_of("/a#?b=1", "b"));
    assert_null(value_of("", "b"));
}

TEST("the first of several counts and a fragment ends them")
{
    assert_string_equal(value_of("/a?b=1&b=2", "b"), "1");
    assert_string_equal(value_of("/a?b&b=2", "b"), "");
    assert_string_equal(value_of("/a?&&b=2", "b"), "2");
    assert_string_equal(value_of("/a?b=1#b=2", "b"), "1");
    assert_string_equal(value_of("/a?b=1;c=2", "b"), "1;c=2");
    assert_string_equal(value_of("/a?b=1=2", "b"), "1=2");
}

TEST("the last of several is found and whether they differ")
{
    static const struct {
        const char *target, *last; /* NULL: there is none */
        bool differs;
    } cases[] = {
        {"/a?b=1&b=2", "2", true},     {"/a?b=1&c=5&%62=1", "1", false},
        {"/a?b=1&b", "", true},        {"/a?b=1#b=2", "1", false},
        {"/a?b=1&B=2", "1", false},    {"/a?b=K&b=%4B", "%4B", true},
        {"/a?c=1", NULL, false},       {"/a", NULL, false},
        {"/a?b=1&b=1&b=2", "2", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_bytes target = weir_bytes_of(cases[i].target), value;
        bool found = weir_query_find_last(target, weir_bytes_of("b"), &value);
        assert_int_equal(found, cases[i].last != NULL);
        if (found)
            assert_true(weir_bytes_are(value, cases[i].last));
        assert_int_equal(weir_query_differs(target, weir_bytes_of("b")), cases[i].differs);
    }
}

TEST("values are decoded and a lone percent stands for itself")
{
    assert_string_equal(value_of("/a?b=x+y%20z", "b"), "x y z");
    assert_string_equal(value_of("/a?b=%2B%26%3d", "b"), "+&=");
    assert_string_equal(value_of("/a?b=%C3%A9", "b"), "\xC3\xA9");
    assert_string_equal(value_of("/a?b=100%", "b"), "100%");
    assert_string_equal(value_of("/a?b=%4", "b"), "%4");
    assert_string_equal(value_of("/a?b=%zz%41", "b"), "%zzA");
    assert_string_equal(value_of("/a?b=%%41", "b"), "%A");
}

TEST("a value has a longest length and needs its room")
{
    static char long_value[WEIR_QUERY_VALUE_MAX + 1], room[WEIR_QUERY_VALUE_MAX + 1];
    struct weir_bytes decoded, encoded = {long_value, WEIR_QUERY_VALUE_MAX};
    memset(long_value, 'x', sizeof long_value);
    assert_int_equal(weir_query_decode(encoded, &decoded, room, sizeof room), 0);
    assert_ptr_equal(decoded.data, long_value);
    long_value[0] = '+';
    assert_int_equal(weir_query_decode(encoded, &decoded, room, sizeof room), WEIR_QUERY_VALUE_MAX);
    assert_int_equal(weir_query_decode(encoded, &decoded, room, WEIR_QUERY_VALUE_MAX - 1), -1);
    encoded.size++;
    assert_int_equal(weir_query_decode(encoded, &decoded, room, sizeof room), -1);
    long_value[0] = 'x';
    assert_int_equal(weir_query_decode(encoded, &decoded, room, sizeof room), -1);
}

/* --- In the rules ----------------------------------------------------------------------------- */

/* The text of the key of the one check of a request; "": no limit applies. */
static const char *key_of(const char *limit, const char *path, const char *cookies)
{
    static char text[WEIR_KEY_TEXT_MAX + 1];
    static struct weir_scratch scratch;
    static const uint64_t secret[2] = {1, 2};
    char file[512];
    struct weir_problems problems = {0};
    struct weir_rules *rules;
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_request request;
    snprintf(file, sizeof file, "limits:\n  - { name: q, rate: 1/s, %s }\n", limit);
    assert_int_equal(weir_rules_parse(&rules, "test", ".", file, strlen(file), &problems), 0);
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    request.fields = WEIR_FIELDS_ALL;
    request.values[WEIR_ATTR_PATH] = weir_bytes_of(path);
    int field = weir_rules_field(rules, "Cookie", 6).attribute;
    if (cookies && field >= 0)
        request.values[field] = weir_bytes_of(cookies);
    const struct weir_rules_query query = {
        .rules = rules, .request = &request, .secret = secret, .scratch = &scratch};
    int count = weir_rules_checks(&query, checks);
    assert_true(count >= 0);
    size_t size = count > 0 ? checks[0].key.size : 0;
    memcpy(text, count > 0 ? checks[0].key.data : "", size);
    text[size] = '\0';
    weir_rules_unref(rules);
    return text;
}

TEST("a limit is keyed by a parameter of the query")
{
    assert_string_equal(key_of("key: [query.k]", "/a?k=1", NULL), "query.k=1");
    assert_string_equal(key_of("key: [query.k, query.l]", "/?l=%41+&k=%42", NULL),
                        "query.k=B,query.l=A%20");
    assert_string_equal(key_of("key: [query.k]", "/a?kk=1", NULL), "");
    assert_string_equal(key_of("match: { query.v: [a, b*] }, key: [path]", "/x?v=%62c", NULL),
                        "path=/x");
    assert_string_equal(key_of("match: { query.v: a }, key: [path]", "/x?v=b&v=a", NULL), "");
    assert_string_equal(key_of("match: { query.v: absent }, key: [path]", "/x?w=b", NULL),
                        "path=/x");
    assert_string_equal(key_of("match: { query.v: absent }, key: [path]", "/x?v=", NULL), "");
}

TEST("a limit is keyed by a cookie that is never shown")
{
    const char *key = key_of("key: [cookie.sid]", "/", "a=1; sid=secret; sid=other");
    assert_non_null(strstr(key, "cookie.sid=sha256:"));
    assert_null(strstr(key, "secret"));
    assert_string_equal(key_of("key: [cookie.sid]", "/", "asid=1, b=sid=2"), "");
    assert_string_equal(key_of("key: [cookie.sid]", "/", NULL), "");
    assert_string_equal(key_of("match: { cookie.b: '1' }, key: [path]", "/", "x=y; b=\"1\""),
                        "path=/");
    assert_string_equal(key_of("match: { cookie.b: absent }, key: [path]", "/", "c=1"), "path=/");
}

TEST("names are checked")
{
    static const char *const bad[] = {"query.", "cookie.", "query.a b", "cookie.a[b]", "query.a=b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char file[256];
        struct weir_problems problems = {0};
        struct weir_rules *rules;
        snprintf(file, sizeof file, "limits:\n  - { name: q, rate: 1/s, key: ['%s'] }\n", bad[i]);
        assert_int_equal(weir_rules_parse(&rules, "test", ".", file, strlen(file), &problems),
                         WEIR_ERR_RULES);
        assert_non_null(
            strstr(problems.list[0].message, bad[i][0] == 'q' ? "parameter" : "cookie"));
        weir_problems_free(&problems);
    }
}

RUN_TESTS()
