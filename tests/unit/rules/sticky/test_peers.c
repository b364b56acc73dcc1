/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/sticky/rules/peers.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"

static int parse(const char *text, struct rules_peer peers[RULES_PEERS_MAX], uint32_t *line,
                 struct weir_reason *reason)
{
    memset(reason, 0, sizeof *reason);
    return rules_peers_parse(weir_bytes_of(text), peers, line, reason);
}

TEST("peers are names and urls in any order with comments")
{
    struct rules_peer peers[RULES_PEERS_MAX];
    struct weir_reason reason;
    uint32_t line;
    assert_int_equal(parse("# the fleet\r\n\n b-1.x \t rediss://:secret@b.example:6380 # second\r\n"
                           "a redis://10.0.0.1:6380\nc unix:/run/weir/redis.sock",
                           peers, &line, &reason),
                     3);
    assert_true(weir_bytes_are(peers[0].name, "b-1.x"));
    assert_true(weir_bytes_are(peers[0].url, "rediss://:secret@b.example:6380"));
    assert_true(weir_bytes_are(peers[1].name, "a"));
    assert_true(weir_bytes_are(peers[2].url, "unix:/run/weir/redis.sock"));
}

TEST("what is wrong is said with its line")
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *says;
    } cases[] = {
        {"", 0, "no peer"},
        {"# a redis://h:1\n", 0, "no peer"},
        {"a redis://h:1\nA redis://h:2\n", 2, "a-z"},
        {"a\n", 1, "a name and a URL"},
        {"a # redis://h:1\n", 1, "a name and a URL"},
        {"a redis://h:1 b\n", 1, "remove what follows"},
        {"a http://h:1\n", 1, "begins with redis://"},
        {"a redis://\n", 1, "begins with redis://"},
        {"a redis://h,i\n", 1, "one Redis listener"},
        {"a redis-cluster://h:1\n", 1, "begins with redis://"},
        {"a redis://h:1\n\na redis://h:2", 3, "this name"},
        {"a redis://h:1\nb redis://h:1", 2, "this URL"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rules_peer peers[RULES_PEERS_MAX];
        struct weir_reason reason;
        uint32_t line;
        assert_int_equal(parse(cases[i].text, peers, &line, &reason), WEIR_ERR_SYNTAX);
        assert_int_equal(line, cases[i].line);
        assert_non_null(strstr(reason.text, cases[i].says));
        assert_null(strstr(reason.text, "h:")); /* a URL may hold a password */
    }
}

TEST("names urls and files have bounds")
{
    struct rules_peer peers[RULES_PEERS_MAX];
    struct weir_reason reason;
    char text[2048], name[80], url[600];
    uint32_t line;
    size_t size = 0;
    for (int i = 0; i < RULES_PEERS_MAX; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "n%d redis://h:%d\n", i, i + 1);
    assert_int_equal(parse(text, peers, &line, &reason), RULES_PEERS_MAX);
    snprintf(text + size, sizeof text - size, "more redis://i:1\n");
    assert_int_equal(parse(text, peers, &line, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(line, RULES_PEERS_MAX + 1);
    for (int more = 0; more <= 1; more++) {
        memset(name, 'x', sizeof name);
        name[RULES_PEER_NAME_MAX + more] = '\0';
        snprintf(text, sizeof text, "%s redis://h", name);
        assert_int_equal(parse(text, peers, &line, &reason), more ? WEIR_ERR_SYNTAX : 1);
        memset(url, 'x', sizeof url);
        memcpy(url, "redis://", 8);
        url[RULES_PEER_URL_MAX + more] = '\0';
        snprintf(text, sizeof text, "a %s", url);
        assert_int_equal(parse(text, peers, &line, &reason), more ? WEIR_ERR_SYNTAX : 1);
    }
}

RUN_TESTS()
