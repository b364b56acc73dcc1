/* SPDX-License-Identifier: Apache-2.0 */
/* The client and a real Cluster of three masters and a replica: slots that move under load, and a
 * master that dies. Every key's counter is held against what its calls got. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_rig.h"
#include "redis_server.h"
#include "test.h"

#define SERVERS 4 /* the last is the replica of the first */
#define MASTERS 3
#define KEYS 32
#define CALLS 64 /* always on their way */

static struct redis_server servers[SERVERS];
static struct redis_link links[SERVERS];
static char ids[SERVERS][64];
static struct client_rig rig;

/* A key of the load, and what is known of its counter. */
static struct {
    char name[32];
    uint32_t done, unknown;
} keys[KEYS];
static struct load_call {
    struct redis_call call; /* first */
    struct rig_call body;
    uint32_t key;
    bool busy;
} load[CALLS];
static bool loading;
static uint32_t load_done;

__attribute__((format(printf, 2, 3))) static const struct weir_resp_node *
say(int server, const char *format, ...)
{
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    const struct weir_resp_node *reply = redis_link_say(&links[server], command);
    if (reply->type == WEIR_RESP_ERROR)
        fail_msg("%s: %.*s", command, (int)reply->text.size, reply->text.data);
    return reply;
}

static bool info_has(int server, const char *text)
{
    const struct weir_resp_node *reply = say(server, "CLUSTER INFO");
    return memmem(reply->text.data, reply->text.size, text, strlen(text)) != NULL;
}

static bool nodes_have(int server, const char *text)
{
    const struct weir_resp_node *reply = say(server, "CLUSTER NODES");
    return memmem(reply->text.data, reply->text.size, text, strlen(text)) != NULL;
}

static bool is_master(int server)
{
    say(server, "ROLE");
    return memcmp(links[server].nodes[1].text.data, "master", 6) == 0;
}

/* Waits for what the servers agree upon by themselves. */
#define WAIT(condition) RIG_UNTIL(&rig, condition)

static int start(void **state)
{
    static const char *const arguments[] = {"--cluster-enabled",
                                            "yes",
                                            "--cluster-node-timeout",
                                            "600",
                                            "--repl-ping-replica-period",
                                            "1",
                                            "--repl-diskless-sync-delay",
                                            "0",
                                            "--cluster-replica-validity-factor",
                                            "0",
                                            NULL};
    client_rig_init(&rig);
    for (int i = 0; i < SERVERS; i++) {
        redis_server_start(&servers[i], arguments);
        redis_link_open(&links[i], &servers[i]);
        snprintf(ids[i], sizeof ids[i], "%.*s", 40, say(i, "CLUSTER MYID")->text.data);
        say(i, "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
    }
    for (int i = 1; i < SERVERS; i++)
        say(i, "CLUSTER MEET 127.0.0.1 %u", servers[0].port);
    for (int i = 0; i < MASTERS; i++) {
        say(i, "CLUSTER ADDSLOTSRANGE %d %d", REDIS_CLUSTER_SLOTS * i / MASTERS,
            REDIS_CLUSTER_SLOTS * (i + 1) / MASTERS - 1);
    }
    WAIT(nodes_have(MASTERS, ids[0]));
    say(MASTERS, "CLUSTER REPLICATE %s", ids[0]);
    for (int i = 0; i < SERVERS; i++) {
        WAIT(info_has(i, "cluster_state:ok") && info_has(i, "cluster_known_nodes:4") &&
             nodes_have(i, "slave"));
    }
    WAIT(memmem(say(MASTERS, "INFO replication")->text.data, 200, "master_link_status:up", 21) !=
         NULL);
    client_rig_end(&rig);
    return 0;
}

static int stop(void **state)
{
    for (int i = 0; i < SERVERS; i++) {
        redis_link_close(&links[i]);
        redis_server_stop(&servers[i]);
    }
    return 0;
}

static int begin(void **state)
{
    char url[128];
    client_rig_init(&rig);
    snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%u,127.0.0.1:%u", servers[1].port,
             servers[2].port);
    client_rig_connect(&rig, url);
    return 0;
}

static int end(void **state)
{
    client_rig_end(&rig);
    return 0;
}

/* --- Load ------------------------------------------------------------------------------------- */

static void load_send(struct load_call *one);

static void on_load(struct redis_call *base, int error, const struct weir_resp_node *nodes,
                    uint32_t count)
{
    struct load_call *one = (struct load_call *)(void *)base;
    one->busy = false;
    if (error == 0) {
        assert_int_equal(nodes[0].type, WEIR_RESP_INTEGER);
        keys[one->key].done++;
        load_done++;
    }
    keys[one->key].unknown += error == WEIR_ERR_IO;
    if (loading && error == 0)
        load_send(one);
}

static void load_send(struct load_call *one)
{
    one->key = (one->key + 7) % KEYS;
    rig_call_count(&one->body, &rig, keys[one->key].name, 1);
    one->call = one->body.call;
    one->call.done = on_load;
    one->busy = redis_client_send(rig.client, &one->call) == 0;
}

