/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a client, shared by its modules.
 *
 *   client.c            calls: where they go, which wait, what a refusal means; where the masters
 * are node.c              one server: its queue of calls, its connection and the next one
 *   handshake.c         the first commands on a connection
 *   topology_refresh.c  asks some server or sentinel where the masters are
 *
 * They use connection.h (sockets, TLS, replies), send_queue.h (calls in order), topology.h and
 * refusal.h (what replies mean), which know nothing of each other.
 *
 * Time is the loop's (uv_now) in ms, except give_up_ns and what is compared with it.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_CLIENT_STATE_H
#define WEIR_STORE_REDIS_CLIENT_CLIENT_STATE_H

#include "base/random.h"
#include "store/redis/client/handshake.h"
#include "store/redis/client/node.h"
#include "store/redis/client/topology.h"
#include "store/redis/client/topology_refresh.h"

#define REDIS_WAIT_LISTS 5

struct redis_client {
    struct redis_client_options options;
    struct redis_url url;
    char server_name[REDIS_HOST_MAX];
    struct weir_tls_context *tls;
    struct redis_handshake handshake;
    struct redis_client_counters counters;
    uint64_t random;
    uint32_t calls; /* queued, in flight and waiting */
    uint32_t parts; /* nodes, refresh, timers: all end before the client is freed */
    uint32_t ready; /* nodes that are */
    bool closing;
    bool reported_up, reported_down;
    uint64_t reported_ms; /* when DOWN was reported */
    char why[WEIR_REASON_MAX];
    struct redis_node *dirty;
    uv_timer_t tick, wake;
    struct {
        struct redis_call *first, *last;
    } waiting[REDIS_WAIT_LISTS];
    void (*closed)(void *context);
    void *closed_context;

    struct redis_node *master;  /* not of a Cluster */
    struct redis_node *former;  /* the previous master, while it owes replies */
    uint64_t epoch;             /* of the sentinels' last answer that was taken */
    struct redis_node **nodes;  /* of a Cluster: REDIS_MASTERS_MAX, NULL where there is none */
    struct redis_node **owners; /* REDIS_CLUSTER_SLOTS */
    bool mapped;
    struct redis_topology_refresh refresh;
};

/* Evenly within [from, to]. */
static inline uint64_t redis_client_jitter(struct redis_client *client, uint64_t from, uint64_t to)
{
    return from + weir_random_up_to(&client->random, to - from);
}

/* --- Functions of client.c for the modules below it --------------------------------------------
 */

/* A call that was certainly not executed: tries it again, at once or after a pause, if it may. */
void redis_client_again(struct redis_client *client, struct redis_call *call, bool at_once);
void redis_client_finish(struct redis_client *client, struct redis_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count);

/* Acts on an error reply of `node` to a call (NULL: a forgotten one). */
void redis_client_refused(struct redis_client *client, struct redis_node *node,
                          struct redis_call *call, const struct weir_resp_node *nodes,
                          uint32_t count);
void redis_client_tell_up(struct redis_client *client, const struct redis_node *node);

/* Reports DOWN unless another server is ready. */
void redis_client_tell_down(struct redis_client *client, const char *address, const char *why);
void redis_client_part_gone(struct redis_client *client);

/* A Cluster's map of slots was read. */
void redis_client_apply_topology(struct redis_client *client,
                                 const struct redis_topology *topology);

/* A sentinel has named a master. */
void redis_client_apply_master(struct redis_client *client, const struct redis_host *master,
                               uint64_t epoch);

#endif
