/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of Redis: all forms, and what is wrong with the others, without ever repeating a password.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/client/url.h"
#include "test.h"

static struct redis_url url;
static struct weir_reason reason;

static void parse(const char *text)
{
    if (redis_url_parse(&url, text, &reason) != 0)
        fail_msg("%s: %s", text, reason.text);
}

TEST("one server")
{
    parse("redis://127.0.0.1");
    assert_int_equal(url.kind, REDIS_SINGLE);
    assert_false(url.tls);
    assert_int_equal(url.host_count, 1);
    assert_string_equal(url.hosts[0].name, "127.0.0.1");
    assert_int_equal(url.hosts[0].port, 6379);
    assert_int_equal(url.db, 0);
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "");
    parse("rediss://redis.example.com:6390/15");
    assert_true(url.tls);
    assert_string_equal(url.hosts[0].name, "redis.example.com");
    assert_int_equal(url.hosts[0].port, 6390);
    assert_int_equal(url.db, 15);
    parse("redis://[2001:db8::1]:7000/");
    assert_string_equal(url.hosts[0].name, "2001:db8::1");
    assert_int_equal(url.hosts[0].port, 7000);
    parse("redis://[::1]");
    assert_int_equal(url.hosts[0].port, 6379);
}

TEST("users and passwords")
{
    parse("redis://:sesame@h");
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "sesame");
    parse("redis://weir:a%2Fb%40c%3a%25@h:1/2");
    assert_string_equal(url.user, "weir");
    assert_string_equal(url.password, "a/b@c:%");
    parse("redis://weir:a:b@h"); /* only the first colon parts them */
    assert_string_equal(url.password, "a:b");
    parse("redis://:@h");
    assert_string_equal(url.password, "");
    parse("redis-cluster://u:p@a,b");
    assert_string_equal(url.user, "u");
}

TEST("unix sockets")
{
    parse("unix:/run/redis/redis.sock");
    assert_int_equal(url.kind, REDIS_UNIX);
    assert_string_equal(url.path, "/run/redis/redis.sock");
    assert_int_equal(url.db, 0);
    parse("unix:/a%20b%3Fc?db=3");
    assert_string_equal(url.path, "/a b?c");
    assert_int_equal(url.db, 3);
    parse("unix:///run/s");
    assert_string_equal(url.path, "/run/s");
}

TEST("sentinels and clusters")
{
    parse("redis-sentinel://a,b:1,[::1]:2/my-group/4");
    assert_int_equal(url.kind, REDIS_SENTINEL);
    assert_int_equal(url.host_count, 3);
    assert_int_equal(url.hosts[0].port, 26379);
    assert_int_equal(url.hosts[1].port, 1);
    assert_string_equal(url.hosts[2].name, "::1");
    assert_int_equal(url.hosts[2].port, 2);
    assert_string_equal(url.group, "my-group");
    assert_int_equal(url.db, 4);
    parse("rediss-sentinel://a/g");
    assert_true(url.tls);
    assert_int_equal(url.db, 0);
    parse("redis-cluster://a:7000,b:7001");
    assert_int_equal(url.kind, REDIS_CLUSTER);
    assert_int_equal(url.host_count, 2);
    assert_int_equal(url.hosts[1].port, 7001);
    parse("rediss-cluster://a/0");
    assert_true(url.tls);
    parse("redis-cluster://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a");
    assert_int_equal(url.host_count, REDIS_HOSTS_MAX);
}

