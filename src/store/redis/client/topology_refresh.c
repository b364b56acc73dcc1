/* SPDX-License-Identifier: Apache-2.0 */
/* see topology_refresh.h */
#include "store/redis/client/topology_refresh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/client_state.h"
#include "store/redis/client/handshake.h"
#include "store/redis/client/refusal.h"
#include "wire/resp/write.h"

#define SPACING_MIN_MS 250 /* between questions to a Cluster */
#define SPACING_MAX_MS 500
#define POLL_MS 1000
#define POLL_ANXIOUS_MS 100
#define ROUND_FIRST_MS 50 /* pause after a round without an answer; doubles */
#define ROUND_MAX_MS 1000
#define LINGER_MS 2    /* until an earlier connection is gone */
#define ANSWERS_MAX 10 /* of one sentinel */

static void on_timer(uv_timer_t *timer);
static void refresh_next(struct redis_topology_refresh *refresh);

static uint64_t refresh_now(const struct redis_topology_refresh *refresh)
{
    return uv_now(refresh->client->options.loop);
}

static bool is_sentinel(const struct redis_topology_refresh *refresh)
{
    return refresh->client->url.kind == REDIS_SENTINEL;
}

static void part_gone(struct redis_topology_refresh *refresh)
{
    if (--refresh->parts == 0)
        redis_client_part_gone(refresh->client);
}

static void refresh_timer(struct redis_topology_refresh *refresh,
                          enum redis_topology_refresh_state state, uint64_t ms)
{
    refresh->state = (uint8_t)state;
    uv_timer_start(&refresh->timer, on_timer, ms, 0);
}

static void refresh_hang_up(struct redis_topology_refresh *refresh)
{
    if (refresh->connection) {
        redis_connection_close(refresh->connection);
        refresh->connection = NULL;
    }
    refresh->opened = false;
    refresh->answers = 0;
}

static bool has_master(const struct redis_client *client)
{
    return client->master && client->master->state == REDIS_NODE_READY;
}

/* After an answer. */
static void refresh_rest(struct redis_topology_refresh *refresh)
{
    struct redis_client *client = refresh->client;

    refresh->failed = false;
    refresh->rounds = refresh->tried = 0;
    if (is_sentinel(refresh)) {
        if (++refresh->answers >= ANSWERS_MAX)
            refresh_hang_up(refresh);
        uint64_t pause = has_master(client) && !refresh->wanted ? POLL_MS : POLL_ANXIOUS_MS;
        refresh->wanted = false;
        refresh_timer(refresh, REDIS_REFRESH_PAUSED, redis_client_jitter(client, pause / 2, pause));
        return;
    }
    refresh_hang_up(refresh);
    refresh->state = REDIS_REFRESH_IDLE;
    uv_timer_stop(&refresh->timer);
    if (refresh->wanted) {
        refresh->wanted = false;
        redis_topology_refresh_want(client);
    }
}

/* --- Questions -------------------------------------------------------------------------------- */

static void question_write(struct redis_topology_refresh *refresh)
{
    const struct redis_url *url = &refresh->client->url;
    bool sentinel = is_sentinel(refresh), first = !refresh->opened;
    const char *user = sentinel ? url->sentinel_user : url->user;
    const char *password = sentinel ? url->sentinel_password : url->password;
    size_t room = REDIS_AUTH_MAX + 2 * (REDIS_HOST_MAX + 128);
    char *start = redis_connection_room(refresh->connection, room), *at = start;

    if (!at)
        return; /* its output is stuck: the timer ends it */
    at += first ? redis_auth_write(at, user, password) : 0;
    refresh->secret = at > start;
    refresh->opened = true;
    refresh->replies = 0;
    if (sentinel) {
        at = weir_resp_write_array(at, 3);
        at = WEIR_RESP_WRITE_WORD(at, "SENTINEL");
        at = WEIR_RESP_WRITE_WORD(at, "GET-MASTER-ADDR-BY-NAME");
        at = weir_resp_write_bulk(at, url->group, strlen(url->group));
        at = weir_resp_write_array(at, 3);
        at = WEIR_RESP_WRITE_WORD(at, "SENTINEL");
        at = WEIR_RESP_WRITE_WORD(at, "MASTER");
        at = weir_resp_write_bulk(at, url->group, strlen(url->group));
    } else {
        at = weir_resp_write_array(at, 2);
        at = WEIR_RESP_WRITE_WORD(at, "CLUSTER");
        at = WEIR_RESP_WRITE_WORD(at, "SLOTS");
    }
    redis_connection_put(refresh->connection, (size_t)(at - start));
    redis_connection_flush(refresh->connection);
}

