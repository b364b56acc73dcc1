/* SPDX-License-Identifier: Apache-2.0 */
/* see use.h */
#include "feature/use/server/use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feature/use/server/edge_sums.h"
#include "feature/use/server/history.h"
#include "feature/use/server/series/series_keeper.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/net/seed.h"

#define S UINT64_C(1000000000)
#define TICK_MS 250
#define PIECE_MS 1 /* between two pieces of a tick */
/* Between two lines about denials that the file lacks. */
#define DROPPED_AGAIN_NS (60 * S)
/* Of the file that an earlier run has left: some thousand denials, in some tenths of a second. */
#define TAIL_BYTES (UINT64_C(4) << 20)

/* --- Denials ---------------------------------------------------------------------------------- */

const struct weir_denial *weir_use_denial(const struct weir_use_service *use, uint64_t sequence)
{
    return sequence >= weir_use_oldest(use) && sequence <= use->denial_last
               ? &use->denials[sequence % WEIR_DENIALS_KEPT]
               : NULL;
}

uint64_t weir_use_oldest(const struct weir_use_service *use)
{
    return use->denial_last < WEIR_DENIALS_KEPT ? 1 : use->denial_last - WEIR_DENIALS_KEPT + 1;
}

static struct weir_denial *keep(struct weir_use_service *use, const struct weir_denial *denial)
{
    struct weir_denial *kept = &use->denials[++use->denial_last % WEIR_DENIALS_KEPT];
    *kept = *denial;
    kept->sequence = use->denial_last;
    return kept;
}

static void write_line(struct weir_use_service *use, const struct weir_denial *denial)
{
    struct weir_denial line = *denial;
    line.sequence = 0; /* a number of this run */
    json_t *json = weir_denial_json(&line);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text)
        (void)weir_denial_file_put(use->file, text, strlen(text)); /* which counts what it drops */
    free(text);
    json_decref(json);
}

bool weir_use_follow(struct weir_use_service *use, struct weir_follower *follower)
{
    if (use->follower_count == WEIR_FOLLOWERS_MAX || !use->running)
        return false;
    follower->next = use->followers;
    use->followers = follower;
    use->follower_count++;
    return true;
}

void weir_use_unfollow(struct weir_use_service *use, struct weir_follower *follower)
{
    for (struct weir_follower **at = &use->followers; *at; at = &(*at)->next) {
        if (*at == follower) {
            *at = follower->next;
            use->follower_count--;
            return;
        }
    }
}

/* Wakes all, or those whose time has come. */
static void wake(struct weir_use_service *use, bool all)
{
    uint64_t now_ns = weir_clock_boot_ns();
    struct weir_follower *next, *list = use->followers;
    use->followers = NULL;
    use->follower_count = 0;
    for (struct weir_follower *at = list; at; at = next) {
        next = at->next;
        if (all || at->until_ns <= now_ns) {
            at->wake(at);
        } else {
            at->next = use->followers;
            use->followers = at;
            use->follower_count++;
        }
    }
}

/* Takes the denials of all workers, oldest first as far as they come in one tick. */
static void take_denials(struct weir_use_service *use)
{
    struct weir_denial denial;
    uint64_t before = use->denial_last;
    size_t node = strlen(use->node);
    for (unsigned i = 0; i < use->observer_count; i++) {
        while (weir_observer_take_denial(use->observers[i], &denial)) {
            memcpy(denial.node, use->node, node);
            denial.node_size = (uint8_t)node;
            weir_totals_denial(&use->totals, &denial);
            struct weir_denial *kept = keep(use, &denial);
            if (use->file)
                write_line(use, kept);
        }
    }
    if (use->followers)
        wake(use, use->denial_last > before);
}

/* --- The tick --------------------------------------------------------------------------------- */

void weir_use_collect(struct weir_use_service *use, uint64_t now_ns)
{
    take_denials(use);
    for (unsigned i = 0; i < use->observer_count; i++) {
        const struct weir_heavy *seen[WEIR_SEEN];
        weir_observer_take(use->observers[i], seen);
        weir_totals_bursts(&use->totals, seen[WEIR_SEEN_BURSTS]);
        weir_totals_places(&use->totals, seen[WEIR_SEEN_PLACES]);
        for (int what = 0; what < WEIR_SEEN_SHOWN; what++)
            use->lost += weir_windows_add(use->seen[what], seen[what], now_ns) < 0;
    }
}

static void log_dropped(struct weir_use_service *use, uint64_t dropped)
{
    struct weir_log_line line;
    if (dropped == use->dropped_logged)
        return;
    weir_log_begin(&line, &use->daemon->log, WEIR_LOG_ERROR, "denials_dropped");
    weir_log_text(&line, "file", use->file_path);
    weir_log_number(&line, "denials", (int64_t)(dropped - use->dropped_logged));
    weir_log_text(&line, "reason",
                  "the file does not have them: its disk is full, slow, or refuses it");
    weir_log_end(&line);
    use->dropped_logged = dropped;
}

