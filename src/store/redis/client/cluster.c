/* SPDX-License-Identifier: Apache-2.0 */
/* Servers by slot; see client_state.h. */
#include <stdio.h>
#include <string.h>

#include "store/redis/client/client_state.h"

/* A server that owns no slot may still be asked (ASK), and may become a master. */
#define UNUSED_MS 10000

static struct redis_node **place_find(struct redis_client *client, const struct redis_host *host)
{
    struct redis_node **empty = NULL;
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node **at = &client->nodes[i];
        if (*at == NULL)
            empty = empty != NULL ? empty : at;
        else if (redis_host_equals(&(*at)->host, host))
            return at;
    }
    return empty;
}

struct redis_node *redis_cluster_node(struct redis_client *client, const struct redis_host *host)
{
    struct redis_node **at = place_find(client, host);
    if (at != NULL && *at == NULL)
        *at = redis_node_open(client, host);
    return at != NULL ? *at : NULL;
}

void redis_cluster_move(struct redis_client *client, uint16_t slot, struct redis_node *node)
{
    if (client->owners[slot] != NULL)
        client->owners[slot]->slots--;
    client->owners[slot] = node;
    if (node != NULL)
        node->slots++;
}

void redis_cluster_apply(struct redis_client *client, const struct redis_topology *topology)
{
    struct redis_node *masters[REDIS_MASTERS_MAX] = {NULL};
    bool changed = !client->mapped;
    char text[64];

    for (uint32_t i = 0; i < topology->count; i++)
        masters[i] = redis_cluster_node(client, &topology->masters[i]);
    for (uint32_t slot = 0; slot < REDIS_CLUSTER_SLOTS; slot++) {
        uint16_t owner = topology->owners[slot];
        struct redis_node *node = owner == REDIS_NO_MASTER ? NULL : masters[owner];
        if (client->owners[slot] != node) {
            redis_cluster_move(client, (uint16_t)slot, node);
            changed = true;
        }
    }
    client->mapped = true;
    client->counters.refreshes++;
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node *node = client->nodes[i];
        if (node != NULL && node->slots == 0)
            redis_node_turn_away(node); /* what waits for it finds its way by the new map */
    }
    if (changed) {
        snprintf(text, sizeof text, "%u masters", topology->count);
        redis_client_event(client, REDIS_EVENT_TOPOLOGY, text);
    }
}

void redis_cluster_tidy(struct redis_client *client)
{
    uint64_t now = uv_now(client->options.loop);
    for (uint32_t i = 0; i < REDIS_MASTERS_MAX; i++) {
        struct redis_node *node = client->nodes[i];
        if (node != NULL && node->slots == 0 && node->send_queue.first == node->send_queue.last &&
            now - node->used_ms >= UNUSED_MS) {
            client->nodes[i] = NULL;
            redis_node_close(node);
        }
    }
}
