/* Asks some server or sentinel where the masters are; see client_state.h.
 *
 * One question at a time, whoever wants to know: a storm of MOVED makes one refresh, and another
 * 0.25 to 0.5 s later if it goes on. Candidates are asked in turn until one has a usable answer: of
 * a Cluster first a server that is ready, by lot, then those of the URL and all that are known.
 *
 *   a Cluster     CLUSTER SLOTS on a connection of its own, closed after the answer
 *   sentinels     GET-MASTER-ADDR-BY-NAME and MASTER (for the epoch), again every second, every
 *                 tenth of a second while there is no master; another sentinel every ten answers,
 * as one that is cut off from the others knows nothing new
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/client_state.h"
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
static void scout_next(struct redis_scout *scout);

static uint64_t scout_now(const struct redis_scout *scout)
{
    return uv_now(scout->client->options.loop);
}

static bool is_sentinel(const struct redis_scout *scout)
{
    return scout->client->url.kind == REDIS_SENTINEL;
}

static void part_gone(struct redis_scout *scout)
{
    if (--scout->parts == 0) {
        redis_client_part_gone(scout->client);
    }
}

static void scout_timer(struct redis_scout *scout, enum redis_scout_state state, uint64_t ms)
{
    scout->state = (uint8_t)state;
    uv_timer_start(&scout->timer, on_timer, ms, 0);
}

static void scout_hang_up(struct redis_scout *scout)
{
    if (scout->connection != NULL) {
        redis_connection_close(scout->connection);
        scout->connection = NULL;
    }
    scout->opened = false;
    scout->answers = 0;
}

static bool has_master(const struct redis_client *client)
{
    return client->master != NULL && client->master->state == REDIS_NODE_READY;
}

/* After an answer. */
static void scout_rest(struct redis_scout *scout)
{
    struct redis_client *client = scout->client;

    scout->failed = false;
    scout->rounds = scout->tried = 0;
    if (is_sentinel(scout)) {
        if (++scout->answers >= ANSWERS_MAX) {
            scout_hang_up(scout);
        }
        uint64_t pause = has_master(client) && !scout->wanted ? POLL_MS : POLL_ANXIOUS_MS;
        scout->wanted = false;
        scout_timer(scout, REDIS_SCOUT_PAUSED, redis_client_jitter(client, pause / 2, pause));
        return;
    }
    scout_hang_up(scout);
    scout->state = REDIS_SCOUT_IDLE;
    uv_timer_stop(&scout->timer);
    if (scout->wanted) {
        scout->wanted = false;
        redis_scout_want(client);
    }
}

/* --- Questions -------------------------------------------------------------------------------- */

static void question_write(struct redis_scout *scout)
{
    const struct redis_url *url = &scout->client->url;
    bool sentinel = is_sentinel(scout), first = !scout->opened;
    const char *user = sentinel ? url->sentinel_user : url->user;
    const char *password = sentinel ? url->sentinel_password : url->password;
    size_t room = REDIS_AUTH_MAX + 2 * (REDIS_HOST_MAX + 128);
    char *start = redis_connection_room(scout->connection, room), *at = start;

    if (at == NULL) {
        return; /* its output is stuck: the timer ends it */
    }
    at += first ? redis_auth_write(at, user, password) : 0;
    scout->secret = at > start;
    scout->opened = true;
    scout->replies = 0;
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
    redis_connection_put(scout->connection, (size_t)(at - start));
    redis_connection_flush(scout->connection);
}

/* This candidate is of no use: the next one. */
static void scout_give_up(struct redis_scout *scout, const char *why)
{
    redis_host_text(scout->address, scout->client, &scout->asked);
    snprintf(scout->why, sizeof scout->why, "%s", why);
    scout_hang_up(scout);
    scout->tried++;
    scout_next(scout);
}

