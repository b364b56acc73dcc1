/* SPDX-License-Identifier: Apache-2.0 */
/* The client and a Cluster that only plays one: storms, circles and nonsense of redirections, and
 * maps that are wrong. */
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

#define PLAYERS 3

static struct client_rig rig;
static struct redis_player players[PLAYERS];
static char map[1024];    /* what they say to CLUSTER SLOTS */
static char refusal[256]; /* what the first says to calls; "": nothing special */
static uint32_t refusals; /* how often */
static bool asking;       /* the second takes calls after ASKING only */
static bool asking_was_said;

/* All slots belong to one. */
static void map_to(const struct redis_player *player)
{
    snprintf(map, sizeof map, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%u\r\n", player->port);
}

static bool answer(struct redis_player *player, struct redis_peer *peer,
                   const struct weir_resp_request *request)
{
    bool is_call = weir_resp_is(request->args[0], "EVALSHA");
    if (weir_resp_is(request->args[0], "CLUSTER")) {
        redis_player_say_text(peer, map);
        return true;
    }
    if (player == &players[1] && asking) {
        if (is_call && !asking_was_said) {
            redis_player_say_text(peer, "-ERR not asking\r\n");
            return true;
        }
        asking_was_said = weir_resp_is(request->args[0], "ASKING");
        return false;
    }
    if (is_call && player == &players[0] && refusal[0] != '\0' && refusals > 0) {
        refusals--;
        redis_player_say_text(peer, refusal);
        return true;
    }
    return false;
}

static int begin(void **state)
{
    client_rig_init(&rig);
    for (int i = 0; i < PLAYERS; i++) {
        redis_player_open(&players[i], &rig.loop);
        players[i].answer = answer;
    }
    map_to(&players[0]);
    refusal[0] = '\0';
    refusals = UINT32_MAX;
    asking = asking_was_said = false;
    return 0;
}

static int end(void **state)
{
    client_rig_close(&rig);
    for (int i = 0; i < PLAYERS; i++)
        redis_player_close(&players[i]);
    client_rig_end(&rig);
    return 0;
}

static void open_client(void)
{
    char url[128];
    snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%u", players[0].port);
    client_rig_connect(&rig, url);
}

/* At most one at the start, then one every quarter of a second. */
static uint64_t refreshes_since(uint64_t start_ns)
{
    return 3 + (uv_hrtime() - start_ns) / UINT64_C(250000000);
}

TEST_WITH(begin, end, "a storm of moved makes few refreshes")
{
    enum { COUNT = 3000 };
    struct rig_call *calls = calloc(COUNT, sizeof *calls);
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    for (int i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        rig_call_count(&calls[i], &rig, key, 1);
    }
    uint64_t start = uv_hrtime();
    /* Every slot has moved, and the old master tells it one by one. */
    for (int i = 0; i < COUNT; i++) {
        snprintf(refusal, sizeof refusal, "-MOVED %u 127.0.0.1:%u\r\n", calls[i].call.cluster_slot,
                 players[1].port);
        assert_int_equal(rig_call_run(&calls[i]), 0);
    }
    /* The map they read was as old each time. */
    assert_true(redis_client_counters(rig.client)->refreshes <= refreshes_since(start));
    assert_true(redis_client_counters(rig.client)->redirects > COUNT / 2);
    free(calls);
}

TEST_WITH(begin, end, "all that was in flight follows a move")
{
    enum { COUNT = 2000 };
    struct rig_call *calls = calloc(COUNT, sizeof *calls);
    uint64_t start = uv_hrtime();
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    map_to(&players[1]);
    for (int i = 0; i < COUNT; i++) {
        rig_call_count(&calls[i], &rig, "k", 1);
        assert_int_equal(redis_client_send(rig.client, &calls[i].call), 0);
    }
    snprintf(refusal, sizeof refusal, "-MOVED %u 127.0.0.1:%u\r\n", calls[0].call.cluster_slot,
             players[1].port);
    redis_client_flush(rig.client);
    RIG_UNTIL(&rig, rig.finished == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].integer, i + 1); /* in order, by the second */
    }
    RIG_UNTIL(&rig, players[0].questions + players[1].questions >= 2); /* start, refresh */
    uint64_t most = refreshes_since(start);
    client_rig_run_for(&rig, 600);
    assert_true(players[0].questions + players[1].questions <= most + 1);
    free(calls);
}

TEST_WITH(begin, end, "a circle of moved comes to an end")
{
    struct rig_call call;
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    rig_call_count(&call, &rig, "k", 1);
    snprintf(refusal, sizeof refusal, "-MOVED %u :%u\r\n", call.call.cluster_slot, players[0].port);
    uint64_t start = uv_hrtime();
    assert_int_equal(rig_call_run(&call), WEIR_ERR_STORE);
    assert_in_range(players[0].calls, 5, 20);
    assert_true(players[0].questions <= refreshes_since(start));
}

