/* SPDX-License-Identifier: Apache-2.0 */
/* see sharing.h */
#include "feature/standing/server/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/reason.h"
#include "feature/standing/server/service.h"
#include "server/daemon/redis_access.h"

/* How long a start waits for Redis to be reached, and then for all entries: a million take some
 * seconds. */
#define REACH_MS 2000
#define START_MS 30000

static bool is_log_worthy(const struct weir_standing_sharing *sharing, bool reached)
{
    return !sharing->tried || sharing->reached != reached;
}

/* --- What Redis reports ----------------------------------------------------------------------- */

static void on_secret(void *context, const uint64_t secret[2])
{
    struct weir_standing_sharing *sharing = context;
    struct weir_standing_service *service = sharing->service;
    struct weir_reason reason = {""};
    uint64_t mine[2];

    if (!service->map && weir_standing_service_open_map(service, secret, &reason) < 0) {
        weir_log_event(service->log, WEIR_LOG_ERROR, "standing_map_failed", "reason", reason.text);
        return;
    }
    weir_standing_secret(service->map, mine);
    sharing->foreign = mine[0] != secret[0] || mine[1] != secret[1];
    if (sharing->foreign)
        weir_log_event(service->log, WEIR_LOG_WARNING, "standing_secret_differs", "reason",
                       "this node started without Redis: restart it, or what other nodes hold "
                       "against headers and API keys does not count here");
}

static int on_begin_all(void *context)
{
    struct weir_standing_sharing *sharing = context;

    sharing->entries = 0;
    return sharing->service->map ? weir_standing_begin_all(sharing->service->map) : WEIR_ERR_MEMORY;
}

static void on_entry(void *context, const struct shared_record *record)
{
    struct weir_standing_sharing *sharing = context;

    sharing->entries++;
    if (weir_standing_service_restore(sharing->service, &record->to) < 0)
        sharing->unplaced++;
}

static void on_end_all(void *context, bool good)
{
    struct weir_standing_sharing *sharing = context;
    struct weir_log_line line;

    if (!good) {
        weir_standing_cancel_all(sharing->service->map);
        return;
    }
    weir_standing_end_all(sharing->service->map);
    weir_bans_reset(sharing->service->bans); /* no change says which of them have ended */
    weir_log_begin(&line, sharing->service->log, WEIR_LOG_INFO, "standing_read");
    weir_log_number(&line, "entries", (int64_t)sharing->entries);
    weir_log_end(&line);
}

static void on_change(void *context, const struct shared_record *record)
{
    struct weir_standing_sharing *sharing = context;

    if (weir_standing_service_reported(sharing->service, &record->to, record->removed) < 0)
        sharing->unplaced++;
}

static void on_reached(void *context, bool reached, const char *text)
{
    struct weir_standing_sharing *sharing = context;
    struct weir_log *log = sharing->service->log;

    if (!is_log_worthy(sharing, reached))
        return;
    sharing->tried = true;
    sharing->reached = reached;
    if (reached)
        weir_log_event(log, WEIR_LOG_INFO, "standing_up", "reason", "Redis answers");
    else
        weir_log_event(log, WEIR_LOG_WARNING, "standing_down", "reason", text);
}

/* --- Open, close ------------------------------------------------------------------------------ */

static int join(struct weir_standing_sharing *sharing, uv_loop_t *loop, struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(sharing->rules);
    const struct weir_shared_standing_options options = {
        .loop = loop,
        .url = &sharing->url,
        .prefix = settings->store.prefix,
        .entries_max = settings->standing->entries_max,
        .events = {on_secret, on_begin_all, on_entry, on_end_all, on_change, on_reached, sharing},
        .follow = &sharing->follow,
    };

    return weir_shared_standing_open(&sharing->shared, &options, reason);
}

/* How long to wait for the first answers. */
struct patience {
    uv_timer_t timer; /* first: on_time casts */
    bool over;
};

static void on_time(uv_timer_t *timer)
{
    ((struct patience *)timer)->over = true;
}

/* Runs the loop until all is read, or there is no hope that it will be soon. */
static void read_all(struct weir_standing_sharing *sharing, uv_loop_t *loop,
                     struct patience *patience)
{
    struct weir_shared_standing_stats stats;
    bool reached = false;

    uv_timer_start(&patience->timer, on_time, REACH_MS, 0);
    for (;;) {
        weir_shared_standing_stats(sharing->shared, &stats);
        if (stats.follow.whole || patience->over)
            break;
        if (stats.reached && !reached) {
            reached = true;
            uv_timer_start(&patience->timer, on_time, START_MS, 0);
        }
        uv_run(loop, UV_RUN_ONCE);
    }
    sharing->follow = stats.follow;
    if (!stats.follow.whole)
        standing_follow_forget(&sharing->follow);
    if (!stats.reached)
        on_reached(sharing, false, "Redis cannot be reached; what this node knew last counts");
}

static int start(struct weir_standing_sharing *sharing, struct weir_reason *reason)
{
    uv_loop_t loop;
    struct patience patience = {.over = false};
    int err;

    if (uv_loop_init(&loop) < 0)
        return WEIR_ERR_IO;
    uv_timer_init(&loop, &patience.timer); /* cannot fail */
    err = join(sharing, &loop, reason);
    if (err == 0)
        read_all(sharing, &loop, &patience);
    weir_standing_sharing_stop(sharing->service);
    uv_close((uv_handle_t *)&patience.timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return err;
}

int weir_standing_sharing_open(struct weir_standing_service *service, struct weir_rules *rules,
                               struct weir_reason *reason)
{
    static const uint64_t any[2] = {0, 0};
    struct weir_standing_sharing *sharing = calloc(1, sizeof *sharing);
    int err;

    service->sharing = sharing;
    if (!sharing)
        return WEIR_ERR_MEMORY;
    sharing->service = service;
    sharing->rules = weir_rules_ref_settings(rules);
    err = weir_redis_access_url(&sharing->url, &weir_rules_settings(rules)->store.redis,
                                "store.redis.url", reason);
    if (err == 0)
        err = start(sharing, reason);
    if (err == 0 && !service->map)
        err = weir_standing_service_open_map(service, any, reason);
    return err;
}

int weir_standing_sharing_join(struct weir_standing_service *service, uv_loop_t *loop,
                               struct weir_reason *reason)
{
    struct weir_standing_sharing *sharing = service->sharing;
    int err = join(sharing, loop, reason);

    if (err < 0)
        return err;
    return weir_keeper_open_on(&service->keeper, weir_shared_standing_backend(sharing->shared));
}

bool weir_standing_sharing_fresh(const struct weir_standing_sharing *sharing)
{
    struct weir_shared_standing_stats stats;

    weir_shared_standing_stats(sharing->shared, &stats);
    return stats.reached && stats.follow.whole;
}

void weir_standing_sharing_stop(struct weir_standing_service *service)
{
    weir_shared_standing_close(service->sharing->shared);
    service->sharing->shared = NULL;
}

void weir_standing_sharing_close(struct weir_standing_service *service)
{
    struct weir_standing_sharing *sharing = service->sharing;

    if (!sharing)
        return;
    weir_rules_unref_settings(sharing->rules);
    free(sharing);
    service->sharing = NULL;
}
