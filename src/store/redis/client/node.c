/* SPDX-License-Identifier: Apache-2.0 */
/* see node.h */
#include "store/redis/client/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "store/redis/client/client_state.h"
#include "wire/resp/write.h"

#define BACKOFF_FIRST_MS 10
#define BACKOFF_MAX_MS 1000
#define HEALTHY_MS 1000 /* a connection that lasted so long was a good one */
#define SPREAD_MS 20    /* clients that lose one server together come back within */
#define PAUSE_MIN_MS 5  /* between the end of an attempt and the next */
#define SILENCE_MS 750  /* then it is suspected; at the next tick, 250 ms later, given up */
#define PING_MS 1000    /* of idleness */
#define LINGER_MS 5     /* until an earlier connection is gone */

static const char ping_bytes[] = "*1\r\n$4\r\nPING\r\n";
static const char asking_bytes[] = "*1\r\n$6\r\nASKING\r\n";

static uint64_t node_now(const struct redis_node *node)
{
    return uv_now(node->client->options.loop);
}

bool redis_host_equals(const struct redis_host *a, const struct redis_host *b)
{
    return a->port == b->port && strcmp(a->name, b->name) == 0;
}

const char *redis_host_text(char out[REDIS_ADDRESS_MAX], const struct redis_client *client,
                            const struct redis_host *host)
{
    if (client->url.kind == REDIS_UNIX) {
        snprintf(out, REDIS_ADDRESS_MAX, "%s", client->url.path);
    } else {
        bool address6 = strchr(host->name, ':');
        snprintf(out, REDIS_ADDRESS_MAX, address6 ? "[%s]:%u" : "%s:%u", host->name, host->port);
    }
    return out;
}

static void part_gone(struct redis_node *node)
{
    struct redis_client *client = node->client;
    if (--node->parts == 0) {
        redis_send_queue_free(&node->send_queue);
        free(node);
        redis_client_part_gone(client);
    }
}

/* --- Connecting ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

/* The time until the next attempt, counted from the start of the one before, so that one that hung
 * does not wait for its pause too. */
