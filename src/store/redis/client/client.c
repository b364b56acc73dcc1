/* SPDX-License-Identifier: Apache-2.0 */
/* see client.h: where calls go, which calls wait, what a refusal means, where the masters are;
 * events. */
#include "store/redis/client/client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/client_state.h"
#include "store/redis/client/refusal.h"

#define CALLS_MAX 65536
#define CONNECT_MS 1000
#define TICK_MS 250
#define ATTEMPTS_MAX 16                 /* of one call */
#define ATTEMPTS_AT_ONCE 5              /* redirections that are followed without a pause */
#define WAIT_FIRST_NS UINT64_C(2000000) /* doubles with every list: 2 ms to 32 ms */
#define DOWN_AGAIN_MS 5000
/* A server that owns no slot may still be asked (ASK), and may become a master. */
#define UNUSED_MS 10000

/* --- Events ----------------------------------------------------------------------------------- */

static void client_event(struct redis_client *client, enum redis_event event, const char *text)
{
    if (client->options.event && !client->closing)
        client->options.event(client->options.context, event, text);
}

void redis_client_tell_up(struct redis_client *client, const struct redis_node *node)
{
    char address[REDIS_ADDRESS_MAX];
    client->reported_down = false;
    if (!client->reported_up) {
        client->reported_up = true;
        client_event(client, REDIS_EVENT_UP, redis_host_text(address, client, &node->host));
    }
}

void redis_client_tell_down(struct redis_client *client, const char *address, const char *why)
{
    char text[WEIR_REASON_MAX + REDIS_ADDRESS_MAX];
    uint64_t now = uv_now(client->options.loop);

    if (client->ready > 0)
        return;
    snprintf(text, sizeof text, "%s: %s", address, why);
    text[WEIR_REASON_MAX - 1] = '\0';
    if (client->reported_down &&
        (strcmp(text, client->why) == 0 || now - client->reported_ms < DOWN_AGAIN_MS))
        return;
    client->reported_up = false;
    client->reported_down = true;
    client->reported_ms = now;
    memcpy(client->why, text, strlen(text) + 1);
    client_event(client, REDIS_EVENT_DOWN, text);
}

/* --- Calls that wait -------------------------------------------------------------------------- */

static void on_wake(uv_timer_t *timer);

/* Sets the timer to when the first call is due. Each list is in the order of its calls; with the
 * jitter that is nearly the order in which they are due. */
static void wake_set(struct redis_client *client)
{
    uint64_t due = UINT64_MAX, now = uv_hrtime();
    for (unsigned i = 0; i < REDIS_WAIT_LISTS; i++) {
        const struct redis_call *first = client->waiting[i].first;
        due = first && first->due_ns < due ? first->due_ns : due;
    }
    if (due != UINT64_MAX)
        uv_timer_start(&client->wake, on_wake, due > now ? (due - now + 999999) / 1000000 : 0, 0);
}

static void wait_remove(struct redis_client *client, struct redis_call *call)
{
    struct redis_call **first = &client->waiting[call->list].first;
    struct redis_call **last = &client->waiting[call->list].last;
    *(call->previous ? &call->previous->next : first) = call->next;
    *(call->next ? &call->next->previous : last) = call->previous;
}

/* Returns whether the call may wait. */
static bool wait_add(struct redis_client *client, struct redis_call *call)
{
    uint8_t list = call->attempts < REDIS_WAIT_LISTS ? call->attempts : REDIS_WAIT_LISTS - 1;
    uint64_t pause = WAIT_FIRST_NS << list;

    call->due_ns = uv_hrtime() + redis_client_jitter(client, pause / 2, pause);
    if (call->due_ns > call->give_up_ns || call->attempts > ATTEMPTS_MAX)
        return false;
    call->list = list;
    call->place = NULL;
    call->next = NULL;
    call->previous = client->waiting[list].last;
    *(call->previous ? &call->previous->next : &client->waiting[list].first) = call;
    client->waiting[list].last = call;
    client->counters.retries++;
    if (client->waiting[list].first == call)
        wake_set(client);
    return true;
}

/* --- Where calls go --------------------------------------------------------------------------- */

static struct redis_node *node_of(const struct redis_client *client, uint16_t slot)
{
    return client->owners ? client->owners[slot % REDIS_CLUSTER_SLOTS] : client->master;
}

/* Errors: WEIR_ERR_STORE (no server that accepts it), WEIR_ERR_MEMORY. */
static int call_route(struct redis_client *client, struct redis_call *call)
{
    struct redis_node *node = node_of(client, call->cluster_slot);
    return node && redis_node_accepts(node) ? redis_node_send(node, call, false) : WEIR_ERR_STORE;
}