static void slots_replied(struct redis_scout *scout, const struct weir_resp_node *nodes,
                          uint32_t count)
{
    struct weir_reason reason = {"no memory for a map of slots"};
    struct redis_topology *topology = malloc(sizeof *topology);
    if (topology == NULL ||
        redis_topology_read(topology, &scout->asked, nodes, count, &reason) != 0) {
        scout_give_up(scout, reason.text);
    } else {
        redis_cluster_apply(scout->client, topology);
        if (scout->state == REDIS_SCOUT_ASKING) {
            scout_rest(scout);
        }
    }
    free(topology);
}

static void on_replied(void *owner, const struct weir_resp_node *nodes, uint32_t count)
{
    struct redis_scout *scout = owner;
    struct weir_reason reason;
    char text[WEIR_REASON_MAX], quote[160];

    if (scout->state != REDIS_SCOUT_ASKING) {
        redis_connection_fail(scout->connection, "it sent a reply that nobody asked for");
        return;
    }
    if (scout->secret) {
        scout->secret = false;
        if (nodes[0].type == WEIR_RESP_ERROR) {
            snprintf(text, sizeof text, "AUTH: %s",
                     redis_quote(quote, sizeof quote, nodes[0].text));
            scout_give_up(scout, text);
        }
        return;
    }
    if (!is_sentinel(scout)) {
        slots_replied(scout, nodes, count);
    } else if (scout->replies++ == 0) {
        if (redis_master_read(&scout->told, &scout->asked, nodes, count, &reason) != 0) {
            scout_give_up(scout, reason.text);
        }
    } else {
        redis_sentinel_apply(scout->client, &scout->told, redis_epoch_read(nodes, count));
        if (scout->state == REDIS_SCOUT_ASKING) {
            scout_rest(scout);
        }
    }
}

static void on_opened(void *owner)
{
    struct redis_scout *scout = owner;
    redis_connection_settle(scout->connection); /* the scout's own timer goes on */
    question_write(scout);
}

static void on_paused(void *owner)
{
    struct redis_scout *scout = owner;
    redis_client_flush(scout->client);
}

static void on_lost(void *owner, const char *why)
{
    struct redis_scout *scout = owner;
    scout->connection = NULL;
    if (scout->state == REDIS_SCOUT_ASKING) {
        scout_give_up(scout, why);
    } else {
        scout_hang_up(scout); /* it was idle: the next question opens another */
    }
}

static void on_gone(void *owner)
{
    struct redis_scout *scout = owner;
    scout->connection_lives = false;
    part_gone(scout);
}

/* --- Candidates ------------------------------------------------------------------------------- */

static uint32_t candidate_count(const struct redis_client *client)
{
    uint32_t count = client->url.host_count;
    for (uint32_t i = 0; client->nodes != NULL && i < REDIS_MASTERS_MAX; i++) {
        count += client->nodes[i] != NULL;
    }
    return count;
}

/* The n-th server that is known (or ready); NULL: fewer. */
static const struct redis_node *node_pick(const struct redis_client *client, uint32_t n, bool ready)
{
    for (uint32_t i = 0; client->nodes != NULL && i < REDIS_MASTERS_MAX; i++) {
        const struct redis_node *node = client->nodes[i];
        if (node != NULL && (!ready || node->state == REDIS_NODE_READY) && n-- == 0) {
            return node;
        }
    }
    return NULL;
}

static void candidate_pick(struct redis_scout *scout)
{
    struct redis_client *client = scout->client;
    const struct redis_node *node = NULL;
    uint32_t turn;

    if (client->nodes != NULL && scout->tried == 0 && client->ready > 0) {
        node = node_pick(client, (uint32_t)(redis_client_random(client) % client->ready), true);
    }
    if (node == NULL) {
        turn = scout->turn++ % candidate_count(client);
        if (turn < client->url.host_count) {
            scout->asked = client->url.hosts[turn];
            return;
        }
        node = node_pick(client, turn - client->url.host_count, false);
    }
    scout->asked = node->host;
}

