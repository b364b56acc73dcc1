/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/adhoc/daemon.h"

#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

/* What the workers' Redis front ends share, too. */
static int adhoc_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    struct weir_table_stats stats;
    weir_table_stats(daemon->table, 0, &stats);
    daemon->redis.workers = daemon->workers;
    daemon->redis.worker_count = daemon->worker_count;
    daemon->redis.started_wall_s = weir_clock_wall_s();
    /* Nodes that ask each other count these limits at each node: no store can fail, so no parts. */
    uint32_t nodes = settings->sticky.by ? 1 : settings->store.nodes;
    return weir_adhoc_limits_open(&daemon->redis.limits, (uint32_t)(stats.params_max / 2),
                                  daemon->table, nodes);
}

static void adhoc_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_adhoc_limits_tick(daemon->redis.limits, now_ns);
}

static void adhoc_close(struct weir_daemon *daemon)
{
    weir_adhoc_limits_close(daemon->redis.limits);
    daemon->redis.limits = NULL;
}

const struct weir_service weir_service_adhoc = {
    .name = "limits of requests",
    .start = adhoc_start,
    .tick = adhoc_tick,
    .close = adhoc_close,
};