void redis_client_finish(struct redis_client *client, struct redis_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count)
{
    client->calls--;
    call->place = NULL;
    call->done(call, error, nodes, count);
}

void redis_client_again(struct redis_client *client, struct redis_call *call, bool at_once)
{
    call->attempts++;
    if (at_once && call->attempts <= ATTEMPTS_AT_ONCE && call_route(client, call) == 0)
        return;
    if (!wait_add(client, call))
        redis_client_finish(client, call, WEIR_ERR_STORE, NULL, 0);
}

static void on_wake(uv_timer_t *timer)
{
    struct redis_client *client = timer->data;
    uint64_t now = uv_hrtime();

    for (unsigned i = 0; i < REDIS_WAIT_LISTS; i++) {
        struct redis_call *call;
        while ((call = client->waiting[i].first) && call->due_ns <= now) {
            wait_remove(client, call);
            if (call_route(client, call) != 0)
                redis_client_again(client, call, false);
            if (client->closing)
                return;
        }
    }
    wake_set(client);
    redis_client_flush(client);
}

/* No server has named the masters yet, and one may still. */
static bool is_lost_at_first(const struct redis_client *client)
{
    bool asks = client->url.kind == REDIS_CLUSTER || client->url.kind == REDIS_SENTINEL;
    return asks && !client->mapped && !client->refresh.failed;
}

int redis_client_send(struct redis_client *client, struct redis_call *call)
{
    if (client->calls >= client->options.calls_max)
        return WEIR_ERR_FULL;
    call->attempts = 0;
    int error = call_route(client, call);
    if (error == WEIR_ERR_STORE && is_lost_at_first(client) && wait_add(client, call))
        error = 0;
    client->calls += error == 0;
    return error == WEIR_ERR_MEMORY ? WEIR_ERR_FULL : error;
}

void redis_client_flush(struct redis_client *client)
{
    while (client->dirty) {
        struct redis_node *node = client->dirty;
        client->dirty = node->next_dirty;
        node->dirty = false;
        redis_node_flush(node);
    }
}

bool redis_client_forget(struct redis_client *client, struct redis_call *call)
{
    struct redis_node *node = call->place;
    bool certain = true;
    if (!node) {
        wait_remove(client, call);
    } else {
        certain = redis_send_queue_leave(&node->send_queue, call);
        call->place = NULL;
    }
    client->calls -= certain;
    return certain;
}

/* --- Servers of a Cluster, by slot ------------------------------------------------------------ */

static struct redis_node **place_find(struct redis_client *client, const struct redis_host *host)
{
    struct redis_node **empty = NULL;
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node **at = &client->nodes[i];
        if (!*at)
            empty = empty ? empty : at;
        else if (redis_host_equals(&(*at)->host, host))
            return at;
    }
    return empty;
}

/* The server of that address, a new one if it is unknown; NULL: no memory, or too many. */
static struct redis_node *cluster_node(struct redis_client *client, const struct redis_host *host)
{
    struct redis_node **at = place_find(client, host);
    if (at && !*at)
        *at = redis_node_open(client, host);
    return at ? *at : NULL;
}

static void cluster_move(struct redis_client *client, uint16_t slot, struct redis_node *node)
{
    if (client->owners[slot])
        client->owners[slot]->slots--;
    client->owners[slot] = node;
    if (node)
        node->slots++;
}

void redis_client_apply_topology(struct redis_client *client, const struct redis_topology *topology)
{
    struct redis_node *masters[REDIS_MASTERS_MAX] = {NULL};
    bool changed = !client->mapped;
    char text[64];

    for (uint32_t i = 0; i < topology->count; i++)
        masters[i] = cluster_node(client, &topology->masters[i]);
    for (uint32_t slot = 0; slot < REDIS_CLUSTER_SLOTS; slot++) {
        uint16_t owner = topology->owners[slot];
        struct redis_node *node = owner == REDIS_NO_MASTER ? NULL : masters[owner];
        if (client->owners[slot] != node) {
            cluster_move(client, (uint16_t)slot, node);
            changed = true;
        }
    }
    client->mapped = true;
    client->counters.refreshes++;
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node *node = client->nodes[i];
        if (node && node->slots == 0)
            redis_node_turn_away(node); /* what waits for it finds its way by the new map */
    }
    if (changed) {
        snprintf(text, sizeof text, "%u masters", topology->count);
        client_event(client, REDIS_EVENT_TOPOLOGY, text);
    }
}

/* Closes servers that own no slot and have not been used for a while. */
static void cluster_tidy(struct redis_client *client)
{
    uint64_t now = uv_now(client->options.loop);
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node *node = client->nodes[i];
        if (node && node->slots == 0 && node->send_queue.first == node->send_queue.last &&
            now - node->used_ms >= UNUSED_MS) {
            client->nodes[i] = NULL;
            redis_node_close(node);
        }
    }
}