static void scout_open(struct redis_scout *scout)
{
    static const struct redis_connection_handlers handlers = {
        .opened = on_opened,
        .replied = on_replied,
        .paused = on_paused,
        .writable = on_paused,
        .lost = on_lost,
        .gone = on_gone,
    };
    struct redis_client *client = scout->client;
    candidate_pick(scout);
    struct redis_connection_options options = {
        .loop = client->options.loop,
        .host = &scout->asked,
        .first = scout->rounds,
        .open_ms = client->options.connect_ms,
        .tls = client->tls,
        .server_name = client->server_name[0] != '\0' ? client->server_name : NULL,
        .handlers = &handlers,
        .owner = scout,
    };
    if (redis_connection_open(&scout->connection, &options) == 0) {
        scout->connection_lives = true;
        scout->parts++;
    } else {
        scout->connection = NULL; /* the timer goes on to the next */
    }
}

/* Asks, or after a whole round in vain pauses. */
static void scout_next(struct redis_scout *scout)
{
    struct redis_client *client = scout->client;
    if (scout->tried > candidate_count(client)) {
        uint64_t most = (uint64_t)ROUND_FIRST_MS << (scout->rounds < 5 ? scout->rounds : 5);
        most = most < ROUND_MAX_MS ? most : ROUND_MAX_MS;
        scout->rounds++;
        scout->tried = 0;
        scout->failed = true;
        redis_client_tell_down(client, scout->address, scout->why);
        scout_timer(scout, REDIS_SCOUT_PAUSED, redis_client_jitter(client, most / 2, most));
        return;
    }
    if (scout->connection == NULL && scout->connection_lives) {
        scout_timer(scout, REDIS_SCOUT_PAUSED, LINGER_MS); /* until the last one is gone */
        return;
    }
    scout->started_ms = scout_now(scout);
    scout->wanted = false;
    /* Half of what a connection may take: it is a server of many, and the next may answer. */
    scout_timer(scout, REDIS_SCOUT_ASKING, client->options.connect_ms / 2 + 1);
    if (scout->connection != NULL) {
        question_write(scout);
    } else {
        scout_open(scout);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_scout *scout = timer->data;
    if (scout->state == REDIS_SCOUT_ASKING) {
        scout_give_up(scout, "it did not answer in time");
    } else {
        scout_next(scout);
    }
}

void redis_scout_want(struct redis_client *client)
{
    struct redis_scout *scout = &client->scout;
    uint64_t now = uv_now(client->options.loop), spacing, due;

    if (scout->client == NULL || scout->state == REDIS_SCOUT_ENDED || scout->wanted) {
        return; /* a single server: there is nobody to ask */
    }
    if (scout->state == REDIS_SCOUT_ASKING) {
        scout->wanted = true; /* what is being answered may be older than the reason */
        return;
    }
    if (scout->state == REDIS_SCOUT_PAUSED && (!is_sentinel(scout) || scout->failed)) {
        return; /* it is about to ask */
    }
    scout->wanted = is_sentinel(scout);
    spacing = is_sentinel(scout) ? POLL_ANXIOUS_MS
                                 : redis_client_jitter(client, SPACING_MIN_MS, SPACING_MAX_MS);
    due = scout->started_ms + spacing;
    scout_timer(scout, REDIS_SCOUT_PAUSED, due > now ? due - now : 0);
}

void redis_scout_start(struct redis_client *client)
{
    struct redis_scout *scout = &client->scout;
    scout->client = client;
    scout->parts = 1;
    client->parts++;
    uv_timer_init(client->options.loop, &scout->timer);
    scout->timer.data = scout;
    scout->turn = (uint32_t)(redis_client_random(client) % client->url.host_count);
    scout_timer(scout, REDIS_SCOUT_PAUSED, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_gone(handle->data);
}

void redis_scout_close(struct redis_client *client)
{
    client->scout.state = REDIS_SCOUT_ENDED;
    scout_hang_up(&client->scout);
    uv_close((uv_handle_t *)&client->scout.timer, on_timer_closed);
}
