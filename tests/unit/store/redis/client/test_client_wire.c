/* SPDX-License-Identifier: Apache-2.0 */
/* The client and servers that do what Redis may do at worst, or that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_player.h"
#include "test.h"

static struct client_rig rig;
static struct redis_player player;

static int begin(void **state)
{
    client_rig_init(&rig);
    redis_player_open(&player, &rig.loop);
    return 0;
}

static int end(void **state)
{
    client_rig_close(&rig);
    redis_player_close(&player);
    client_rig_end(&rig);
    return 0;
}

static void open_client(void)
{
    client_rig_connect(&rig, player.url);
}

/* --- Pieces and ends -------------------------------------------------------------------------- */

TEST_WITH(begin, end, "replies may come byte by byte")
{
    struct rig_call calls[20];
    player.piece = 1;
    open_client();
    for (int i = 0; i < 20; i++) {
        rig_call_count(&calls[i], &rig, "k", 1);
        assert_int_equal(rig_call_send(&calls[i]), 0);
    }
    RIG_UNTIL(&rig, rig.finished == 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].integer, i + 1);
    }
}

TEST_WITH(begin, end, "a connection may be cut after any byte")
{
    /* +OK, ROLE, SCRIPT LOAD: the handshake; then two calls. */
    const size_t handshake = 5 + 24 + 47, calls = 8;
    for (size_t cut = 1; cut <= handshake + calls; cut++) {
        struct rig_call one, two;
        player.cut = cut;
        open_client();
        rig_call_count(&one, &rig, "k", 1);
        rig_call_count(&two, &rig, "k", 1);
        player.calls = 0;
        assert_int_equal(rig_call_send(&one), 0);
        assert_int_equal(rig_call_send(&two), 0);
        RIG_UNTIL(&rig, one.done && two.done);
        bool one_came = cut >= handshake + 4, two_came = cut >= handshake + 8;
        int lost = cut < handshake ? WEIR_ERR_STORE : WEIR_ERR_IO;
        /* When the handshake was just done, the calls may not have been written. */
        if (cut != handshake) {
            assert_int_equal(one.error, one_came ? 0 : lost);
            assert_int_equal(two.error, two_came ? 0 : lost);
        }
        assert_true(player.calls <= 2); /* nothing was sent twice */
        player.cut = 0;
        client_rig_reach(&rig, "k");
        client_rig_close(&rig);
    }
}

TEST_WITH(begin, end, "a connection that ends at once makes no busy loop")
{
    player.hangs_up = true;
    open_client();
    RIG_UNTIL(&rig, player.connections >= 2);
    client_rig_run_for(&rig, 500);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "closed the connection") ||
                client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "reset"));
    assert_in_range(player.connections, 2, 12); /* 10 ms, doubled each time, halved by chance */
    player.hangs_up = false;
    client_rig_reach(&rig, "k");
}

TEST_WITH(begin, end, "one that ends after the handshake makes none either")
{
    player.cut = 5 + 24 + 47;
    open_client();
    RIG_UNTIL(&rig, player.connections >= 2);
    client_rig_run_for(&rig, 500);
    assert_in_range(player.connections, 2, 12);
    player.cut = 0;
    client_rig_reach(&rig, "k");
}

TEST_WITH(begin, end, "a server that does not answer is given up in time")
{
    struct rig_call call;
    struct redis_client_options options = client_rig_options(&rig, player.url);
    options.connect_ms = 50;
    player.deaf = true;
    client_rig_open(&rig, &options);
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "did not answer in time"));
    player.deaf = false;
    client_rig_reach(&rig, "k");
}

/* --- Something else --------------------------------------------------------------------------- */