/* nginx and libweir have no log of weir's. The first time at once, then once a minute. */
static void tell_edge(struct weir_use_service *use, struct weir_use_edge_news *news, uint64_t count,
                      uint64_t now_ns, const char *event, const char *reason)
{
    struct weir_log_line line;
    if (count < news->count)
        news->count = count; /* it began anew */
    if (count == news->count || now_ns < news->log_ns)
        return;
    weir_log_begin(&line, &use->daemon->log, WEIR_LOG_WARNING, event);
    weir_log_number(&line, "requests", (int64_t)(count - news->count));
    weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
    news->count = count;
    news->log_ns = now_ns + DROPPED_AGAIN_NS;
}

static void watch_edge(struct weir_use_service *use, uint64_t now_ns)
{
    uint64_t failed[WEIR_EDGE_FRONTS];
    if (!use->edge.file)
        return;
    weir_edge_failures(use->edge.file, failed);
    tell_edge(use, &use->unknown, weir_edge_unknown(use->edge.file), now_ns,
              "edge_standing_unknown",
              "nginx or libweir had no map of standing: standing.on_store_error decided");
    tell_edge(use, &use->failed, failed[WEIR_EDGE_LIBRARY] + failed[WEIR_EDGE_NGINX], now_ns,
              "edge_store_failed",
              "the state did not answer nginx or libweir, or they could not open it: "
              "on_store_error of limits decided");
}

/* The first time at once, then once a minute. */
static void watch_file(struct weir_use_service *use, uint64_t now_ns)
{
    if (!use->file || now_ns < use->dropped_log_ns)
        return;
    uint64_t dropped = weir_counted(&weir_denial_file_stats(use->file)->dropped);
    if (dropped != use->dropped_logged)
        use->dropped_log_ns = now_ns + DROPPED_AGAIN_NS;
    log_dropped(use, dropped);
}

/* Writes what waits. What is lost is logged: nobody else will say it. */
static void close_file(struct weir_use_service *use)
{
    if (!use->file)
        return;
    log_dropped(use, weir_denial_file_close(use->file));
    use->file = NULL;
    use->dropped_logged = use->dropped_log_ns = 0;
}

static void on_piece(uv_timer_t *timer)
{
    if (!weir_use_history_step(timer->data))
        uv_timer_stop(timer);
}

static void on_timer(uv_timer_t *timer)
{
    struct weir_use_service *use = timer->data;
    uint64_t now_ns = weir_worker_time(use->daemon->admin);
    take_denials(use);
    if (now_ns / S == use->tick_s) {
        weir_use_history_skip(use);
        return;
    }
    watch_file(use, now_ns);
    watch_edge(use, now_ns);
    weir_use_collect(use, now_ns);
    weir_use_history_tick(use, now_ns);
    weir_series_keeper_tick(use, now_ns / S);
    uv_timer_start(&use->piece, on_piece, PIECE_MS, PIECE_MS);
    use->tick_s = now_ns / S;
}

/* --- Open, close ------------------------------------------------------------------------------ */

static int open_parts(struct weir_use_service *use)
{
    use->denials = calloc(WEIR_DENIALS_KEPT, sizeof *use->denials);
    use->observers = calloc(WEIR_WORKERS_MAX, sizeof *use->observers);
    if (!use->denials || !use->observers)
        return WEIR_ERR_MEMORY;
    static const uint32_t rooms[WEIR_SEEN_SHOWN] = {WEIR_USE_KEYS, WEIR_USE_PLACES,
                                                    WEIR_USE_CALLERS};
    int err = 0;
    for (int what = 0; what < WEIR_SEEN_SHOWN && err == 0; what++) {
        err = weir_windows_open(&use->seen[what], rooms[what]);
        err = err < 0 ? err : weir_heavy_open(&use->read[what], rooms[what]);
    }
    return err < 0 ? err : weir_use_history_open(use);
}

int weir_use_open(struct weir_use_service **out, struct weir_daemon *daemon,
                  struct weir_reason *reason)
{
    struct weir_use_service *use = calloc(1, sizeof *use);
    int err = WEIR_ERR_MEMORY;
    if (use) {
        use->daemon = daemon;
        use->settings.secret[0] = weir_seed_draw(0);
        use->settings.secret[1] = weir_seed_draw(1);
        if (gethostname(use->node, sizeof use->node - 1) < 0)
            use->node[0] = 0;
        err = open_parts(use);
    }
    struct weir_use_limits *limits = NULL;
    if (err == 0)
        err = weir_use_limits_open(&limits, daemon->rules);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        weir_use_close(use);
        return err;
    }
    weir_use_set_rules(use, limits);
    *out = use;
    return 0;
}