TEST_WITH(begin, end, "ask is followed once with asking")
{
    struct rig_call calls[50];
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    asking = true;
    for (int i = 0; i < 50; i++)
        rig_call_count(&calls[i], &rig, "k", 1);
    snprintf(refusal, sizeof refusal, "-ASK %u 127.0.0.1:%u\r\n", calls[0].call.cluster_slot,
             players[1].port);
    for (int i = 0; i < 50; i++)
        assert_int_equal(rig_call_send(&calls[i]), 0);
    RIG_UNTIL(&rig, rig.finished == 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(calls[i].error, 0);
        assert_int_equal(calls[i].type, WEIR_RESP_INTEGER);
        assert_int_equal(calls[i].integer, i + 1);
    }
    assert_int_equal(players[1].asked, 50);
    refusal[0] = '\0'; /* the slot is where it was */
    players[0].calls = 0;
    rig_call_count(&calls[0], &rig, "k", 1);
    assert_int_equal(rig_call_run(&calls[0]), 0);
    assert_int_equal(players[0].calls, 1);
}

TEST_WITH(begin, end, "redirections to nowhere end")
{
    static const char *const texts[] = {
        "-MOVED\r\n",           "-MOVED x\r\n",
        "-ASK 1 \r\n",          "-MOVED 1 no-such-host.invalid:1\r\n",
        "-MOVED 99999 h:1\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rig_call call;
        refusals = 0;
        open_client();
        RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
        strcpy(refusal, texts[i]);
        refusals = 1;
        rig_call_count(&call, &rig, "k", 1);
        call.call.give_up_ns = uv_hrtime() + 50000000;
        rig_call_run(&call);
        assert_true(call.error == WEIR_ERR_STORE || call.error == 0);
        client_rig_close(&rig);
    }
}

TEST_WITH(begin, end, "a cluster that is down is tried again")
{
    struct rig_call call;
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    strcpy(refusal, "-CLUSTERDOWN The cluster is down\r\n");
    refusals = 3;
    rig_call_count(&call, &rig, "k", 1);
    assert_int_equal(rig_call_run(&call), 0);
    RIG_UNTIL(&rig, redis_client_counters(rig.client)->refreshes >= 2);
}

TEST_WITH(begin, end, "a wrong map is reported and asked for again")
{
    static const struct {
        const char *map, *why;
    } cases[] = {
        {"-ERR This instance has cluster support disabled\r\n", "cluster support disabled"},
        {"*0\r\n", "names no master"},
        {"+OK\r\n", "not an answer"},
        {"*1\r\n*3\r\n:5\r\n:99999\r\n*2\r\n$1\r\nh\r\n:1\r\n", "not an answer"},
        {"HTTP/1.1 400 Bad Request\r\n", "does not speak the Redis protocol"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig_call call;
        strcpy(map, cases[i].map);
        rig.event_count = 0;
        open_client();
        rig_call_count(&call, &rig, "k", 1); /* it waits for a map */
        assert_int_equal(rig_call_send(&call), 0);
        RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, cases[i].why));
        assert_false(redis_client_ready(rig.client, 0));
        map_to(&players[0]);
        RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
        RIG_UNTIL(&rig, call.done);
        client_rig_close(&rig);
    }
}

TEST_WITH(begin, end, "slots that nobody owns are refused")
{
    struct rig_call call;
    snprintf(map, sizeof map, "*1\r\n*3\r\n:0\r\n:99\r\n*2\r\n$0\r\n\r\n:%u\r\n", players[0].port);
    open_client();
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 99));
    assert_false(redis_client_ready(rig.client, 100));
    rig_call_count(&call, &rig, "k", 1);
    call.call.cluster_slot = 100;
    assert_int_equal(rig_call_send(&call), WEIR_ERR_STORE);
}

TEST_WITH(begin, end, "a lost master makes one ask the others")
{
    open_client();
    map_to(&players[1]);
    RIG_UNTIL(&rig, redis_client_ready(rig.client, 0));
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_TOPOLOGY, "1 masters"));
    map_to(&players[2]); /* the second has been replaced, and is gone */
    players[1].hangs_up = true;
    redis_player_drop(&players[1]);
    uint32_t before = players[2].connections;
    RIG_UNTIL(&rig, players[2].connections > before && redis_client_ready(rig.client, 0));
}

TEST_WITH(begin, end, "it may be closed at any time")
{
    struct rig_call call;
    for (int turns = 0; turns < 20; turns++) {
        open_client();
        rig_call_count(&call, &rig, "k", 1);
        snprintf(refusal, sizeof refusal, turns % 2 == 0 ? "-MOVED %u :%u\r\n" : "-ASK %u :%u\r\n",
                 call.call.cluster_slot, players[1].port);
        client_rig_close_after(&rig, turns);
    }
}

RUN_TESTS()