TEST_WITH(begin, end, "what is no redis is reported")
{
    static const struct {
        const char *greeting, *why;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "\"HTTP/1.1 400 Bad Request..Serve"},
        {"\x16\x03\x01\x02", "Redis protocol: \"....\""},
        {"SSH-2.0-OpenSSH_9.2\r\n", "\"SSH-2.0-OpenSSH_9.2..\""},
        {"-ERR max number of clients reached\r\n", "CLIENT SETNAME|max number of clients"},
        {"-DENIED Redis is running in protected mode\r\n", "ROLE|DENIED"},
        {"-NOAUTH Authentication required.\r\n", "NOAUTH"},
        {":5\r\n", "CLIENT SETNAME: not an answer"},
        {"*1\r\n:1\r\n", "CLIENT SETNAME: not an answer"},
        {">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "it sent an unexpected"},
        {"|1\r\n+a\r\n+b\r\n+OK\r\n", "it sent an unexpected"},
        {"$600000000\r\n", "exceeds the limits"},
        {"*2000000\r\n", "exceeds the limits"},
        {"*-7\r\n", "Redis protocol"},
        {"+OK\r\n*3\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n", "it is not a master (its role is slave)"},
        {"+OK\r\n+what\r\n", "ROLE: not an answer"},
        {"+OK\r\n*1\r\n$6\r\nmaster\r\n$3\r\nabc\r\n", "unexpected SHA-1"},
        {"+OK\r\n*1\r\n$6\r\nmaster\r\n-NOPERM no\r\n", "SCRIPT LOAD: NOPERM no"},
        {"+OK\r\n-LOADING Redis is loading the dataset\r\n", "LOADING"},
    };
    player.deaf = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[64];
        snprintf(why, sizeof why, "%s", cases[i].why);
        char *other = strchr(why, '|');
        if (other != NULL)
            *other++ = '\0';
        player.greeting = cases[i].greeting;
        rig.event_count = 0;
        open_client();
        RIG_UNTIL(&rig, rig.event_count > 0);
        assert_int_equal(rig.events[0].kind, REDIS_EVENT_DOWN);
        if (strstr(rig.events[0].text, why) == NULL &&
            (other == NULL || strstr(rig.events[0].text, other) == NULL))
            fail_msg("greeting %zu: %s", i, rig.events[0].text);
        client_rig_close(&rig);
    }
}

/* Says one thing a thousand times over. */
static bool babble(struct redis_player *who, struct redis_peer *peer,
                   const struct weir_resp_request *request)
{
    for (int i = 0; i < 20000; i++)
        redis_player_say_text(peer, who->context);
    return true;
}

TEST_WITH(begin, end, "endless lines and nests end the connection")
{
    static char *const texts[] = {"+aaaaaaaaaaaaaaaaaaaaaa", "*1\r\n", "+OK\r\n", "*2\r\n+x\r\n"};
    player.answer = babble;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        player.context = texts[i];
        rig.event_count = 0;
        open_client();
        RIG_UNTIL(&rig, rig.event_count > 0);
        assert_int_equal(rig.events[0].kind, REDIS_EVENT_DOWN);
        client_rig_close(&rig);
        redis_player_drop(&player);
    }
}

static bool answer_twice(struct redis_player *who, struct redis_peer *peer,
                         const struct weir_resp_request *request)
{
    if (!weir_resp_is(request->args[0], "EVALSHA"))
        return false;
    redis_player_say_text(peer, ":1\r\n:2\r\n");
    return true;
}

TEST_WITH(begin, end, "a reply too many ends the connection")
{
    struct rig_call call;
    player.answer = answer_twice;
    open_client();
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_run(&call), 0);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "it sent an unexpected"));
    player.answer = NULL;
    client_rig_reach(&rig, "k");
}

static bool answer_hugely(struct redis_player *who, struct redis_peer *peer,
                          const struct weir_resp_request *request)
{
    static char chunk[1024 * 1024];
    if (!weir_resp_is(request->args[0], "EVALSHA"))
        return false;
    memset(chunk, 'x', sizeof chunk);
    redis_player_say_text(peer, who->context);
    for (int i = 0; i < 17; i++)
        redis_player_say(peer, chunk, sizeof chunk);
    return true;
}

TEST_WITH(begin, end, "a reply over 16 megabytes ends the connection")
{
    struct rig_call call;
    player.answer = answer_hugely;
    player.context = "$17825792\r\n";
    open_client();
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_run(&call), WEIR_ERR_IO);
    assert_true(
        client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "a reply exceeds the limits of the client"));
    player.answer = NULL;
    client_rig_reach(&rig, "k");
}

/* --- Refusals --------------------------------------------------------------------------------- */

static uint32_t refusals_left;

/* Refuses so many calls with the context's text. */
static bool refuse(struct redis_player *who, struct redis_peer *peer,
                   const struct weir_resp_request *request)
{
    if (!weir_resp_is(request->args[0], "EVALSHA") || refusals_left == 0)
        return false;
    refusals_left--;
    redis_player_say_text(peer, who->context);
    return true;
}

TEST_WITH(begin, end, "what was not executed is tried again")
{
    static char *const texts[] = {
        "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        "-ERR Error running script (call to f_8cd0): @user_script:1: -READONLY You can't write\r\n",
    };
    player.answer = refuse;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rig_call call;
        player.context = texts[i];
        refusals_left = 2;
        player.calls = 0;
        open_client();
        rig_call_count(&call, &rig, "k", 1);
        assert_int_equal(rig_call_run(&call), 0);
        assert_int_equal(call.integer, 3);
        client_rig_close(&rig);
    }
}