/* This candidate is of no use: the next one. */
static void refresh_give_up(struct redis_topology_refresh *refresh, const char *why)
{
    redis_host_text(refresh->address, refresh->client, &refresh->asked);
    snprintf(refresh->why, sizeof refresh->why, "%s", why);
    refresh_hang_up(refresh);
    refresh->tried++;
    refresh_next(refresh);
}

static void slots_replied(struct redis_topology_refresh *refresh,
                          const struct weir_resp_node *nodes, uint32_t count)
{
    struct weir_reason reason = {"no memory for a map of slots"};
    struct redis_topology *topology = malloc(sizeof *topology);
    if (!topology || redis_topology_read(topology, &refresh->asked, nodes, count, &reason) != 0) {
        refresh_give_up(refresh, reason.text);
    } else {
        redis_client_apply_topology(refresh->client, topology);
        if (refresh->state == REDIS_REFRESH_ASKING)
            refresh_rest(refresh);
    }
    free(topology);
}

static void on_replied(void *owner, const struct weir_resp_node *nodes, uint32_t count)
{
    struct redis_topology_refresh *refresh = owner;
    struct weir_reason reason;
    char text[WEIR_REASON_MAX], quote[160];

    if (refresh->state != REDIS_REFRESH_ASKING) {
        redis_connection_fail(refresh->connection, "it sent an unexpected reply");
        return;
    }
    if (refresh->secret) {
        refresh->secret = false;
        if (nodes[0].type == WEIR_RESP_ERROR) {
            snprintf(text, sizeof text, "AUTH: %s",
                     redis_quote(quote, sizeof quote, nodes[0].text));
            refresh_give_up(refresh, text);
        }
        return;
    }
    if (!is_sentinel(refresh)) {
        slots_replied(refresh, nodes, count);
    } else if (refresh->replies++ == 0) {
        if (redis_master_read(&refresh->master, &refresh->asked, nodes, count, &reason) != 0)
            refresh_give_up(refresh, reason.text);
    } else {
        redis_client_apply_master(refresh->client, &refresh->master,
                                  redis_epoch_read(nodes, count));
        if (refresh->state == REDIS_REFRESH_ASKING)
            refresh_rest(refresh);
    }
}

static void on_opened(void *owner)
{
    struct redis_topology_refresh *refresh = owner;
    redis_connection_settle(refresh->connection); /* the refresh's own timer keeps running */
    question_write(refresh);
}

static void on_paused(void *owner)
{
    struct redis_topology_refresh *refresh = owner;
    redis_client_flush(refresh->client);
}

static void on_lost(void *owner, const char *why)
{
    struct redis_topology_refresh *refresh = owner;
    refresh->connection = NULL;
    if (refresh->state == REDIS_REFRESH_ASKING)
        refresh_give_up(refresh, why);
    else
        refresh_hang_up(refresh); /* it was idle: the next question opens another */
}

static void on_gone(void *owner)
{
    struct redis_topology_refresh *refresh = owner;
    refresh->connection_lives = false;
    part_gone(refresh);
}

/* --- Candidates ------------------------------------------------------------------------------- */

static uint32_t candidate_count(const struct redis_client *client)
{
    uint32_t count = client->url.host_count;
    for (uint32_t i = 0; client->nodes && i < REDIS_MASTERS_MAX; i++)
        count += client->nodes[i] != NULL;
    return count;
}

/* The n-th server that is known (or ready); NULL: fewer. */
static const struct redis_node *node_pick(const struct redis_client *client, uint32_t n, bool ready)
{
    for (uint32_t i = 0; client->nodes && i < REDIS_MASTERS_MAX; i++) {
        const struct redis_node *node = client->nodes[i];
        if (node && (!ready || node->state == REDIS_NODE_READY) && n-- == 0)
            return node;
    }
    return NULL;
}

static void candidate_pick(struct redis_topology_refresh *refresh)
{
    struct redis_client *client = refresh->client;
    const struct redis_node *node = NULL;
    uint32_t turn;

    if (client->nodes && refresh->tried == 0 && client->ready > 0)
        node = node_pick(client, (uint32_t)(weir_random(&client->random) % client->ready), true);
    if (!node) {
        turn = refresh->turn++ % candidate_count(client);
        if (turn < client->url.host_count) {
            refresh->asked = client->url.hosts[turn];
            return;
        }
        node = node_pick(client, turn - client->url.host_count, false);
    }
    refresh->asked = node->host;
}