/* --- The master that sentinels name ----------------------------------------------------------- */

/* The master of a group that sentinels watch. A sentinel's answer is followed unless it is older
 * than what is known: a sentinel that is cut off from the others would lead back to a master that
 * has been replaced. The epoch of the group grows with every failover. With no working master any
 * answer is better than none (the sentinels may have been set up anew, with epochs from 0). The
 * server itself is asked whether it is a master, with ROLE, before any call goes there
 * (handshake.c). */
void redis_client_apply_master(struct redis_client *client, const struct redis_host *master,
                               uint64_t epoch)
{
    struct redis_node *before = client->master;
    char address[REDIS_ADDRESS_MAX];

    client->counters.refreshes++;
    client->mapped = true;
    if (before && before->state == REDIS_NODE_READY && epoch < client->epoch)
        return;
    client->epoch = epoch;
    if (before && redis_host_equals(&before->host, master))
        return;
    struct redis_node *node = redis_node_open(client, master);
    if (!node)
        return; /* no memory: the next answer tries again */
    client->master = node;
    if (before) {
        client_event(client, REDIS_EVENT_FAILOVER, redis_host_text(address, client, master));
        redis_node_retire(before);
    }
}

/* --- Refusals --------------------------------------------------------------------------------- */

/* MOVED and ASK. */
static void call_redirect(struct redis_client *client, struct redis_node *node,
                          struct redis_call *call, enum redis_refusal refusal,
                          struct weir_bytes text)
{
    struct redis_host host;
    uint16_t slot;
    struct redis_node *target = NULL;

    client->counters.redirects++;
    if (client->url.kind != REDIS_CLUSTER) {
        redis_connection_fail(node->connection,
                              "it belongs to a Cluster: the URL must begin with redis-cluster://");
    } else if (redis_redirection_read(text, &node->host, &slot, &host) != 0) {
        redis_connection_fail(node->connection, "it redirects to no address");
    } else {
        target = cluster_node(client, &host);
    }
    if (target && refusal == REDIS_REFUSAL_MOVED) {
        cluster_move(client, slot, target);
        redis_topology_refresh_want(client);
    }
    if (!call)
        return;
    if (refusal == REDIS_REFUSAL_ASK && target && call->attempts < ATTEMPTS_AT_ONCE &&
        redis_node_accepts(target)) {
        call->attempts++;
        if (redis_node_send(target, call, true) == 0)
            return;
    }
    redis_client_again(client, call, target && refusal == REDIS_REFUSAL_MOVED);
}

/* NOSCRIPT: the script and the call again, to the same server. */
static void call_reload(struct redis_client *client, struct redis_node *node,
                        struct redis_call *call)
{
    call->attempts++;
    if (call->attempts > ATTEMPTS_AT_ONCE || !redis_node_accepts(node) ||
        redis_node_load(node, call->script) != 0 || redis_node_send(node, call, false) != 0)
        redis_client_again(client, call, false);
}

void redis_client_refused(struct redis_client *client, struct redis_node *node,
                          struct redis_call *call, const struct weir_resp_node *nodes,
                          uint32_t count)
{
    enum redis_refusal refusal = redis_refusal_of(nodes[0].text);

    switch (refusal) {
    case REDIS_REFUSAL_RIGHTS:
        redis_node_drain(node, "it no longer allows us to call scripts");
        if (call)
            redis_client_finish(client, call, 0, nodes, count);
        return;
    case REDIS_REFUSAL_MOVED:
    case REDIS_REFUSAL_ASK:
        call_redirect(client, node, call, refusal, nodes[0].text);
        return;
    case REDIS_REFUSAL_REPLICA:
        redis_node_drain(node, "it is no longer a master");
        redis_topology_refresh_want(client);
        break;
    case REDIS_REFUSAL_DOWN:
        redis_topology_refresh_want(client);
        break;
    case REDIS_REFUSAL_WAIT:
        break;
    case REDIS_REFUSAL_NOSCRIPT:
        if (call && call->script) {
            call_reload(client, node, call);
            return;
        }
        /* fall through */
    default:
        if (call)
            redis_client_finish(client, call, 0, nodes, count);
        return;
    }
    if (call)
        redis_client_again(client, call, false);
}

