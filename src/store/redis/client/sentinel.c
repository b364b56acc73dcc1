/* SPDX-License-Identifier: Apache-2.0 */
/* The master of a group that sentinels watch; see client_state.h.
 *
 * What a sentinel says is followed unless it is older than what is known: one that is cut off from
 * the others would lead back to a master that has been replaced. The epoch of the group grows with
 * every failover. With no working master any answer is better than none (the sentinels may have
 * been set up anew, with epochs from 0). Whether the server is a master is asked of it, with ROLE,
 * before any call goes there (handshake.c).
 */
#include "store/redis/client/client_state.h"

void redis_sentinel_apply(struct redis_client *client, const struct redis_host *master,
                          uint64_t epoch)
{
    struct redis_node *before = client->master;
    char address[REDIS_ADDRESS_MAX];

    client->counters.refreshes++;
    client->mapped = true;
    if (before != NULL && before->state == REDIS_NODE_READY && epoch < client->epoch)
        return;
    client->epoch = epoch;
    if (before != NULL && redis_host_equals(&before->host, master))
        return;
    struct redis_node *node = redis_node_open(client, master);
    if (node == NULL)
        return; /* no memory: the next answer tries again */
    client->master = node;
    if (before != NULL) {
        redis_client_event(client, REDIS_EVENT_FAILOVER, redis_host_text(address, client, master));
        redis_node_retire(before);
    }
}