TEST_WITH(begin, end, "other errors are reported to the caller")
{
    static char *const texts[] = {"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
                                  "-MISCONF Redis is configured to save RDB snapshots\r\n",
                                  "-NOREPLICAS Not enough good replicas to write.\r\n",
                                  "-ERR something\r\n",
                                  "-\r\n",
                                  "-MOVEDX 1 a:1\r\n"};
    player.answer = refuse;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rig_call call;
        player.context = texts[i];
        refusals_left = 1;
        open_client();
        rig_call_count(&call, &rig, "k", 1);
        assert_int_equal(rig_call_run(&call), 0);
        assert_int_equal(call.type, WEIR_RESP_ERROR);
        assert_memory_equal(call.text, texts[i] + 1, strlen(call.text));
        client_rig_close(&rig);
    }
}

TEST_WITH(begin, end, "trying again ends when the caller says so")
{
    struct rig_call call;
    player.answer = refuse;
    player.context = "-TRYAGAIN later\r\n";
    refusals_left = UINT32_MAX;
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    rig_call_count(&call, &rig, "k", 1);
    uint64_t start = uv_hrtime();
    call.call.give_up_ns = start + 20000000;
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_true(uv_hrtime() - start > 20000000 || player.calls > 1);
    assert_in_range(player.calls, 1, 20);
    player.calls = 0;
    rig_call_count(&call, &rig, "k", 1);
    call.call.give_up_ns = 0; /* no pause at all */
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_int_equal(player.calls, 1);
    player.calls = 0;
    rig_call_count(&call, &rig, "k", 1);
    call.call.give_up_ns = UINT64_MAX; /* as often as a call may */
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_in_range(player.calls, 10, 20);
}

TEST_WITH(begin, end, "a script that never loads is not loaded for ever")
{
    struct rig_call call;
    player.answer = refuse;
    player.context = "-NOSCRIPT none\r\n";
    refusals_left = UINT32_MAX;
    open_client();
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_true(player.loads <= 20);
}

TEST_WITH(begin, end, "a server of a cluster is reported for what it is")
{
    struct rig_call call;
    player.answer = refuse;
    player.context = "-MOVED 3999 127.0.0.1:6381\r\n";
    refusals_left = 1;
    open_client();
    rig_call_count(&call, &rig, "k", 1);
    rig_call_run(&call);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "redis-cluster://"));
}

TEST_WITH(begin, end, "a call that waits can be forgotten")
{
    struct rig_call call;
    player.answer = refuse;
    player.context = "-TRYAGAIN later\r\n";
    refusals_left = UINT32_MAX;
    open_client();
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_send(&call), 0);
    RIG_UNTIL(&rig, redis_client_counters(rig.client)->retries >= 3);
    bool waits = call.call.place == NULL;
    assert_int_equal(redis_client_forget(rig.client, &call.call), waits);
    memset(&call, 0xee, sizeof call);
    refusals_left = 0;
    client_rig_reach(&rig, "k");
    assert_int_equal(rig.finished, 1);
}

/* --- Life ------------------------------------------------------------------------------------- */

static uint32_t chain_left;

/* Sends itself again from inside of `done`, without a flush. */
static void on_chain(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    assert_int_equal(error, 0);
    rig.finished++;
    if (--chain_left > 0)
        assert_int_equal(redis_client_send(rig.client, call), 0);
}

TEST_WITH(begin, end, "calls may be sent from inside of done")
{
    struct rig_call call;
    open_client();
    chain_left = 10;
    rig_call_count(&call, &rig, "k", 1);
    call.call.done = on_chain;
    assert_int_equal(rig_call_send(&call), 0);
    RIG_UNTIL(&rig, rig.finished == 10);
    assert_int_equal(player.calls, 10);
}

static void on_last(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                    uint32_t count)
{
    rig.finished++;
    client_rig_shut(&rig);
}

TEST_WITH(begin, end, "the client may be closed from inside of done")
{
    static const bool orderly[] = {true, false};
    for (size_t i = 0; i < 2; i++) {
        struct rig_call calls[3];
        rig.finished = 0;
        player.cut = orderly[i] ? 0 : 5 + 24 + 47 + 1;
        open_client();
        for (int n = 0; n < 3; n++) {
            rig_call_count(&calls[n], &rig, "k", 1);
            calls[n].call.done = on_last;
            assert_int_equal(rig_call_send(&calls[n]), 0);
        }
        RIG_UNTIL(&rig, rig.closed);
        assert_int_equal(rig.finished, 1); /* and no other `done` after that */
    }
}

TEST_WITH(begin, end, "it may be closed at any time")
{
    for (int turns = 0; turns < 12; turns++) {
        open_client();
        client_rig_close_after(&rig, turns);
    }
    struct redis_client_options options =
        client_rig_options(&rig, "redis://no-such-host.invalid"); /* while a name is resolved */
    client_rig_open(&rig, &options);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    client_rig_close(&rig);
}

RUN_TESTS()
