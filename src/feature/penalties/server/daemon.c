/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/penalties/server/daemon.h"

#include <stdlib.h>

#include "feature/penalties/server/metrics.h"
#include "feature/standing/server/daemon.h"
#include "feature/webhook/server/daemon.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

/* They need a history of standing. */
static int penalties_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_standing_service *standing = weir_daemon_standing(daemon);
    uint64_t now_ns = weir_table_time(daemon->table, weir_clock_boot_ns());
    struct weir_penalties_run *run = calloc(1, sizeof *run);
    if (!run)
        return WEIR_ERR_MEMORY;
    weir_own_set(daemon, WEIR_OWN_PENALTIES, run);
    return standing && weir_standing_service_keeps(standing)
               ? weir_penalties_open(&run->penalties, standing, weir_daemon_webhook(daemon),
                                     daemon->rules, now_ns, reason)
               : 0;
}

static int penalties_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                                struct weir_reason *reason)
{
    if (weir_daemon_penalties(daemon)) {
        options->strike = weir_penalties_struck;
        options->strike_context = weir_daemon_penalties(daemon);
    }
    return 0;
}

/* Strikes of nginx and of programs that use the state file. */
static int penalties_open_ring(struct weir_daemon *daemon)
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    if (!settings->state_file || settings->store.redis.url)
        return 0;
    struct weir_penalties_run *run = weir_own(daemon, WEIR_OWN_PENALTIES);
    run->ring.penalties = run->penalties;
    run->ring.standing = weir_daemon_standing(daemon);
    run->ring.rules = &daemon->rules;
    run->ring.table = daemon->table;
    return weir_penalties_ring_open(&run->ring, settings->state_file, daemon->admin->loop);
}

/* A count of strikes ends on the main thread's engine, after its move: a weir_penalties_end. */
static bool end_strikes(void *context, const struct weir_strike_count *count, bool moved)
{
    struct weir_daemon *daemon = context;
    return weir_engine_strike_end(daemon->admin->engine, count, moved);
}

static int penalties_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    if (!weir_daemon_penalties(daemon))
        return 0;
    weir_penalties_end_by(weir_daemon_penalties(daemon), end_strikes, daemon);
    int err = weir_penalties_join(weir_daemon_penalties(daemon), daemon->admin->loop, NULL);
    return err < 0 ? err : penalties_open_ring(daemon);
}

static void penalties_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (weir_daemon_penalties(daemon))
        weir_penalties_set_rules(weir_daemon_penalties(daemon), rules);
}

static void penalties_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    if (weir_daemon_penalties(daemon))
        weir_penalties_tick(weir_daemon_penalties(daemon), now_ns);
}

static void penalties_stop(struct weir_daemon *daemon)
{
    weir_penalties_stop(weir_daemon_penalties(daemon));
}

static void penalties_close(struct weir_daemon *daemon)
{
    struct weir_penalties_run *run = weir_own(daemon, WEIR_OWN_PENALTIES);
    if (!run)
        return;
    weir_penalties_ring_close(&run->ring);
    weir_penalties_close(run->penalties);
    free(run);
    weir_own_set(daemon, WEIR_OWN_PENALTIES, NULL);
}

const struct weir_service weir_service_penalties = {
    .name = "penalties",
    .needs = "standing",
    .open = penalties_open,
    .start = penalties_start,
    .for_worker = penalties_for_worker,
    .apply = penalties_apply,
    .tick = penalties_tick,
    .metrics = weir_penalties_metrics,
    .stop = penalties_stop,
    .close = penalties_close,
};
