/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, and what clients ask before they trust a server; requests cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"
#include "server/resp/commands.h"
#include "test.h"

static const char password_rules[] =
    "version: 1\nserver: { redis: { address: 127.0.0.1:6380, token: sesame } }\nlimits: []\n";

static int open_with_password(void **state)
{
    *state = redis_harness_open(password_rules, 100);
    return 0;
}

/* --- Sessions --------------------------------------------------------------------------------- */

TEST_WITH(open_harness, close_harness, "small talk")
{
    static const struct step steps[] = {
        {0, "PING", "PONG"},
        {0, "ping hello", "hello"},
        {0, "PING a b", "-ERR wrong number of arguments for 'ping' command"},
        {0, "ECHO \"a b\"", "a b"},
        {0, "ECHO", "-ERR wrong number of arguments for 'echo' command"},
        {0, "NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "},
        {0, "SELECT 15", "OK"},
        {0, "SELECT 16", "-ERR DB index is out of range"},
        {0, "SELECT x", "-ERR value is not an integer or out of range"},
        {0, "AUTH x",
         "-ERR AUTH <password> called without any password configured for the default user. Are "
         "you sure your configuration is correct?"},
        {0, "AUTH default anything", "OK"},
        {0, "DBSIZE", "0"},
        {0, "RESET", "RESET"},
    };
    RUN(steps);
    assert_string_equal(redis_harness_ask(*state, 0, ""), "");
    assert_string_equal(redis_harness_ask(*state, 0, "QUIT"), "OK");
    assert_true(((struct redis_harness *)*state)->closed);
}

TEST_WITH(open_harness, close_harness, "a client has a name and a number")
{
    static const struct step steps[] = {
        {0, "CLIENT ID", "1"},
        {0, "CLIENT GETNAME", "nil"},
        {0, "CLIENT SETNAME me", "OK"},
        {0, "CLIENT GETNAME", "me"},
        {0, "CLIENT SETNAME \"a b\"",
         "-ERR Client names cannot contain spaces, newlines or special characters."},
        {0, "CLIENT SETNAME 12345678901234567890123456789012345678901234567890123456",
         "-ERR Client names have at most 55 characters"},
        {0, "CLIENT SETINFO LIB-NAME redis-py", "OK"},
        {0, "CLIENT SETINFO WHAT x", "-ERR Unrecognized option 'WHAT'"},
        {0, "CLIENT NO-EVICT on", "OK"},
        {0, "CLIENT NO-TOUCH maybe", "-ERR syntax error"},
        {0, "CLIENT INFO", "id=1 addr=unix name=me db=0 resp=2 user=default cmd=client|info\n"},
        {0, "CLIENT", "-ERR wrong number of arguments for 'client' command"},
        {0, "CLIENT SETNAME", "-ERR wrong number of arguments for 'client' command"},
        {0, "CLIENT KILL", "-ERR unknown subcommand 'KILL'. Try COMMAND DOCS CLIENT."},
        {0, "RESET", "RESET"},
        {0, "CLIENT GETNAME", "nil"},
    };
    RUN(steps);
    redis_harness_connect(*state);
    assert_string_equal(redis_harness_ask(*state, 0, "CLIENT ID"), "2");
}