TEST("what is wrong is reported with its place")
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "character 1: must begin with redis://"},
        {"http://h", "character 1: must begin with redis://"},
        {"redis:/h", "character 1: must begin with redis://"},
        {"redis://", "character 9: missing host"},
        {"redis:///0", "character 9: missing host"},
        {"redis://:6379", "character 9: missing host"},
        {"redis://h:", "character 11: the port must be a number"},
        {"redis://h:0", "character 11: the port must be a number"},
        {"redis://h:65536", "character 11: the port must be a number"},
        {"redis://h:06379", "character 11: the port must be a number"},
        {"redis://h:6379x", "character 11: the port must be a number"},
        {"redis://h/x", "character 11: the database must be a number"},
        {"redis://h/-1", "character 11: the database"},
        {"redis://h/1/2", "character 11: the database"},
        {"redis://h/2147483648", "character 11: the database"},
        {"redis://h?db=1", "character 10: this character is not allowed in a host name"},
        {"redis://h#1", "character 10: this character is not allowed in a host name"},
        {"redis://a,b", "character 10: this character is not allowed in a host name"},
        {"redis://a b", "character 10: write this character as %"},
        {"redis://h\xc3\xa9", "character 10: write this character as %"},
        {"redis://[::1", "character 9: missing ] after this ["},
        {"redis://[1.2.3.4]", "character 10: expected an IPv6 address"},
        {"redis://[::1]x", "character 14: this character is not allowed"},
        {"redis://user@h", "character 13: expected user:password"},
        {"redis://user:@h", "character 14: a user needs a password"},
        {"redis://:sec@ret@h", "character 13: write an @ in a user or password as %40"},
        {"redis://:sec/ret@h", "character 13: write a / in a password as %2F"},
        {"redis://:sec%2@h", "character 13: a % must be followed by two hexadecimal digits"},
        {"redis://:sec%g0@h", "character 13: a % must be followed by two hexadecimal digits"},
        {"redis://:sec%00ret@h", "character 13: a NUL"},
        {"redis-cluster://a,", "character 19: missing host"},
        {"redis-cluster://a,,b", "character 19: missing host"},
        {"redis-cluster://a/1", "character 19: a Cluster only has database 0"},
        {"redis-cluster://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "more than 16 hosts"},
        {"redis-sentinel://a", "character 19: missing name of the group"},
        {"redis-sentinel://a/", "character 20: missing name of the group"},
        {"redis-sentinel://a/g h", "character 21: write this character"},
        {"redis-sentinel://a/g/x", "character 22: the database"},
        {"unix:", "character 6: the path of a socket must begin with /"},
        {"unix:run/s", "character 6: the path"},
        {"unix://host/s", "character 8: the path"},
        {"unix:/s?x=1", "character 8: only ?db=NUMBER"},
        {"unix:/s?db=", "character 8: only ?db=NUMBER"},
        {"unix:/s%00", "character 8: a NUL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(redis_url_parse(&url, cases[i].text, &reason), WEIR_ERR_SYNTAX);
        if (strstr(reason.text, cases[i].reason) == NULL)
            fail_msg("%s: %s", cases[i].text, reason.text);
        assert_null(strstr(reason.text, "sec"));
        assert_null(strstr(reason.text, "ret"));
    }
}

/* A URL of `count` characters x in the middle. */
static int parse_long(const char *before, size_t count, const char *after)
{
    char text[2048];
    size_t size = strlen(before);
    memcpy(text, before, size);
    memset(text + size, 'x', count);
    strcpy(text + size + count, after);
    return redis_url_parse(&url, text, &reason);
}

TEST("lengths have bounds")
{
    static const struct {
        const char *before;
        size_t most;
        const char *after;
    } cases[] = {
        {"redis://", REDIS_HOST_MAX - 1, ""},
        {"redis://:", REDIS_SECRET_MAX - 1, "@h"},
        {"redis://", REDIS_SECRET_MAX - 1, ":p@h"},
        {"redis-sentinel://h/", REDIS_HOST_MAX - 1, "/1"},
        {"unix:/", REDIS_PATH_MAX - 2, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse_long(cases[i].before, cases[i].most, cases[i].after), 0);
        assert_int_equal(parse_long(cases[i].before, cases[i].most + 1, cases[i].after),
                         WEIR_ERR_SYNTAX);
        assert_non_null(strstr(reason.text, "too long"));
    }
}

RUN_TESTS()
