/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECK and its like: requests under the rules file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"
#include "test.h"

static const char rules[] = "version: 1\n"
                            "plans:\n"
                            "  free: { api: 2/min }\n"
                            "  pro: { api: 50/min }\n"
                            "default_plan: free\n"
                            "limits:\n"
                            "  - name: login\n"
                            "    match: { method: POST, path: /login }\n"
                            "    key: [client.ip/64]\n"
                            "    algorithm: fixed_window\n"
                            "    rate: 5/min\n"
                            "  - name: api\n"
                            "    match: { path: /api/** }\n"
                            "    key: [user]\n"
                            "    algorithm: token_bucket\n"
                            "    rate: plan\n"
                            "  - name: seats\n"
                            "    match: { path: /seat }\n"
                            "    key: [header.x-room]\n"
                            "    algorithm: concurrency\n"
                            "    limit: 1\n"
                            "    life: 30s\n";

static int open_with_rules(void **state)
{
    *state = redis_harness_open(rules, 100);
    return 0;
}

/* 38 s of the minute are left at the start. */
#define LOGIN "login fixed_window "

TEST_WITH(open_with_rules, close_harness, "a request is decided under the rules")
{
    static const struct step steps[] = {
        {0, "WEIR.CHECK method POST path /login ip 192.0.2.1",
         "1 nil 0 0 " LOGIN "1 0 5 4 0 39877"},
        {0, "WEIR.CHECK method POST path /login client.ip 192.0.2.1 COST 4",
         "1 nil 0 0 " LOGIN "1 0 5 0 0 39877"},
        {0, "WEIR.CHECK path /login method POST ip 192.0.2.1",
         "0 login 39877 0 " LOGIN "0 0 5 0 39877 39877"},
        {0, "WEIR.CHECK method POST path /login ip 192.0.2.2 COST 6",
         "0 login -1 0 " LOGIN "0 0 5 5 -1 0"},
        {0, "WEIR.CHECK method GET path /login ip 192.0.2.1", "1 nil 0 0"},
        {0, "WEIR.CHECK", "1 nil 0 0"},
        {39877, "WEIR.CHECK method POST path /login ip 192.0.2.1",
         "1 nil 0 0 " LOGIN "1 0 5 4 0 60000"},
    };
    /* The replies hold the names of their fields; they are left out here. */
    static const char *const words[] = {"allowed", "denied_by", "retry_after_ms", "delay_ms",
                                        "limits",  "name",      "algorithm",      "shadow",
                                        "limit",   "remaining", "reset_after_ms", NULL};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char reply[1024], short_reply[1024] = "", *save;
        snprintf(reply, sizeof reply, "%s",
                 redis_harness_ask(*state, steps[i].t_ms, steps[i].command));
        for (char *word = strtok_r(reply, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
            bool is_name = false;
            for (size_t w = 0; words[w]; w++)
                is_name = is_name || !strcmp(word, words[w]);
            if (is_name)
                continue;
            if (short_reply[0])
                strcat(short_reply, " ");
            strcat(short_reply, word);
        }
        assert_string_equal(short_reply, steps[i].reply);
    }
}

TEST_WITH(open_with_rules, close_harness, "the reply is a flat array or a map")
{
    static const char check[] = "WEIR.CHECK path /api/x user u\r\n";
    assert_string_equal(
        redis_harness_send(*state, check, sizeof check - 1),
        "*10\r\n$7\r\nallowed\r\n:1\r\n$9\r\ndenied_by\r\n$-1\r\n$14\r\nretry_after_ms\r\n:0\r\n"
        "$8\r\ndelay_ms\r\n:0\r\n$6\r\nlimits\r\n*1\r\n*16\r\n$4\r\nname\r\n$3\r\napi\r\n"
        "$9\r\nalgorithm\r\n$12\r\ntoken_bucket\r\n$7\r\nallowed\r\n:1\r\n$6\r\nshadow\r\n:0\r\n"
        "$5\r\nlimit\r\n:2\r\n$9\r\nremaining\r\n:1\r\n$14\r\nretry_after_ms\r\n:0\r\n"
        "$14\r\nreset_after_ms\r\n:30000\r\n");
    redis_harness_ask(*state, 0, "HELLO 3");
    redis_harness_ask(*state, 0, "WEIR.CHECK path /api/x user u");
    assert_string_equal(
        redis_harness_send(*state, check, sizeof check - 1),
        "%5\r\n$7\r\nallowed\r\n#f\r\n$9\r\ndenied_by\r\n$3\r\napi\r\n$14\r\nretry_after_ms\r\n"
        ":30000\r\n$8\r\ndelay_ms\r\n:0\r\n$6\r\nlimits\r\n*1\r\n%8\r\n$4\r\nname\r\n$3\r\napi\r\n"
        "$9\r\nalgorithm\r\n$12\r\ntoken_bucket\r\n$7\r\nallowed\r\n#f\r\n$6\r\nshadow\r\n#f\r\n"
        "$5\r\nlimit\r\n:2\r\n$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n:30000\r\n"
        "$14\r\nreset_after_ms\r\n:60000\r\n");
}

/* How much is left, of a reply with one limit. */
static int remaining(struct redis_harness *harness, uint64_t t_ms, const char *command)
{
    const char *reply = redis_harness_ask(harness, t_ms, command);
    const char *at = strstr(reply, "remaining ");
    assert_non_null(at);
    return atoi(at + 10);
}