/* Those that were refused try again. */
static void load_run(void)
{
    for (int i = 0; i < CALLS; i++)
        if (loading && !load[i].busy)
            load_send(&load[i]);
    redis_client_flush(rig.client);
    uv_run(&rig.loop, UV_RUN_ONCE);
}

/* The keys' names are `prefix` and a number. */
static void load_start(const char *prefix)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        snprintf(keys[i].name, sizeof keys[i].name, "%s%u", prefix, i);
        keys[i].done = keys[i].unknown = 0;
    }
    for (uint32_t i = 0; i < CALLS; i++)
        load[i] = (struct load_call){.key = i % KEYS};
    loading = true;
    load_done = 0;
}

/* Runs the load until so many more calls were answered. */
static void load_some(uint32_t more)
{
    uint64_t deadline = uv_hrtime() + RIG_PATIENCE_NS;
    for (uint32_t until = load_done + more; load_done < until;) {
        assert_true(uv_hrtime() < deadline);
        load_run();
    }
}

static bool load_is_over(void)
{
    for (int i = 0; i < CALLS; i++)
        if (load[i].busy)
            return false;
    return true;
}

/* Ends the load, and holds the counters against what is known of them. */
static void load_check(bool may_lose)
{
    loading = false;
    while (!load_is_over())
        load_run();
    for (uint32_t i = 0; i < KEYS; i++) {
        struct rig_call get;
        char command[64];
        snprintf(command, sizeof command, "GET %.31s", keys[i].name);
        rig_call_say(&get, &rig, command);
        get.call.cluster_slot = redis_cluster_slot(keys[i].name, strlen(keys[i].name));
        assert_int_equal(rig_call_run(&get), 0);
        uint32_t value = (uint32_t)atoi(get.text);
        assert_true(value <= keys[i].done + keys[i].unknown); /* nothing was done twice */
        assert_true(may_lose || value >= keys[i].done);
    }
}

/* --- Tests ------------------------------------------------------------------------------------ */

TEST_WITH(begin, end, "the map is found from any node")
{
    struct rig_call call;
    load_start("spread");
    load_some(2000);
    load_check(false);
    assert_true(redis_client_is_cluster(rig.client));
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_TOPOLOGY, "3 masters"));
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_UP, ""));
    assert_int_equal(redis_client_counters(rig.client)->redirects, 0);
    assert_int_equal(redis_client_counters(rig.client)->connects, 3);
    rig_call_say(&call, &rig, "MGET a b"); /* of several slots: the caller's mistake */
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.type, WEIR_RESP_ERROR);
}

TEST_WITH(begin, end, "a slot moves under load")
{
    const uint16_t slot = redis_cluster_slot("moving", 6);
    const int from = slot * MASTERS / REDIS_CLUSTER_SLOTS, to = (from + 1) % MASTERS;

    load_start("{moving}");
    load_some(500);
    say(to, "CLUSTER SETSLOT %u IMPORTING %s", slot, ids[from]);
    say(from, "CLUSTER SETSLOT %u MIGRATING %s", slot, ids[to]);
    load_some(500);
    for (uint32_t i = 0; i < KEYS; i++) { /* half of them first, then the rest */
        say(from, "MIGRATE 127.0.0.1 %u %s 0 5000", servers[to].port, keys[i].name);
        load_some(50);
    }
    uint64_t asked = redis_client_counters(rig.client)->redirects;
    assert_true(asked > 0);
    say(to, "CLUSTER SETSLOT %u NODE %s", slot, ids[to]);
    say(from, "CLUSTER SETSLOT %u NODE %s", slot, ids[to]);
    /* What is in flight gets MOVED, until the map is known again; then nothing is. */
    uint64_t moved, deadline = uv_hrtime() + RIG_PATIENCE_NS;
    do {
        assert_true(uv_hrtime() < deadline);
        moved = redis_client_counters(rig.client)->redirects;
        load_some(500);
    } while (redis_client_counters(rig.client)->redirects > moved);
    assert_true(moved > asked);
    load_some(2000);
    assert_int_equal(redis_client_counters(rig.client)->redirects, moved);
    assert_true(redis_client_counters(rig.client)->refreshes <= 8);
    load_check(false);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(keys[i].unknown, 0);
}

TEST_WITH(begin, end, "a replica takes the place of a dead master")
{
    load_start("mortal");
    load_some(1000);
    redis_server_end(&servers[0]);
    do {
        load_run();
    } while (!is_master(MASTERS));
    uint64_t promoted = uv_hrtime();
    uint32_t from = rig.event_count;
    struct rig_call call;
    assert_int_equal(redis_cluster_slot("06S", 3), 0); /* of the dead master */
    do {
        load_run();
        rig_call_count(&call, &rig, "06S", 1);
        assert_true(uv_hrtime() - promoted < RIG_PATIENCE_NS);
    } while (rig_call_run(&call) != 0);
    assert_true(client_rig_reported(&rig, 0, REDIS_EVENT_TOPOLOGY, "3 masters"));
    load_some(1000);
    assert_false(client_rig_reported(&rig, from, REDIS_EVENT_DOWN, "")); /* two were always there */
    load_check(true);
}

RUN_TESTS_WITH(start, stop)