/* --- Life ------------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer)
{
    struct redis_client *client = timer->data;
    if (!client->nodes) {
        if (client->former)
            redis_node_tick(client->former);
        if (client->master && !client->closing)
            redis_node_tick(client->master);
        return;
    }
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX && !client->closing; i++)
        if (client->nodes[i])
            redis_node_tick(client->nodes[i]);
    if (!client->closing)
        cluster_tidy(client);
}

static void client_free(struct redis_client *client)
{
    redis_handshake_free(&client->handshake);
    weir_tls_unref(client->tls);
    free(client->nodes);
    free(client->owners);
    explicit_bzero(&client->url, sizeof client->url);
    free(client);
}

void redis_client_part_gone(struct redis_client *client)
{
    if (--client->parts > 0)
        return;
    void (*closed)(void *context) = client->closed;
    void *context = client->closed_context;
    client_free(client);
    if (closed)
        closed(context);
}

static void on_timer_closed(uv_handle_t *handle)
{
    redis_client_part_gone(handle->data);
}

static int tls_make(struct redis_client *client, struct weir_reason *reason)
{
    const struct redis_url *url = &client->url;
    struct weir_tls_options options = {
        .cert_file = url->cert_file,
        .key_file = url->key_file,
        .ca_file = url->ca_file,
        .insecure = url->insecure,
    };
    if (url->tls && client->options.tls) {
        client->tls = weir_tls_ref(client->options.tls);
        return 0;
    }
    int error = url->tls ? weir_tls_client(&client->tls, &options, reason) : 0;
    return error == 0 || error == WEIR_ERR_MEMORY ? error : WEIR_ERR_IO;
}

/* Everything that can fail. */
static int client_make(struct redis_client *client, struct weir_reason *reason)
{
    bool cluster = client->url.kind == REDIS_CLUSTER;
    int error = redis_handshake_make(&client->handshake, client);
    if (error == 0)
        error = tls_make(client, reason);
    if (error == 0 && cluster) {
        client->nodes = calloc(REDIS_MASTERS_MAX, sizeof *client->nodes);
        client->owners = calloc(REDIS_CLUSTER_SLOTS, sizeof *client->owners);
        error = !client->nodes || !client->owners ? WEIR_ERR_MEMORY : 0;
    }
    if (error == 0 && (client->url.kind == REDIS_SINGLE || client->url.kind == REDIS_UNIX)) {
        client->master = redis_node_open(client, &client->url.hosts[0]);
        error = !client->master ? WEIR_ERR_MEMORY : 0;
    }
    return error;
}

int redis_client_open(struct redis_client **out, const struct redis_client_options *options,
                      struct weir_reason *reason)
{
    struct redis_client *client = calloc(1, sizeof *client);

    assert(options->script_count <= REDIS_SCRIPTS_MAX);
    reason->text[0] = '\0';
    if (!client)
        return WEIR_ERR_MEMORY;
    client->options = *options;
    client->url = *options->url;
    client->options.url = &client->url;
    if (client->url.server_name)
        snprintf(client->server_name, sizeof client->server_name, "%s", client->url.server_name);
    client->options.calls_max = options->calls_max != 0 ? options->calls_max : CALLS_MAX;
    client->options.connect_ms = options->connect_ms != 0 ? options->connect_ms : CONNECT_MS;
    client->random = options->random_seed;
    int error = client_make(client, reason);
    if (error != 0) {
        client_free(client);
        return error;
    }
    client->parts += 2;
    uv_timer_init(options->loop, &client->tick);
    uv_timer_init(options->loop, &client->wake);
    client->tick.data = client->wake.data = client;
    uv_timer_start(&client->tick, on_tick, TICK_MS, TICK_MS);
    if (client->url.kind == REDIS_CLUSTER || client->url.kind == REDIS_SENTINEL)
        redis_topology_refresh_start(client);
    *out = client;
    return 0;
}

void redis_client_close(struct redis_client *client, void (*closed)(void *context), void *context)
{
    client->closing = true;
    client->closed = closed;
    client->closed_context = context;
    if (client->url.kind == REDIS_CLUSTER || client->url.kind == REDIS_SENTINEL)
        redis_topology_refresh_close(client);
    if (client->master)
        redis_node_close(client->master);
    if (client->former)
        redis_node_close(client->former);
    for (uint32_t i = 0; client->nodes && i < REDIS_MASTERS_MAX; i++)
        if (client->nodes[i])
            redis_node_close(client->nodes[i]);
    uv_close((uv_handle_t *)&client->tick, on_timer_closed);
    uv_close((uv_handle_t *)&client->wake, on_timer_closed);
}

void redis_client_set_tls(struct redis_client *client, struct weir_tls_context *tls)
{
    if (!tls || !client->url.tls)
        return;
    weir_tls_unref(client->tls);
    client->tls = weir_tls_ref(tls);
}

const struct redis_client_counters *redis_client_counters(const struct redis_client *client)
{
    return &client->counters;
}

bool redis_client_ready(const struct redis_client *client, uint16_t slot)
{
    const struct redis_node *node = node_of(client, slot);
    return node && node->state == REDIS_NODE_READY;
}

bool redis_client_is_cluster(const struct redis_client *client)
{
    return client->url.kind == REDIS_CLUSTER;
}
