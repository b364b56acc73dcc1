/* SPDX-License-Identifier: Apache-2.0 */
/* Reads where the masters are from replies: CLUSTER SLOTS of a Cluster, a sentinel's answers, and
 * ROLE.
 *
 * Source: redis.io/commands/cluster-slots, /sentinel, /role. CLUSTER SLOTS rather than its
 * successor CLUSTER SHARDS, because Redis 6.2 has it and Redis 8 and Valkey still do. Of each range
 * the first node is its master; replicas and node ids are not kept. A host that is "", "?" or null
 * is the one that was asked.
 *
 * Memory: the caller's; 300 KB for a topology. Pure functions.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_TOPOLOGY_H
#define WEIR_STORE_REDIS_CLIENT_TOPOLOGY_H

#include "store/redis/client/client.h"

/* The Cluster specification advises against more than 1,000 nodes. */
#define REDIS_MASTERS_MAX 1024
#define REDIS_NO_MASTER UINT16_MAX

struct redis_topology {
    uint16_t count;                       /* of masters */
    uint16_t owners[REDIS_CLUSTER_SLOTS]; /* index of the slot's master, or REDIS_NO_MASTER */
    struct redis_host masters[REDIS_MASTERS_MAX];
};

/* Errors: WEIR_ERR_STORE (an error reply: `reason` has its text), WEIR_ERR_SYNTAX (something else
 * than CLUSTER SLOTS answers; an empty map too), WEIR_ERR_TOO_LARGE (more masters). */
int redis_topology_read(struct redis_topology *topology, const struct redis_host *asked,
                        const struct weir_resp_node *nodes, uint32_t count,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* SENTINEL GET-MASTER-ADDR-BY-NAME. Errors: WEIR_ERR_STORE (an error reply), WEIR_ERR_NOT_FOUND
 * (the sentinel has no such group), WEIR_ERR_SYNTAX; with `reason`. */
int redis_master_read(struct redis_host *master, const struct redis_host *asked,
                      const struct weir_resp_node *nodes, uint32_t count,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* The config-epoch in a reply to SENTINEL MASTER: it grows with every failover. Returns 0 where
 * there is none. */
uint64_t redis_epoch_read(const struct weir_resp_node *nodes, uint32_t count);

/* ROLE. Errors: WEIR_ERR_STORE (not a master, or an error reply), WEIR_ERR_SYNTAX; with `reason`.
 */
int redis_role_read(const struct weir_resp_node *nodes, uint32_t count, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