static void node_pause(struct redis_node *node)
{
    uint64_t since = node_now(node) - node->opened_ms, pause;
    if (node->attempts == 0) {
        pause = redis_client_jitter(node->client, 0, SPREAD_MS);
    } else {
        uint64_t most = weir_backoff_after(node->attempts, BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
        pause = redis_client_jitter(node->client, most / 2, most);
        pause = pause > since + PAUSE_MIN_MS ? pause - since : PAUSE_MIN_MS;
    }
    node->state = REDIS_NODE_PAUSED;
    uv_timer_start(&node->timer, on_timer, pause, 0);
}

/* Ends the calls in flight as "perhaps executed", and if no connection is likely soon, the others
 * as "not executed". */
static void node_fail_calls(struct redis_node *node)
{
    struct redis_client *client = node->client;
    uint32_t sent = node->send_queue.sent, last = node->send_queue.last;

    while (!client->closing && (int32_t)(sent - node->send_queue.first) > 0) {
        struct redis_place place = redis_send_queue_pop(&node->send_queue);
        if (place.kind == REDIS_PLACE_CALL)
            redis_client_finish(client, place.call, WEIR_ERR_IO, NULL, 0);
        else if (place.kind == REDIS_PLACE_FORGOTTEN)
            client->calls--;
    }
    while (!client->closing && !redis_node_accepts(node) &&
           (int32_t)(last - node->send_queue.first) > 0) {
        struct redis_place place = redis_send_queue_pop(&node->send_queue);
        if (place.kind == REDIS_PLACE_CALL)
            redis_client_finish(client, place.call, WEIR_ERR_STORE, NULL, 0);
    }
}

/* The end of a server that another has replaced. */
static void node_part(struct redis_node *node)
{
    node->client->former = NULL;
    node_fail_calls(node);
    if (node->state != REDIS_NODE_ENDED)
        redis_node_close(node);
}

/* After a connection that has ended, or never was. */
static void node_lose(struct redis_node *node, const char *why, bool was_good)
{
    struct redis_client *client = node->client;
    char address[REDIS_ADDRESS_MAX];

    if (node == client->former) {
        node_part(node);
        return;
    }
    if (node->state == REDIS_NODE_READY || node->state == REDIS_NODE_DRAINING)
        client->ready--;
    node->attempts = was_good ? 0 : node->attempts + 1;
    node->loading = 0;
    node->silent = false;
    node_pause(node);
    redis_client_tell_down(client, redis_host_text(address, client, &node->host), why);
    redis_topology_refresh_want(client);
    node_fail_calls(node);
}

static void on_opened(void *owner)
{
    struct redis_node *node = owner;
    const struct redis_handshake *handshake = &node->client->handshake;
    char *room = redis_connection_room(node->connection, handshake->size);
    if (room) {
        memcpy(room, handshake->bytes, handshake->size);
        redis_connection_put(node->connection, handshake->size);
        redis_connection_flush(node->connection);
    }
}

static void node_ready(struct redis_node *node)
{
    redis_connection_settle(node->connection);
    node->state = REDIS_NODE_READY;
    node->ready_ms = node->heard_ms = node_now(node);
    node->client->ready++;
    node->client->counters.connects++;
    redis_client_tell_up(node->client, node);
    redis_node_flush(node);
}

static void handshake_replied(struct redis_node *node, const struct weir_resp_node *nodes,
                              uint32_t count)
{
    struct weir_reason reason;
    if (redis_handshake_check(node->client, node->step, nodes, count, &reason) != 0)
        redis_connection_fail(node->connection, reason.text);
    else if (++node->step == node->client->handshake.count)
        node_ready(node);
}

/* Leaves a server that is no longer to be asked. */
static void node_leave(struct redis_node *node)
{
    redis_connection_close(node->connection);
    node->connection = NULL;
    node_lose(node, node->draining, false);
}

static void on_replied(void *owner, const struct weir_resp_node *nodes, uint32_t count)
{
    struct redis_node *node = owner;
    struct redis_client *client = node->client;

    if (node->state == REDIS_NODE_OPENING) {
        handshake_replied(node, nodes, count);
        return;
    }
    if (!redis_send_queue_in_flight(&node->send_queue)) {
        redis_connection_fail(node->connection, "it sent an unexpected reply");
        return;
    }
    struct redis_place *place = redis_send_queue_at(&node->send_queue, node->send_queue.first);
    if (place->asking) {
        place->asking = false;
        return;
    }
    struct redis_place done = redis_send_queue_pop(&node->send_queue);
    if (done.kind == REDIS_PLACE_FORGOTTEN) {
        client->calls--;
    } else if (done.kind == REDIS_PLACE_LOAD) {
        node->loading &= ~(UINT64_C(1) << done.script);
        return; /* if it failed, so will the calls behind it */
    }
    if (done.kind == REDIS_PLACE_PING)
        return;
    if (nodes[0].type == WEIR_RESP_ERROR)
        redis_client_refused(client, node, done.call, nodes, count);
    else if (done.call)
        redis_client_finish(client, done.call, 0, nodes, count);
}

static void on_paused(void *owner)
{
    struct redis_node *node = owner;
    node->heard_ms = node_now(node);
    node->silent = false;
    if (node->state == REDIS_NODE_DRAINING && !redis_send_queue_in_flight(&node->send_queue))
        node_leave(node);
    redis_client_flush(node->client);
}

static void on_writable(void *owner)
{
    redis_node_flush(owner);
}

static void on_lost(void *owner, const char *why)
{
    struct redis_node *node = owner;
    bool good = node->state == REDIS_NODE_READY && !node->silent &&
                node_now(node) - node->ready_ms >= HEALTHY_MS;
    node->connection = NULL;
    node_lose(node, why, good);
}

static void on_gone(void *owner)
{
    struct redis_node *node = owner;
    node->connection_lives = false;
    part_gone(node);
}

static void node_connect(struct redis_node *node)
{
    static const struct redis_connection_handlers handlers = {on_opened,   on_replied, on_paused,
                                                              on_writable, on_lost,    on_gone};
    struct redis_client *client = node->client;
    bool is_path = client->url.kind == REDIS_UNIX;
    struct redis_connection_options options = {
        .loop = client->options.loop,
        .path = is_path ? client->url.path : NULL,
        .host = is_path ? NULL : &node->host,
        .first = node->attempts,
        .open_ms = client->options.connect_ms,
        .tls = client->tls,
        .server_name = client->server_name[0] != '\0' ? client->server_name : NULL,
        .handlers = &handlers,
        .owner = node,
    };
    node->opened_ms = node_now(node);
    node->step = 0;
    int error = redis_connection_open(&node->connection, &options);
    if (error != 0) {
        node->connection = NULL;
        node_lose(node, weir_error_text(error), false);
        return;
    }
    node->state = REDIS_NODE_OPENING;
    node->connection_lives = true;
    node->parts++;
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_node *node = timer->data;
    if (node->connection_lives) { /* a name that is still being resolved */
        uv_timer_start(&node->timer, on_timer, LINGER_MS, 0);
        return;
    }
    node_connect(node);
}

struct redis_node *redis_node_open(struct redis_client *client, const struct redis_host *host)
{
    struct redis_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->client = client;
    if (host)
        node->host = *host;
    uv_timer_init(client->options.loop, &node->timer);
    node->timer.data = node;
    node->parts = 1;
    client->parts++;
    node->used_ms = node_now(node);
    /* From the loop: a failure must not be reported from inside the function that opens it. */
    node->state = REDIS_NODE_PAUSED;
    uv_timer_start(&node->timer, on_timer, 0, 0);
    return node;
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_gone(handle->data);
}

void redis_node_close(struct redis_node *node)
{
    if (node->state == REDIS_NODE_READY || node->state == REDIS_NODE_DRAINING)
        node->client->ready--;
    node->state = REDIS_NODE_ENDED;
    for (struct redis_node **at = &node->client->dirty; *at; at = &(*at)->next_dirty) {
        if (*at == node) {
            *at = node->next_dirty;
            break;
        }
    }
    if (node->connection) {
        redis_connection_close(node->connection);
        node->connection = NULL;
    }
    uv_close((uv_handle_t *)&node->timer, on_timer_closed);
}

/* --- Calls ------------------------------------------------------------------------------------ */

bool redis_node_accepts(const struct redis_node *node)
{
    return node->state == REDIS_NODE_READY ||
           (node->attempts == 0 &&
            (node->state == REDIS_NODE_OPENING || node->state == REDIS_NODE_PAUSED));
}

static int node_push(struct redis_node *node, struct redis_place place)
{
    int error = redis_send_queue_push(&node->send_queue, place);
    if (error == 0 && !node->dirty) {
        node->dirty = true;
        node->next_dirty = node->client->dirty;
        node->client->dirty = node;
    }
    return error;
}

int redis_node_send(struct redis_node *node, struct redis_call *call, bool asking)
{
    int error = node_push(
        node, (struct redis_place){.call = call, .kind = REDIS_PLACE_CALL, .asking = asking});
    if (error == 0)
        call->place = node;
    return error;
}

int redis_node_load(struct redis_node *node, const struct redis_script *script)
{
    const struct redis_client_options *options = &node->client->options;
    unsigned i = 0;
    while (i < options->script_count && options->scripts[i] != script)
        i++;
    if (i == options->script_count || (node->loading >> i & 1) != 0)
        return 0;
    int error =
        node_push(node, (struct redis_place){.kind = REDIS_PLACE_LOAD, .script = (uint8_t)i});
    if (error == 0) {
        node->loading |= UINT64_C(1) << i;
        node->client->counters.reloads++;
    }
    return error;
}

/* The bytes of a place. */
static struct weir_bytes place_bytes(const struct redis_node *node, const struct redis_place *place)
{
    const struct redis_handshake *handshake = &node->client->handshake;
    if (place->kind == REDIS_PLACE_CALL)
        return (struct weir_bytes){place->call->bytes, place->call->size};
    if (place->kind == REDIS_PLACE_LOAD) {
        const struct redis_handshake_step *step =
            &handshake->steps[handshake->script_first + place->script];
        return (struct weir_bytes){handshake->bytes + step->at, step->size};
    }
    if (place->kind == REDIS_PLACE_PING)
        return (struct weir_bytes){ping_bytes, sizeof ping_bytes - 1};
    return (struct weir_bytes){0}; /* a gap */
}

/* Copies the bytes of a place into the output. Returns whether there was room. */
static bool place_write(struct redis_node *node, const struct redis_place *place)
{
    struct weir_bytes bytes = place_bytes(node, place);
    size_t before = place->asking ? sizeof asking_bytes - 1 : 0;
    if (bytes.size == 0)
        return true;
    char *room = redis_connection_room(node->connection, before + bytes.size);
    if (!room) {
        redis_connection_flush(node->connection);
        room = redis_connection_room(node->connection, before + bytes.size);
        if (!room)
            return false;
    }
    memcpy(room, asking_bytes, before);
    memcpy(room + before, bytes.data, bytes.size);
    redis_connection_put(node->connection, before + bytes.size);
    return true;
}

void redis_node_flush(struct redis_node *node)
{
    struct redis_send_queue *queue = &node->send_queue;
    if (node->state != REDIS_NODE_READY || queue->sent == queue->last)
        return;
    if (!redis_send_queue_in_flight(queue))
        node->heard_ms = node_now(node); /* silence counts from the first question */
    while (queue->sent != queue->last && place_write(node, redis_send_queue_at(queue, queue->sent)))
        redis_send_queue_pass(queue);
    node->used_ms = node_now(node);
    redis_connection_flush(node->connection);
}

void redis_node_turn_away(struct redis_node *node)
{
    struct redis_send_queue *queue = &node->send_queue;
    /* From the end of those in flight; what `again` does never comes back to this queue. */
    for (uint32_t turn = queue->sent; turn != queue->last; turn++) {
        struct redis_place *place = redis_send_queue_at(queue, turn);
        struct redis_call *call = place->kind == REDIS_PLACE_CALL ? place->call : NULL;
        place->kind = REDIS_PLACE_GAP;
        place->call = NULL;
        if (call) {
            call->place = NULL;
            redis_client_again(node->client, call, false);
        }
    }
    queue->last = queue->sent;
    node->loading = 0;
}

void redis_node_drain(struct redis_node *node, const char *why)
{
    if (node->state == REDIS_NODE_READY) {
        node->draining = why;
        node->state = REDIS_NODE_DRAINING;
        redis_node_turn_away(node);
    }
}

void redis_node_retire(struct redis_node *node)
{
    struct redis_client *client = node->client;
    if (client->former)
        node_part(client->former); /* it had its time */
    client->former = node;
    redis_node_drain(node, "it is no longer a master");
    redis_node_turn_away(node);
    if (node->state != REDIS_NODE_DRAINING || !redis_send_queue_in_flight(&node->send_queue))
        node_part(node);
}

void redis_node_tick(struct redis_node *node)
{
    uint64_t silence = node_now(node) - node->heard_ms;

    if (node->state != REDIS_NODE_READY && node->state != REDIS_NODE_DRAINING)
        return;
    if (redis_send_queue_in_flight(&node->send_queue)) {
        /* Twice: when this process itself has been stopped, replies may lie in the socket. */
        if (node->silent)
            redis_connection_fail(node->connection, "it has not answered for a second");
        node->silent = silence >= SILENCE_MS;
    } else if (node->state == REDIS_NODE_DRAINING) {
        node_leave(node);
    } else if (silence >= PING_MS &&
               node_push(node, (struct redis_place){.kind = REDIS_PLACE_PING}) == 0) {
        redis_node_flush(node);
    }
}
