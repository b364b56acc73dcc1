/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/penalties/server/daemon.h"

#include "feature/penalties/server/metrics.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

/* They need a history of standing. */
static int penalties_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    uint64_t now_ns = weir_table_time(daemon->table, weir_clock_boot_ns());
    return daemon->standing && weir_standing_service_keeps(daemon->standing)
               ? weir_penalties_open(&daemon->penalties, daemon->standing, daemon->webhook,
                                     daemon->rules, now_ns, reason)
               : 0;
}

static int penalties_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                                struct weir_reason *reason)
{
    if (daemon->penalties) {
        options->strike = weir_penalties_struck;
        options->strike_context = daemon->penalties;
    }
    return 0;
}

/* Strikes of nginx and of programs that use the state file. */
static int penalties_open_ring(struct weir_daemon *daemon)
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    if (!settings->state_file || settings->store.redis.url)
        return 0;
    daemon->ring.penalties = daemon->penalties;
    daemon->ring.standing = daemon->standing;
    daemon->ring.rules = &daemon->rules;
    daemon->ring.table = daemon->table;
    return weir_penalties_ring_open(&daemon->ring, settings->state_file, daemon->admin->loop);
}

/* A count of strikes ends on the main thread's engine, after its move: a weir_penalties_end. */
static bool end_strikes(void *context, const struct weir_strike_count *count, bool moved)
{
    struct weir_daemon *daemon = context;
    return weir_engine_strike_end(daemon->admin->engine, count, moved);
}

static int penalties_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    if (!daemon->penalties)
        return 0;
    weir_penalties_end_by(daemon->penalties, end_strikes, daemon);
    int err = weir_penalties_join(daemon->penalties, daemon->admin->loop, NULL);
    return err < 0 ? err : penalties_open_ring(daemon);
}

static void penalties_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (daemon->penalties)
        weir_penalties_set_rules(daemon->penalties, rules);
}

static void penalties_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    if (daemon->penalties)
        weir_penalties_tick(daemon->penalties, now_ns);
}

static void penalties_stop(struct weir_daemon *daemon)
{
    weir_penalties_stop(daemon->penalties);
}

static void penalties_close(struct weir_daemon *daemon)
{
    weir_penalties_ring_close(&daemon->ring);
    weir_penalties_close(daemon->penalties);
    daemon->penalties = NULL;
}

const struct weir_service weir_service_penalties = {
    .name = "penalties",
    .open = penalties_open,
    .start = penalties_start,
    .for_worker = penalties_for_worker,
    .apply = penalties_apply,
    .tick = penalties_tick,
    .metrics = weir_metrics_of_penalties,
    .stop = penalties_stop,
    .close = penalties_close,
};
