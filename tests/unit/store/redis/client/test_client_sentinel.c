/* SPDX-License-Identifier: Apache-2.0 */
/* The client and a real group of two servers and three sentinels: a failover under load, and a
 * master that comes back as a replica. */
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

#define SENTINELS 3

static struct redis_server servers[2], sentinels[SENTINELS];
static struct client_rig rig;

static const struct weir_resp_node *say(struct redis_link *link, const struct redis_server *server,
                                        const char *command)
{
    redis_link_open(link, server);
    return redis_link_say(link, command);
}

/* Whether a reply has that text. A server whose role changes closes connections without one. */
static bool says(const struct redis_server *server, const char *command, const char *text)
{
    static struct redis_link link;
    bool found = false, replied;

    redis_link_open(&link, server);
    replied = redis_link_try(&link, command) != NULL;
    for (uint32_t i = 0; replied && i < link.count && !found; i++) {
        found =
            link.nodes[i].text.size > 0 &&
            memmem(link.nodes[i].text.data, link.nodes[i].text.size, text, strlen(text)) != NULL;
    }
    redis_link_close(&link);
    return found;
}

/* A sentinel keeps its state in its configuration file. */
static void sentinel_start(struct redis_server *sentinel)
{
    static char paths[SENTINELS][REDIS_SERVER_PATH_MAX + 16];
    static const char *arguments[SENTINELS][3];
    ptrdiff_t i = sentinel - sentinels;

    redis_server_prepare(sentinel);
    snprintf(paths[i], sizeof paths[i], "%s/sentinel.conf", sentinel->directory);
    FILE *file = fopen(paths[i], "w");
    assert_non_null(file);
    fprintf(file,
            "unixsocket %s\nsentinel monitor limits 127.0.0.1 %u 2\n"
            "sentinel down-after-milliseconds limits 2000\nsentinel failover-timeout limits 3000\n",
            sentinel->socket, servers[0].port);
    fclose(file);
    arguments[i][0] = paths[i];
    arguments[i][1] = "--sentinel";
    redis_server_run(sentinel, arguments[i]);
    /* Since Redis 7.0: they talk more often, so that the test does not take half a minute. */
    assert_true(
        says(sentinel, "SENTINEL DEBUG info-period 500 ping-period 200 publish-period 500", "OK"));
}

static int start(void **state)
{
    static char port[8];
    static const char *const replica[] = {
        "--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0", NULL};
    client_rig_init(&rig);
    redis_server_start(&servers[0], NULL);
    snprintf(port, sizeof port, "%u", servers[0].port);
    redis_server_start(&servers[1], replica);
    RIG_UNTIL(&rig, says(&servers[1], "INFO replication", "master_link_status:up"));
    for (int i = 0; i < SENTINELS; i++)
        sentinel_start(&sentinels[i]);
    for (int i = 0; i < SENTINELS; i++) /* they find each other and the replica */
        RIG_UNTIL(&rig, says(&sentinels[i], "INFO sentinel", "slaves=1,sentinels=3"));
    client_rig_end(&rig);
    return 0;
}

static int stop(void **state)
{
    for (int i = 0; i < SENTINELS; i++)
        redis_server_stop(&sentinels[i]);
    redis_server_stop(&servers[1]);
    redis_server_stop(&servers[0]);
    return 0;
}

static void open_client(const char *group)
{
    char url[128];
    snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/%s/2",
             sentinels[0].port, sentinels[1].port, sentinels[2].port, group);
    client_rig_connect(&rig, url);
}

static struct rig_call call;
static int64_t last_value;

/* Calls once, and waits so long for a server; what is answered only grows. Returns whether it was
 * answered. */
static bool count_within(const char *key, uint64_t wait_ns)
{
    uv_run(&rig.loop, UV_RUN_ONCE);
    rig_call_count(&call, &rig, key, 1);
    call.call.give_up_ns = uv_hrtime() + wait_ns;
    if (rig_call_run(&call) != 0)
        return false;
    assert_int_equal(call.type, WEIR_RESP_INTEGER); /* never READONLY */
    last_value = call.integer;
    return true;
}

/* While there may be no server. */
static bool count_once(const char *key)
{
    return count_within(key, 20000000);
}

static bool told_address(uint32_t from, enum redis_event kind, const struct redis_server *server)
{
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", server->port);
    return client_rig_reported(&rig, from, kind, address);
}

static void the_master_of_the_group_is_found(void **state)
{
    open_client("limits");
    rig_call_count(&call, &rig, "found", 3); /* waits until the sentinels have answered */
    assert_int_equal(rig_call_run(&call), 0);
    assert_int_equal(call.integer, 3);
    assert_true(told_address(0, REDIS_EVENT_UP, &servers[0]));
    assert_false(redis_client_is_cluster(rig.client));
}

static void an_unknown_group_is_reported(void **state)
{
    open_client("nobody");
    RIG_UNTIL(&rig, client_rig_reported(&rig, 0, REDIS_EVENT_DOWN, "no group of this name"));
}

static void a_planned_failover_is_followed(void **state)
{
    open_client("limits");
    RIG_UNTIL(&rig, count_once("planned"));
    static struct redis_link link;
    say(&link, &sentinels[0], "SENTINEL FAILOVER limits");
    redis_link_close(&link);
    RIG_UNTIL(&rig, count_once("planned") && told_address(0, REDIS_EVENT_FAILOVER, &servers[1]));
    RIG_UNTIL(&rig, says(&servers[0], "ROLE", "slave"));
    for (int i = 0; i < 100; i++)
        assert_true(count_within("planned", RIG_PATIENCE_NS));
    assert_true(says(&servers[1], "INFO clients", "connected_clients"));
    /* No connection of ours is left to the demoted master. */
    RIG_UNTIL(&rig, !says(&servers[0], "CLIENT LIST", "name=weir"));
}

static void an_unplanned_one_too(void **state)
{
    open_client("limits");
    RIG_UNTIL(&rig, count_once("unplanned"));
    for (int i = 0; i < SENTINELS; i++) { /* ready for the next failover */
        RIG_UNTIL(&rig, says(&sentinels[i], "INFO sentinel", "status=ok"));
        RIG_UNTIL(&rig, says(&sentinels[i], "SENTINEL REPLICAS limits", "127.0.0.1"));
    }
    RIG_UNTIL(&rig, says(&servers[0], "INFO replication", "master_link_status:up"));
    redis_server_signal(&servers[1], SIGSTOP); /* the master now */
    RIG_UNTIL(&rig, told_address(0, REDIS_EVENT_FAILOVER, &servers[0]));
    RIG_UNTIL(&rig, count_once("unplanned"));
    redis_server_signal(&servers[1], SIGCONT); /* it thinks it still is */
    for (int i = 0; i < 50; i++) {
        count_once("unplanned");
        assert_true(redis_client_ready(rig.client, 0));
    }
    assert_true(says(&servers[0], "ROLE", "master"));
}

int main(void)
{
#define CASE(name) RIG_TEST(name, &rig)
    const struct CMUnitTest tests[] = {
        CASE(the_master_of_the_group_is_found),
        CASE(an_unknown_group_is_reported),
        CASE(a_planned_failover_is_followed),
        CASE(an_unplanned_one_too),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
