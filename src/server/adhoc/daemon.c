/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/adhoc/daemon.h"

#include <stdlib.h>

#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

/* What the workers' Redis front ends share, too. */
static int adhoc_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    struct weir_table_stats stats;
    weir_table_stats(daemon->table, 0, &stats);
    struct weir_resp_shared *redis = calloc(1, sizeof *redis);
    if (!redis)
        return WEIR_ERR_MEMORY;
    weir_own_set(daemon, WEIR_OWN_ADHOC, redis);
    redis->workers = daemon->workers;
    redis->worker_count = daemon->worker_count;
    redis->started_wall_s = weir_clock_wall_s();
    /* Nodes that ask each other count these limits at each node: no store can fail, so no parts. */
    uint32_t nodes = settings->sticky.by ? 1 : settings->store.nodes;
    return weir_adhoc_limits_open(&redis->limits, (uint32_t)(stats.params_max / 2), daemon->table,
                                  nodes);
}

static void adhoc_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_adhoc_limits_tick(weir_daemon_given_limits(daemon), now_ns);
}

static void adhoc_close(struct weir_daemon *daemon)
{
    weir_adhoc_limits_close(weir_daemon_given_limits(daemon));
    free(weir_daemon_redis(daemon));
    weir_own_set(daemon, WEIR_OWN_ADHOC, NULL);
}

const struct weir_service weir_service_adhoc = {
    .name = "limits of requests",
    .start = adhoc_start,
    .tick = adhoc_tick,
    .close = adhoc_close,
};