TEST_WITH(open_harness, close_harness, "hello chooses the protocol")
{
    static const struct step steps[] = {
        {0, "HELLO", "server weir version 7.2.0 proto 2 id 1 mode standalone role master modules"},
        {0, "HELLO 4", "-NOPROTO unsupported protocol version"},
        {0, "HELLO x", "-ERR Protocol version is not an integer or out of range"},
        {0, "HELLO 3 WHAT", "-ERR Syntax error in HELLO option 'WHAT'"},
        {0, "HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
        {0, "HELLO 3 AUTH default", "-ERR Syntax error in HELLO option 'AUTH'"},
        {0, "CLIENT GETNAME", "nil"},
        {0, "HELLO 3 AUTH default x SETNAME me",
         "server weir version 7.2.0 proto 3 id 1 mode standalone role master modules"},
        {0, "CLIENT GETNAME", "me"},
    };
    RUN(steps);
    assert_string_equal(redis_harness_send(*state, "RESET\r\n", 7), "+RESET\r\n");
    assert_string_equal(redis_harness_send(*state, "CLIENT GETNAME\r\n", 16), "$-1\r\n");
    redis_harness_ask(*state, 0, "HELLO 3");
    assert_string_equal(redis_harness_send(*state, "CLIENT GETNAME\r\n", 16), "_\r\n");
    assert_string_equal(redis_harness_send(*state, "CONFIG GET save\r\n", 17),
                        "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
}

TEST_WITH(open_with_password, close_harness, "a password is asked for")
{
    static const struct step steps[] = {
        {0, "PING", "-NOAUTH Authentication required."},
        {0, "CL.THROTTLE k 1 1 1", "-NOAUTH Authentication required."},
        {0, "HELLO 3",
         "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
         "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
         "RESP protocol version at the same time"},
        {0, "AUTH open", "-WRONGPASS invalid username-password pair or user is disabled."},
        {0, "AUTH sesamesesame", "-WRONGPASS invalid username-password pair or user is disabled."},
        {0, "AUTH \"\"", "-WRONGPASS invalid username-password pair or user is disabled."},
        {0, "AUTH other sesame", "-WRONGPASS invalid username-password pair or user is disabled."},
        {0, "AUTH a b c", "-ERR syntax error"},
        {0, "AUTH sesame", "OK"},
        {0, "PING", "PONG"},
        {0, "RESET", "RESET"},
        {0, "PING", "-NOAUTH Authentication required."},
        {0, "HELLO 3 AUTH default nope",
         "-WRONGPASS invalid username-password pair or user is disabled."},
        {0, "HELLO 3 AUTH default sesame SETNAME x",
         "server weir version 7.2.0 proto 3 id 1 mode standalone role master modules"},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
    redis_harness_connect(*state);
    assert_string_equal(redis_harness_send(*state, "*11\r\n", 5),
                        "-ERR Protocol error: unauthenticated multibulk length\r\n");
    assert_true(((struct redis_harness *)*state)->closed);
}

/* By whatever commands they are given; the pace of an address is another test's. */
TEST_WITH(open_with_password, close_harness, "five wrong passwords in a row close the connection")
{
    static const char wrong[] = "-WRONGPASS invalid username-password pair or user is disabled.";
    static const struct step steps[] = {
        {0, "AUTH a", wrong},
        {0, "HELLO 2 AUTH default b", wrong},
        {0, "AUTH other sesame", wrong},
        {0, "AUTH c", wrong},
        {0, "AUTH a b c", "-ERR syntax error"},
        {0, "PING", "-NOAUTH Authentication required."},
        {0, "AUTH sesame", "OK"},
        {0, "AUTH a", wrong},
        {0, "AUTH b", wrong},
        {0, "AUTH c", wrong},
        {0, "AUTH d", wrong},
        {0, "PING", "PONG"},
    };
    static const char last[] = "AUTH e\r\nPING\r\n";
    char want[128];
    RUN(steps);
    snprintf(want, sizeof want, "%s\r\n", wrong);
    assert_string_equal(redis_harness_send(*state, last, sizeof last - 1), want);
    assert_true(((struct redis_harness *)*state)->closed);
}

#define NOT_RUN "-ERR not run: MULTI was refused before it"
#define ABORTED "-EXECABORT Transaction discarded because of previous errors."

TEST_WITH(open_harness, close_harness, "a transaction runs at exec")
{
    static const struct step steps[] = {
        {0, "MULTI", "OK"},
        {0, "CL.THROTTLE k 4 1 60", "QUEUED"},
        {0, "INCR n", "QUEUED"},
        {0, "EXPIRE n 60", "QUEUED"},
        {0, "MULTI", "-ERR MULTI calls can not be nested"},
        {0, "WATCH k", "-ERR WATCH inside MULTI is not allowed"},
        {0, "SELECT 3", "QUEUED"},
        {0, "INCR n", "QUEUED"},
        {0, "EXEC", "0 5 4 -1 60 1 1 OK 1"},
        {0, "TTL n", "-1"},
        {0, "SELECT 0", "OK"},
        {0, "TTL n", "60"},
        {0, "EXEC", "-ERR EXEC without MULTI"},
        {0, "DISCARD", "-ERR DISCARD without MULTI"},
        {0, "multi", "OK"},
        {0, "DEL k", "QUEUED"},
        {0, "discard", "OK"},
        {0, "EXISTS k", "1"},
        {0, "MULTI", "OK"},
        {0, "EXEC", ""},
        {0, "UNWATCH", "OK"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "a wrong command aborts its transaction")
{
    static const struct {
        const char *command, *reply;
    } wrong[] = {
        {"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "},
        {"GET", "-ERR wrong number of arguments for 'get' command"},
        {"HELLO 3", "-ERR Command not allowed inside a transaction"},
        {"AUTH x", "-ERR Command not allowed inside a transaction"},
        {"EXEC now", "-ERR wrong number of arguments for 'exec' command"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct step steps[] = {
            {0, "MULTI", "OK"},      {0, "INCR n", "QUEUED"}, {0, wrong[i].command, wrong[i].reply},
            {0, "INCR n", "QUEUED"}, {0, "EXEC", ABORTED},    {0, "EXISTS n", "0"},
        };
        RUN(steps);
    }
}

TEST_WITH(open_harness, close_harness, "a transaction sees the buckets of its keys")
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE b 5 1 60", "0 6 5 -1 60"},
        {900, "TTL b", "60"},
        {900, "MULTI", "OK"},
        {900, "TTL b", "QUEUED"},
        {900, "PTTL b", "QUEUED"},
        {900, "EXISTS b none b", "QUEUED"},
        {900, "GET b", "QUEUED"},
        {900, "DEL b none", "QUEUED"},
        {900, "EXISTS b", "QUEUED"},
        {900, "TTL b", "QUEUED"},
        {900, "EXEC", "60 59100 2 nil 1 0 -2"},
        {900, "CL.THROTTLE b 5 1 60", "0 6 5 -1 60"},
        /* More than one decision takes. */
        {900, "MULTI", "OK"},
        {900, "EXISTS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 b", "QUEUED"},
        {900, "DEL 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 b", "QUEUED"},
        {900, "EXEC", "1 1"},
    };
    RUN(steps);
}

/* As the whole of a pipeline is on its way before the client reads that MULTI was refused. */
TEST_WITH(open_harness, close_harness, "nothing between a refused multi and exec runs")
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE k 4 1 60", "0 5 4 -1 60"},
        {0, "MULTI now", "-ERR wrong number of arguments for 'multi' command"},
        {0, "DEL k", NOT_RUN},
        {0, "SELECT 3", NOT_RUN},
        {0, "EXEC now", "-ERR wrong number of arguments for 'exec' command"},
        {0, "DEL k", NOT_RUN},
        {0, "EXEC", ABORTED},
        {0, "EXISTS k", "1"},
        {0, "MULTI now", "-ERR wrong number of arguments for 'multi' command"},
        {0, "DEL k", NOT_RUN},
        {0, "RESET", "RESET"},
        {0, "EXISTS k", "1"},
        {0, "MULTI", "OK"},
        {0, "DEL k", "QUEUED"},
        {0, "RESET", "RESET"},
        {0, "EXEC", "-ERR EXEC without MULTI"},
        {0, "MULTI", "OK"},
        {0, "DEL k", "QUEUED"},
    };
    RUN(steps);
    assert_string_equal(redis_harness_ask(*state, 0, "QUIT"), "OK");
    assert_true(((struct redis_harness *)*state)->closed);
    redis_harness_connect(*state);
    assert_string_equal(redis_harness_ask(*state, 0, "EXISTS k"), "1");
}

TEST_WITH(open_with_password, close_harness, "a multi before the password is refused likewise")
{
    static const struct step steps[] = {
        {0, "MULTI", "-NOAUTH Authentication required."},
        {0, "AUTH sesame", "OK"},
        {0, "CL.THROTTLE k 4 1 60", NOT_RUN},
        {0, "EXEC", ABORTED},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "tools learn what they ask")
{
    static const struct step steps[] = {
        {0, "CONFIG GET appendonly save", "appendonly no save "},
        {0, "CONFIG GET nothing", ""},
        {0, "CONFIG SET save x",
         "-ERR CONFIG SET is not supported: weir is configured by its rules file"},
        {0, "CONFIG GET", "-ERR wrong number of arguments for 'config|get' command"},
        {0, "COMMAND INFO cl.throttle nope", "cl.throttle -5 write fast 1 1 1 *-1"},
        {0, "COMMAND DOCS TTL",
         "ttl summary Tells in how many seconds a key is as new since 1.0.0 "
         "group generic"},
        {0, "COMMAND DOCS nope", ""},
        {0, "COMMAND GETKEYS x",
         "-ERR unknown subcommand or wrong number of arguments for 'GETKEYS'"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *reply = redis_harness_ask(*state, 0, steps[i].command);
        if (strstr(steps[i].command, "nope") && strstr(steps[i].command, "INFO"))
            assert_memory_equal(reply, "cl.throttle -5 write fast 1 1 1", 31);
        else
            assert_string_equal(reply, steps[i].reply);
    }
    assert_int_equal(atoi(redis_harness_ask(*state, 0, "COMMAND COUNT")), weir_resp_command_count);
    assert_non_null(strstr(redis_harness_ask(*state, 0, "COMMAND LIST"), "weir.checkall"));
    assert_non_null(strstr(redis_harness_ask(*state, 0, "COMMAND DOCS"), "as redis-cell does"));
    assert_non_null(strstr(redis_harness_ask(*state, 0, "COMMAND"), "hello -1 fast no_auth 0 0 0"));
    redis_harness_send(*state, "INFO\r\n", 6);
    assert_non_null(strstr(((struct redis_harness *)*state)->raw, "redis_version:7.2.0\r\n"));
    assert_non_null(strstr(((struct redis_harness *)*state)->raw, "loading:0\r\n"));
    redis_harness_send(*state, "INFO replication\r\n", 18);
    assert_null(strstr(((struct redis_harness *)*state)->raw, "redis_version"));
    assert_non_null(strstr(((struct redis_harness *)*state)->raw, "role:master\r\n"));
}

/* --- Requests --------------------------------------------------------------------------------- */

static const char dialogue[] =
    "*1\r\n$4\r\nPING\r\n*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$2\r\n15\r\n$2\r\n30\r\n$"
    "2\r\n60\r\n"
    "PING \"a\\x20b\"\r\n\r\n*0\r\n*-1\r\n*2\r\n$4\r\nECHO\r\n$5\r\nab\r\nc\r\n"
    "*5\r\n$8\r\nTHROTTLE\r\n$0\r\n\r\n:10\r\n:100\r\n:60\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n";
static const char answers[] = "+PONG\r\n*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n$3\r\na b\r\n"
                              "$5\r\nab\r\nc\r\n*5\r\n:1\r\n:10\r\n:9\r\n:5\r\n:0\r\n:1\r\n";

TEST_WITH(open_harness, close_harness, "a dialogue means the same wherever it is cut")
{
    for (size_t cut = 0; cut < sizeof dialogue; cut++) {
        char all[1024];
        struct redis_harness *harness = redis_harness_open(NULL, 100);
        strcpy(all, redis_harness_send(harness, dialogue, cut));
        strcat(all, redis_harness_send(harness, dialogue + cut, sizeof dialogue - 1 - cut));
        assert_string_equal(all, answers);
        redis_harness_close(harness);
    }
    (void)state;
}

TEST_WITH(open_harness, close_harness, "a dialogue may come byte by byte")
{
    char all[1024] = "";
    for (size_t i = 0; i < sizeof dialogue - 1; i++)
        strcat(all, redis_harness_send(*state, dialogue + i, 1));
    assert_string_equal(all, answers);
}

TEST_WITH(open_harness, close_harness, "protocol errors close")
{
    static const struct {
        const char *bytes, *error;
    } cases[] = {
        {"*1\r\n$-2\r\n", "invalid bulk length"},
        {"*1\r\n$536870913\r\n", "invalid bulk length"},
        {"*-2\r\n", "invalid multibulk length"},
        {"*1048577\r\n", "invalid multibulk length"},
        {"*1\r\n*1\r\n", "expected '$', got '*'"},
        {"*1\r\n+PING\r\n", "expected '$', got '+'"},
        {"PING \"\r\n", "unbalanced quotes in request"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[128];
        redis_harness_connect(*state);
        snprintf(want, sizeof want, "-ERR Protocol error: %s\r\n", cases[i].error);
        assert_string_equal(redis_harness_send(*state, cases[i].bytes, strlen(cases[i].bytes)),
                            want);
        assert_true(((struct redis_harness *)*state)->closed);
    }
}

TEST_WITH(open_harness, close_harness, "what a browser sends is not answered")
{
    static const char post[] = "POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 1 1 1\r\n";
    assert_string_equal(redis_harness_send(*state, post, sizeof post - 1), "");
    assert_true(((struct redis_harness *)*state)->closed);
}

TEST_WITH(open_harness, close_harness, "too many arguments are refused and the connection lives")
{
    static char request[16384];
    size_t used = (size_t)sprintf(request, "*1025\r\n$3\r\nDEL\r\n");
    for (int i = 0; i < 1024; i++)
        used += (size_t)sprintf(request + used, "$1\r\nx\r\n");
    assert_string_equal(redis_harness_send(*state, request, used),
                        "-ERR more than 1024 arguments\r\n");
    assert_string_equal(redis_harness_ask(*state, 0, "PING"), "PONG");
}

TEST_WITH(open_harness, close_harness, "a long pipeline is answered in order")
{
    static char request[REDIS_HARNESS_TEXT], want[REDIS_HARNESS_TEXT];
    size_t asked = 0, wanted = 0;
    for (int i = 0; i < 3000; i++) {
        if (i % 3 == 0) {
            asked += (size_t)sprintf(request + asked, "CL.THROTTLE p 9999 1 60\r\n");
            int used = i / 3 + 1;
            wanted += (size_t)sprintf(want + wanted, "*5\r\n:0\r\n:10000\r\n:%d\r\n:-1\r\n:%d\r\n",
                                      10000 - used, 60 * used);
        } else if (i % 3 == 1) {
            asked += (size_t)sprintf(request + asked, "ECHO %d\r\n", i);
            wanted += (size_t)sprintf(want + wanted, "$%d\r\n%d\r\n",
                                      i < 10     ? 1
                                      : i < 100  ? 2
                                      : i < 1000 ? 3
                                                 : 4,
                                      i);
        } else {
            asked += (size_t)sprintf(request + asked, "NOPE\r\n");
            wanted += (size_t)sprintf(
                want + wanted, "-ERR unknown command 'NOPE', with args beginning with: \r\n");
        }
    }
    assert_string_equal(redis_harness_send(*state, request, asked), want);
    assert_int_equal(((struct redis_harness *)*state)->state.taken, 0);
}

RUN_TESTS()
