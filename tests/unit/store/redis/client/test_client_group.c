/* SPDX-License-Identifier: Apache-2.0 */
/* The client and sentinels that only play them: what they say, what they must not be believed, and
 * masters that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_player.h"
#include "test.h"

/* Two sentinels, and two servers that may be the master. */
static struct client_rig rig;
static struct redis_player sentinels[2], servers[2];

/* What a sentinel says. */
static struct opinion {
    const struct redis_player *master; /* NULL: it knows no such group */
    unsigned epoch;                    /* 0: it does not say */
} opinions[2];
static bool is_replica[2]; /* of the servers */
static const char *wanted_password;

static void say_master(struct redis_peer *peer, const struct opinion *opinion)
{
    char text[128], port[8];
    if (opinion->master == NULL) {
        redis_player_say_text(peer, "*-1\r\n");
        return;
    }
    int digits = snprintf(port, sizeof port, "%u", opinion->master->port);
    snprintf(text, sizeof text, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", digits, port);
    redis_player_say_text(peer, text);
}

static bool answer_as_sentinel(struct redis_player *player, struct redis_peer *peer,
                               const struct weir_resp_request *request)
{
    const struct opinion *opinion = &opinions[player - sentinels];
    char text[128], epoch[16];
    if (weir_resp_is(request->args[0], "AUTH")) {
        struct weir_bytes result = request->args[request->count - 1];
        bool right = wanted_password != NULL && result.size == strlen(wanted_password) &&
                     memcmp(result.data, wanted_password, result.size) == 0;
        redis_player_say_text(peer, right ? "+OK\r\n" : "-WRONGPASS invalid\r\n");
        return true;
    }
    if (!weir_resp_is(request->args[0], "SENTINEL"))
        return false;
    if (weir_resp_is(request->args[1], "GET-MASTER-ADDR-BY-NAME")) {
        say_master(peer, opinion);
    } else if (opinion->epoch == 0) {
        redis_player_say_text(peer, "-NOPERM no\r\n");
    } else {
        int digits = snprintf(epoch, sizeof epoch, "%u", opinion->epoch);
        snprintf(text, sizeof text, "*2\r\n$12\r\nconfig-epoch\r\n$%d\r\n%s\r\n", digits, epoch);
        redis_player_say_text(peer, text);
    }
    return true;
}

static bool answer_as_server(struct redis_player *player, struct redis_peer *peer,
                             const struct weir_resp_request *request)
{
    if (!is_replica[player - servers])
        return false;
    if (weir_resp_is(request->args[0], "ROLE")) {
        redis_player_say_text(peer, "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$4\r\nsync\r\n:1\r\n");
        return true;
    }
    if (weir_resp_is(request->args[0], "EVALSHA")) {
        redis_player_say_text(peer, "-READONLY You can't write against a read only replica.\r\n");
        return true;
    }
    return false;
}

static int begin(void **state)
{
    client_rig_init(&rig);
    for (int i = 0; i < 2; i++) {
        redis_player_open(&sentinels[i], &rig.loop);
        redis_player_open(&servers[i], &rig.loop);
        sentinels[i].answer = answer_as_sentinel;
        servers[i].answer = answer_as_server;
        opinions[i] = (struct opinion){&servers[0], 1};
        is_replica[i] = false;
    }
    wanted_password = NULL;
    return 0;
}

static int end(void **state)
{
    client_rig_close(&rig);
    for (int i = 0; i < 2; i++) {
        redis_player_close(&sentinels[i]);
        redis_player_close(&servers[i]);
    }
    client_rig_end(&rig);
    return 0;
}

static struct redis_client_options options(void)
{
    char url[128];
    snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%u,127.0.0.1:%u/group", sentinels[0].port,
             sentinels[1].port);
    return client_rig_options(&rig, url);
}

static void open_client(void)
{
    struct redis_client_options chosen = options();
    client_rig_open(&rig, &chosen);
}

/* Calls until one is answered; returns by which server. */
static int reach(void)
{
    struct rig_call call;
    uint32_t before = servers[0].calls;
    uint64_t deadline = uv_hrtime() + RIG_PATIENCE_NS;
    do {
        assert_true(uv_hrtime() < deadline);
        uv_run(&rig.loop, UV_RUN_ONCE);
        before = servers[0].calls;
        rig_call_count(&call, &rig, "k", 1);
        call.call.give_up_ns = uv_hrtime() + 20000000;
    } while (rig_call_run(&call) != 0 || call.type != WEIR_RESP_INTEGER);
    return servers[0].calls > before ? 0 : 1;
}

