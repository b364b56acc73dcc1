/* SPDX-License-Identifier: Apache-2.0 */
/* Error replies that say what to do next, and redirections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "store/redis/client/refusal.h"
#include "test.h"

static const struct redis_host asked = {.name = "10.0.0.9", .port = 7009};

TEST("refusals are known by their first word")
{
    static const struct {
        const char *text;
        enum redis_refusal refusal;
    } cases[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", REDIS_REFUSAL_NOSCRIPT},
        {"MOVED 3999 127.0.0.1:6381", REDIS_REFUSAL_MOVED},
        {"ASK 3999 127.0.0.1:6381", REDIS_REFUSAL_ASK},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REDIS_REFUSAL_WAIT},
        {"LOADING Redis is loading the dataset in memory", REDIS_REFUSAL_WAIT},
        {"BUSY Redis is busy running a script.", REDIS_REFUSAL_WAIT},
        {"CLUSTERDOWN The cluster is down", REDIS_REFUSAL_DOWN},
        {"READONLY You can't write against a read only replica.", REDIS_REFUSAL_REPLICA},
        {"MASTERDOWN Link with MASTER is down", REDIS_REFUSAL_REPLICA},
        {"ERR Error running script (call to f_1a): @user_script:3: @user_script: 3: -READONLY no",
         REDIS_REFUSAL_REPLICA},
        {"ERR Error running script (call to f_1a): @user_script:3: -MOVED 1 a:1",
         REDIS_REFUSAL_MOVED},
        {"ERR Error running script (call to f_1a): attempt to index nil", REDIS_REFUSAL_NONE},
        {"ERR READONLY", REDIS_REFUSAL_NONE},
        {"ASKING", REDIS_REFUSAL_NONE},
        {"ASK", REDIS_REFUSAL_ASK},
        {"NOPERM this user has no permissions to run the 'evalsha' command", REDIS_REFUSAL_RIGHTS},
        {"NOPERM this user has no permissions to run the 'get' command", REDIS_REFUSAL_NONE},
        {"BUSYKEY Target key name already exists.", REDIS_REFUSAL_NONE},
        {"OOM command not allowed", REDIS_REFUSAL_NONE},
        {"WRONGTYPE Operation", REDIS_REFUSAL_NONE},
        {"", REDIS_REFUSAL_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (redis_refusal_of(weir_bytes_of(cases[i].text)) != cases[i].refusal)
            fail_msg("%s", cases[i].text);
}

TEST("missing rights are known")
{
    static const struct {
        const char *text;
        bool lacks;
    } cases[] = {
        {"NOPERM this user has no permissions to access one of the keys used as arguments", true},
        {"ERR ACL failure in script: User weir has no permissions to run the 'get' command", true},
        {"ERR The user executing the script can't run this command or subcommand script: 1, on ",
         true},
        {"ERR Error running script (call to f_1a): @user_script:3: The user executing the script "
         "can't run this command or subcommand",
         true},
        {"MOVED 1 a:1", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(redis_lacks_rights(weir_bytes_of(cases[i].text)), cases[i].lacks);
}

TEST("redirections are read")
{
    static const struct {
        const char *text;
        uint16_t slot;
        const char *name;
        uint16_t port;
    } cases[] = {
        {"MOVED 3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381},
        {"ASK 0 redis-1.example:1", 0, "redis-1.example", 1},
        {"MOVED 16383 2001:db8::7:65535", 16383, "2001:db8::7", 65535},
        {"MOVED 1 :6381", 1, "10.0.0.9", 6381},
        {"MOVED 1 ?:6381", 1, "10.0.0.9", 6381},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct redis_host host;
        uint16_t slot;
        assert_int_equal(redis_redirection_read(weir_bytes_of(cases[i].text), &asked, &slot, &host),
                         0);
        assert_int_equal(slot, cases[i].slot);
        assert_string_equal(host.name, cases[i].name);
        assert_int_equal(host.port, cases[i].port);
    }
}

TEST("nonsense is no redirection")
{
    static const char *const cases[] = {
        "MOVED",
        "MOVED ",
        "MOVED 1",
        "MOVED 1 ",
        "MOVED 1 a",
        "MOVED 1 a:",
        "MOVED 1 a:0",
        "MOVED 1 a:65536",
        "MOVED 1 a:1x",
        "MOVED 16384 a:1",
        "MOVED -1 a:1",
        "MOVED x a:1",
        "MOVED 99999999999999999999 a:1",
        "MOVED 1 a b:1",
        "MOVED 1 \x01:1",
        "MOVED  1 a:1",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct redis_host host;
        uint16_t slot;
        assert_int_equal(redis_redirection_read(weir_bytes_of(cases[i]), &asked, &slot, &host),
                         WEIR_ERR_SYNTAX);
    }
}

TEST("hosts have a bound")
{
    char name[REDIS_HOST_MAX];
    struct redis_host host;
    memset(name, 'x', sizeof name);
    assert_int_equal(redis_named_host((struct weir_bytes){name, sizeof name}, 1, &asked, &host),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(redis_named_host((struct weir_bytes){name, sizeof name - 1}, 1, &asked, &host),
                     0);
    assert_int_equal(strlen(host.name), sizeof name - 1);
}

TEST("quotes are printable and short")
{
    char out[8];
    assert_string_equal(redis_quote(out, sizeof out, weir_bytes_of("a\r\n\x7f\xff")), "a....");
    assert_string_equal(redis_quote(out, sizeof out, weir_bytes_of("0123456789")), "0123456");
    assert_string_equal(redis_quote(out, sizeof out, (struct weir_bytes){NULL, 0}), "");
}

RUN_TESTS()
