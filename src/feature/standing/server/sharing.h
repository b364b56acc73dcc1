/* SPDX-License-Identifier: Apache-2.0 */
/* The standing service of a node whose store is Redis: puts what Redis reports into the map.
 *
 *   start    reads all, for up to START_MS where Redis can be reached; else what the map of the
 *            node's last run holds is in force until Redis is there
 *   then     follows on the control loop (redis/shared.h)
 *
 * The ids of exact values are made with the secret that Redis has. A node that started without
 * Redis and without a map made its own: until it is restarted, entries of secret kinds (headers,
 * API keys) that other nodes make do not count here, which is logged and counted.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_SHARING_H
#define WEIR_FEATURE_STANDING_SERVER_SHARING_H

#include "feature/standing/server/redis/shared.h"
#include "rules/rules.h"

struct weir_standing_service;

struct weir_standing_sharing {
    struct weir_standing_service *service;
    struct weir_rules *rules; /* hold the texts of the settings */
    struct redis_url url;
    struct weir_shared_standing *shared; /* NULL: not on a loop now */
    struct standing_follow follow;       /* what was known when it left the last loop */
    bool reached;                        /* as was logged last */
    bool tried;                          /* whether it can be reached has been logged */
    bool foreign;                        /* the map's secret is not that of Redis */
    uint64_t entries;                    /* read by the present reading */
    uint64_t unplaced;                   /* read, but not in force here: no room, or no id */
};

/* Reads all from the Redis of the rules, and opens the service's map: with the secret of Redis, or
 * else that of the node's last run. Waits as described above. Errors: those of
 * weir_standing_create, redis_client_open and weir_redis_access_url. */
int weir_standing_sharing_open(struct weir_standing_service *service, struct weir_rules *rules,
                               struct weir_reason *reason) __attribute__((warn_unused_result));

/* Follows from now on, on this loop, and does the jobs of the service's keeper. Errors: as
 * redis_client_open. */
int weir_standing_sharing_join(struct weir_standing_service *service, uv_loop_t *loop,
                               struct weir_reason *reason) __attribute__((warn_unused_result));
/* Whether what is in force is what Redis has, as far as is known. */
bool weir_standing_sharing_fresh(const struct weir_standing_sharing *sharing);
/* Before the loop is closed. */
void weir_standing_sharing_stop(struct weir_standing_service *service);
/* After it. */
void weir_standing_sharing_close(struct weir_standing_service *service);

#endif