static void refresh_open(struct redis_topology_refresh *refresh)
{
    static const struct redis_connection_handlers handlers = {
        .opened = on_opened,
        .replied = on_replied,
        .paused = on_paused,
        .writable = on_paused,
        .lost = on_lost,
        .gone = on_gone,
    };
    struct redis_client *client = refresh->client;
    candidate_pick(refresh);
    struct redis_connection_options options = {
        .loop = client->options.loop,
        .host = &refresh->asked,
        .first = refresh->rounds,
        .open_ms = client->options.connect_ms,
        .tls = client->tls,
        .server_name = client->server_name[0] != '\0' ? client->server_name : NULL,
        .handlers = &handlers,
        .owner = refresh,
    };
    if (redis_connection_open(&refresh->connection, &options) == 0) {
        refresh->connection_lives = true;
        refresh->parts++;
    } else {
        refresh->connection = NULL; /* the timer asks the next */
    }
}

/* Asks; pauses first after a whole round without an answer. */
static void refresh_next(struct redis_topology_refresh *refresh)
{
    struct redis_client *client = refresh->client;
    if (refresh->tried > candidate_count(client)) {
        uint64_t most = (uint64_t)ROUND_FIRST_MS << (refresh->rounds < 5 ? refresh->rounds : 5);
        most = most < ROUND_MAX_MS ? most : ROUND_MAX_MS;
        refresh->rounds++;
        refresh->tried = 0;
        refresh->failed = true;
        redis_client_tell_down(client, refresh->address, refresh->why);
        refresh_timer(refresh, REDIS_REFRESH_PAUSED, redis_client_jitter(client, most / 2, most));
        return;
    }
    if (!refresh->connection && refresh->connection_lives) {
        refresh_timer(refresh, REDIS_REFRESH_PAUSED, LINGER_MS); /* until the last one is gone */
        return;
    }
    refresh->started_ms = refresh_now(refresh);
    refresh->wanted = false;
    /* Half of what a connection may take: it is a server of many, and the next may answer. */
    refresh_timer(refresh, REDIS_REFRESH_ASKING, client->options.connect_ms / 2 + 1);
    if (refresh->connection)
        question_write(refresh);
    else
        refresh_open(refresh);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_topology_refresh *refresh = timer->data;
    if (refresh->state == REDIS_REFRESH_ASKING)
        refresh_give_up(refresh, "it did not answer in time");
    else
        refresh_next(refresh);
}

void redis_topology_refresh_want(struct redis_client *client)
{
    struct redis_topology_refresh *refresh = &client->refresh;
    uint64_t now = uv_now(client->options.loop), spacing, due;

    if (!refresh->client || refresh->state == REDIS_REFRESH_ENDED || refresh->wanted)
        return; /* a single server has no topology */
    if (refresh->state == REDIS_REFRESH_ASKING) {
        refresh->wanted = true; /* what is being answered may be older than the reason */
        return;
    }
    if (refresh->state == REDIS_REFRESH_PAUSED && (!is_sentinel(refresh) || refresh->failed))
        return; /* it is about to ask */
    refresh->wanted = is_sentinel(refresh);
    spacing = is_sentinel(refresh) ? POLL_ANXIOUS_MS
                                   : redis_client_jitter(client, SPACING_MIN_MS, SPACING_MAX_MS);
    due = refresh->started_ms + spacing;
    refresh_timer(refresh, REDIS_REFRESH_PAUSED, due > now ? due - now : 0);
}

void redis_topology_refresh_start(struct redis_client *client)
{
    struct redis_topology_refresh *refresh = &client->refresh;
    refresh->client = client;
    refresh->parts = 1;
    client->parts++;
    uv_timer_init(client->options.loop, &refresh->timer);
    refresh->timer.data = refresh;
    refresh->turn = (uint32_t)(weir_random(&client->random) % client->url.host_count);
    refresh_timer(refresh, REDIS_REFRESH_PAUSED, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_gone(handle->data);
}

void redis_topology_refresh_close(struct redis_client *client)
{
    client->refresh.state = REDIS_REFRESH_ENDED;
    refresh_hang_up(&client->refresh);
    uv_close((uv_handle_t *)&client->refresh.timer, on_timer_closed);
}