TEST_WITH(begin, end, "a new master is followed within a second or so")
{
    open_client();
    assert_int_equal(reach(), 0);
    opinions[0] = opinions[1] = (struct opinion){&servers[1], 2};
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_FAILOVER, ""));
    assert_int_equal(reach(), 1);
    RIG_UNTIL(&rig, servers[0].peers == NULL); /* no connection is left there */
}

TEST_WITH(begin, end, "calls in flight to the old master are waited for")
{
    struct rig_call slow;
    open_client();
    assert_int_equal(reach(), 0);
    servers[0].deaf = true;
    rig_call_count(&slow, &rig, "k", 1);
    assert_int_equal(rig_call_send(&slow), 0);
    opinions[0] = opinions[1] = (struct opinion){&servers[1], 2};
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_FAILOVER, "") || slow.done);
    servers[0].deaf = false;
    assert_int_equal(reach(), 1);
    RIG_UNTIL(&rig, slow.done);
    assert_int_equal(slow.error, WEIR_ERR_IO); /* it never came: nobody knows */
}

TEST_WITH(begin, end, "readonly makes one ask at once")
{
    open_client();
    assert_int_equal(reach(), 0);
    is_replica[0] = true;
    opinions[0] = opinions[1] = (struct opinion){&servers[1], 2};
    struct rig_call call;
    rig_call_count(&call, &rig, "k", 1); /* it waits, and is answered by the new master */
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.type, WEIR_RESP_INTEGER);
    assert_int_equal(servers[1].calls, 1);
}

TEST_WITH(begin, end, "a server that is no master is not used")
{
    is_replica[0] = true; /* the sentinels are wrong, or early */
    open_client();
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "it is not a master"));
    assert_int_equal(servers[0].calls, 0);
    assert_in_range(sentinels[0].questions + sentinels[1].questions, 1, 10);
    is_replica[0] = false;
    assert_int_equal(reach(), 0);
}

TEST_WITH(begin, end, "an older opinion does not lead back")
{
    open_client();
    opinions[0] = opinions[1] = (struct opinion){&servers[1], 7};
    assert_int_equal(reach(), 1);
    opinions[0] = opinions[1] = (struct opinion){&servers[0], 6}; /* cut off from the others */
    uint32_t asked = sentinels[0].questions + sentinels[1].questions;
    RIG_UNTIL(&rig, sentinels[0].questions + sentinels[1].questions >= asked + 3);
    assert_int_equal(reach(), 1);
    assert_false(client_rig_reported(&rig, 0, REDIS_EVENT_FAILOVER, ""));
    servers[1].hangs_up = true; /* without a master any opinion is welcome */
    redis_player_drop(&servers[1]);
    assert_int_equal(reach(), 0);
}

TEST_WITH(begin, end, "an opinion without an epoch is one too")
{
    opinions[0] = opinions[1] = (struct opinion){&servers[0], 0};
    open_client();
    assert_int_equal(reach(), 0);
    opinions[0] = opinions[1] = (struct opinion){&servers[1], 0};
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_FAILOVER, ""));
    assert_int_equal(reach(), 1);
}

TEST_WITH(begin, end, "sentinels that are gone or silent are skipped")
{
    sentinels[0].hangs_up = true;
    open_client();
    assert_int_equal(reach(), 0);
    client_rig_close(&rig);
    sentinels[0].hangs_up = false;
    sentinels[0].deaf = true; /* half a second of patience */
    open_client();
    assert_int_equal(reach(), 0);
    client_rig_close(&rig);
    sentinels[0].deaf = false;
    opinions[0].master = NULL;
    open_client();
    assert_int_equal(reach(), 0);
    assert_false(client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, ""));
}

TEST_WITH(begin, end, "sentinels may want a password")
{
    struct redis_client_options chosen = options();
    wanted_password = "sesame";
    snprintf(rig.url.sentinel_password, sizeof rig.url.sentinel_password, "wrong");
    client_rig_open(&rig, &chosen);
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "AUTH: WRONGPASS"));
    client_rig_close(&rig);
    chosen = options();
    snprintf(rig.url.sentinel_user, sizeof rig.url.sentinel_user, "weir");
    snprintf(rig.url.sentinel_password, sizeof rig.url.sentinel_password, "sesame");
    client_rig_open(&rig, &chosen);
    assert_int_equal(reach(), 0);
}

TEST_WITH(begin, end, "it may be closed at any time")
{
    for (int turns = 0; turns < 20; turns++) {
        opinions[0] = opinions[1] = (struct opinion){&servers[turns % 2], (unsigned)turns + 1};
        is_replica[1] = turns % 4 < 2;
        open_client();
        client_rig_close_after(&rig, turns);
    }
}

RUN_TESTS()