int weir_use_add_worker(struct weir_use_service *use, struct weir_worker_options *options,
                        uint64_t seed)
{
    struct weir_observer *observer;
    if (options->index >= WEIR_WORKERS_MAX)
        return 0; /* the admin worker decides nothing */
    int err = weir_observer_open(&observer, &use->settings, seed);
    if (err < 0)
        return err;
    use->observers[use->observer_count++] = observer;
    options->observe = weir_observer_see;
    options->observe_context = observer;
    options->distinct = &use->writing;
    return 0;
}

static void found(void *context, const struct weir_denial *denial)
{
    keep(context, denial);
}

/* Opens the file that the rules name, where it is another than before. */
static int open_file(struct weir_use_service *use, struct weir_reason *reason)
{
    const struct weir_denials_settings *settings =
        &weir_rules_settings(use->daemon->rules)->denials;
    bool same = settings->file && use->file_path && !strcmp(settings->file, use->file_path) &&
                settings->size_bytes == use->file_size && settings->keep_ns == use->file_keep_ns;
    struct weir_denial_file *file = NULL;
    if (same || (!settings->file && !use->file))
        return 0;
    char *path = settings->file ? strdup(settings->file) : NULL;
    if (settings->file) {
        const struct weir_denial_file_options options = {
            .path = settings->file,
            .size_bytes = settings->size_bytes,
            .keep_ns = settings->keep_ns,
        };
        int err = path ? weir_denial_file_open(&file, &options, reason) : WEIR_ERR_MEMORY;
        if (err < 0) {
            free(path);
            return err;
        }
    }
    close_file(use);
    free(use->file_path);
    use->file = file;
    use->file_path = path;
    use->file_size = settings->size_bytes;
    use->file_keep_ns = settings->keep_ns;
    return 0;
}

/* The denials that an earlier run has left in the file. */
static void read_file(struct weir_use_service *use)
{
    struct weir_reason reason;
    uint64_t now_ns = weir_clock_wall_ns();
    struct weir_denial_reading reading = {.found = found, .context = use, .tail_bytes = TAIL_BYTES};
    if (!use->file)
        return;
    reading.filter.since_ns = now_ns > use->file_keep_ns ? now_ns - use->file_keep_ns : 0;
    (void)!weir_denial_file_read(use->file_path, &reading, &reason);
}

int weir_use_start(struct weir_use_service *use, uv_loop_t *loop, struct weir_reason *reason)
{
    int err = open_file(use, reason);
    if (err < 0)
        return err;
    read_file(use);
    weir_series_keeper_start(use);
    weir_use_edge_start(use);
    uv_timer_init(loop, &use->timer);
    uv_timer_init(loop, &use->piece);
    use->timer.data = use->piece.data = use;
    uv_timer_start(&use->timer, on_timer, TICK_MS, TICK_MS);
    use->running = true;
    return 0;
}

void weir_use_set_rules(struct weir_use_service *use, struct weir_use_limits *limits)
{
    struct weir_rules *rules = use->daemon->rules;
    struct weir_reason reason;
    atomic_store_explicit(&use->settings.per_key, weir_rules_settings(rules)->denials.sample,
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&use->settings.generation, 1, memory_order_relaxed);
    weir_use_history_take(use, limits);
    if (use->running && open_file(use, &reason) < 0)
        weir_log_event(&use->daemon->log, WEIR_LOG_ERROR, "denials_file", "reason", reason.text);
}

void weir_use_stop(struct weir_use_service *use)
{
    if (!use || !use->running)
        return;
    take_denials(use);
    wake(use, true);
    use->running = false;
    close_file(use);
    weir_use_history_end(use, weir_worker_time(use->daemon->admin));
    weir_series_keeper_stop(use);
}

void weir_use_reopen(struct weir_use_service *use)
{
    if (use->file)
        weir_denial_file_reopen(use->file);
}

void weir_use_close(struct weir_use_service *use)
{
    if (!use)
        return;
    close_file(use);
    for (unsigned i = 0; i < use->observer_count; i++)
        weir_observer_close(use->observers[i]);
    for (int what = 0; what < WEIR_SEEN_SHOWN; what++) {
        weir_windows_close(use->seen[what]);
        weir_heavy_close(use->read[what]);
    }
    weir_use_limits_free(use->next);
    weir_use_history_close(use);
    weir_use_edge_close(use);
    free(use->file_path);
    free(use->observers);
    free(use->denials);
    free(use);
}