TEST_WITH(open_with_rules, close_harness, "peeking charges nothing")
{
    assert_int_equal(remaining(*state, 0, "WEIR.PEEK path /api/x user u COST 2"), 2);
    assert_int_equal(remaining(*state, 0, "WEIR.CHECK path /api/x user u DRYRUN"), 2);
    assert_int_equal(remaining(*state, 0, "WEIR.CHECK path /api/x DRYRUN user u COST 3"), 2);
    assert_int_equal(remaining(*state, 0, "WEIR.CHECK path /api/x user u"), 1);
}

TEST_WITH(open_with_rules, close_harness, "a refund goes to what was charged")
{
    static const char post[] = "WEIR.PEEK method POST path /login ip 192.0.2.1";
    redis_harness_ask(*state, 0, "WEIR.CHECK method POST path /login ip 192.0.2.1 COST 3");
    assert_int_equal(
        remaining(*state, 1000, "WEIR.REFUND method POST path /login ip 192.0.2.1 COST 2"), 4);
    assert_int_equal(
        remaining(*state, 1000, "WEIR.REFUND method POST path /login ip 192.0.2.1 COST 99"), 5);
    redis_harness_ask(*state, 1000, "WEIR.CHECK method POST path /login ip 192.0.2.1 COST 3");
    /* Two minutes ago was another window, and then there was nothing to give back. */
    assert_int_equal(
        remaining(*state, 1000, "WEIR.REFUND method POST path /login ip 192.0.2.1 AGE 120000"), 2);
    assert_int_equal(remaining(*state, 1000, post), 2);
    assert_int_equal(
        remaining(*state, 1000,
                  "WEIR.REFUND method POST path /login ip 192.0.2.1 AGE 9223372036854775807"),
        2);
}

TEST_WITH(open_with_rules, close_harness, "a reset forgets what a request has used")
{
    redis_harness_ask(*state, 0, "WEIR.CHECK path /api/x user u COST 2");
    assert_int_equal(remaining(*state, 0, "WEIR.PEEK path /api/x user u"), 0);
    assert_string_equal(redis_harness_ask(*state, 0, "WEIR.RESET path /api/x user u"), "1");
    assert_string_equal(redis_harness_ask(*state, 0, "WEIR.RESET path /api/x user u"), "0");
    assert_int_equal(remaining(*state, 0, "WEIR.PEEK path /api/x user u"), 2);
}

TEST_WITH(open_with_rules, close_harness, "a lease is given and ended")
{
    char command[1200];
    const char *reply = redis_harness_ask(*state, 0, "WEIR.CHECK path /seat header.X-Room r");
    const char *lease = strstr(reply, " lease ");
    assert_non_null(lease);
    snprintf(command, sizeof command, "WEIR.RELEASE %s", lease + 7);
    assert_memory_equal(redis_harness_ask(*state, 0, "WEIR.CHECK path /seat header.x-room r"),
                        "allowed 0", 9);
    assert_string_equal(redis_harness_ask(*state, 0, command), "1");
    assert_string_equal(redis_harness_ask(*state, 0, command), "0");
    assert_string_equal(redis_harness_ask(*state, 0, "WEIR.RELEASE nonsense"),
                        "-ERR not a lease token");
    assert_memory_equal(redis_harness_ask(*state, 0, "WEIR.CHECK path /seat header.x-room r"),
                        "allowed 1", 9);
}

TEST_WITH(open_with_rules, close_harness, "who somebody is only a trusted caller may say")
{
    struct redis_harness *harness = *state;
    assert_non_null(
        strstr(redis_harness_ask(harness, 0, "WEIR.PEEK path /api/x user u plan pro"), "limit 50"));
    harness->listener.local = false;
    assert_null(
        strstr(redis_harness_ask(harness, 0, "WEIR.PEEK path /api/x user u plan pro"), "limit 50"));
}

TEST_WITH(open_with_rules, close_harness, "what is wrong is named")
{
    static const struct step steps[] = {
        {0, "WEIR.CHECK method", "-ERR method has no value"},
        {0, "WEIR.CHECK path /login COST", "-ERR COST is not an integer or out of range"},
        {0, "WEIR.CHECK path /login COST -1", "-ERR COST is not an integer or out of range"},
        {0, "WEIR.CHECK ip nowhere", "-ERR ip: not an IP address"},
        {0, "WEIR.CHECK path /a path /b", "-ERR path is given twice"},
        {0, "WEIR.CHECK ip 192.0.2.1 client.ip 192.0.2.2", "-ERR client.ip is given twice"},
        {0, "WEIR.CHECK \"\" x", "-ERR an attribute has no name"},
        {0, "WEIR.PEEK DRYRUN", "-ERR DRYRUN has no value"},
        {0, "WEIR.REFUND AGE x", "-ERR AGE is not an integer or out of range"},
        {0, "WEIR.CHECK unheard of", "allowed 1 denied_by nil retry_after_ms 0 delay_ms 0 limits"},
    };
    RUN(steps);
    assert_memory_equal(redis_harness_ask(*state, 0, "WEIR.CHECK path /%zz"), "-ERR path", 9);
    assert_int_equal(((struct redis_harness *)*state)->state.taken, 0);
}

RUN_TESTS()
