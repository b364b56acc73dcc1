/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/standing/server/daemon.h"

#include <stdio.h>
#include <string.h>

#include "feature/standing/server/api.h"
#include "feature/standing/server/lists_api.h"
#include "feature/standing/server/metrics.h"
#include "feature/standing/server/service.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/daemon/redis_access.h"
#include "server/daemon/services/restart.h"

static int standing_protect(struct weir_daemon *daemon, const struct weir_settings *settings)
{
    struct weir_bans *bans = weir_daemon_standing(daemon)->bans;
    weir_bans_translate(bans, settings->nat64, settings->nat64_count);
    return weir_bans_protect(bans, settings->trusted_proxies, settings->trusted_proxy_count);
}

static int standing_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    uint64_t now_ns = weir_table_time(daemon->table, weir_clock_boot_ns());
    struct weir_standing_lists *lists = NULL;
    if (settings->standing->kinds_count == 0)
        return 0;
    struct weir_standing_service *standing = NULL;
    int err = weir_standing_service_open(&standing, daemon->rules, &daemon->log, daemon->table,
                                         now_ns, reason);
    weir_own_set(daemon, WEIR_OWN_STANDING, standing);
    if (err == 0)
        err = weir_standing_lists_read(&lists, settings->standing, reason);
    if (err == 0)
        err = standing_protect(daemon, settings);
    if (err == 0)
        weir_standing_service_set_lists(weir_daemon_standing(daemon), daemon->rules, lists, now_ns,
                                        weir_clock_wall_ns());
    weir_standing_lists_free(lists);
    return err;
}

static int standing_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                               struct weir_reason *reason)
{
    options->standing = weir_daemon_standing(daemon) ? weir_daemon_standing(daemon)->map : NULL;
    return 0;
}

static int standing_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    return weir_daemon_standing(daemon) ? weir_standing_service_join(weir_daemon_standing(daemon),
                                                                     daemon->admin->loop, reason)
                                        : 0;
}

static int standing_check(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                          struct weir_reason *reason)
{
    const struct weir_standing_settings *settings = weir_rules_settings(rules)->standing;
    struct weir_standing_lists *lists = NULL;
    int err = settings->kinds_count > 0 ? weir_standing_lists_read(&lists, settings, reason) : 0;
    *read = lists;
    return err;
}

/* Whether there is standing, where its history and its map are, and how large the map is. */
static bool standing_differs(const struct weir_standing_settings *old,
                             const struct weir_standing_settings *new)
{
    return (old->kinds_count == 0) != (new->kinds_count == 0) ||
           weir_setting_differs(old->file, new->file) || weir_setting_differs(old->map, new->map) ||
           old->entries_max != new->entries_max;
}

static void standing_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    weir_restart_note(
        daemon, standing_differs(weir_rules_settings(daemon->rules)->standing, settings->standing),
        "standing");
    if (weir_daemon_standing(daemon) && read) {
        weir_standing_service_set_lists(weir_daemon_standing(daemon), rules, read,
                                        weir_worker_time(daemon->admin), weir_clock_wall_ns());
        if (standing_protect(daemon, settings) < 0)
            weir_log_event(&daemon->log, WEIR_LOG_WARNING, "bans_unpublished", "reason",
                           weir_error_text(WEIR_ERR_MEMORY));
    } else if (weir_daemon_standing(daemon)) {
        weir_standing_service_forget_lists(weir_daemon_standing(daemon));
    }
    weir_standing_lists_free(read);
}

static void standing_drop(void *read)
{
    weir_standing_lists_free(read);
}

static void standing_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    if (weir_daemon_standing(daemon))
        weir_standing_service_tick(weir_daemon_standing(daemon), now_ns);
}

static void standing_reopen(struct weir_daemon *daemon)
{
    if (weir_daemon_standing(daemon))
        weir_standing_service_reopen(weir_daemon_standing(daemon));
}

static void standing_say(char *text, size_t room, bool wrong, const char *what)
{
    size_t used = strlen(text);
    if (wrong)
        snprintf(text + used, room - used, "%s %s", strchr(text, ':') ? "," : ":", what);
}

/* Refusals continue by the last known state. */
static void standing_ready(const struct weir_daemon *daemon, char *text, size_t room)
{
    const struct weir_standing_service *standing = weir_daemon_standing(daemon);
    if (!standing)
        return;
    standing_say(text, room, weir_standing_service_stale(standing),
                 "Redis is away: standing is its last known state");
    standing_say(text, room, standing->map_down,
                 "the map of standing cannot be written: other processes have the last one");
    standing_say(text, room, standing->kept.down,
                 "the history of standing takes no changes: they are in force, and wait");
}

static void standing_stop(struct weir_daemon *daemon)
{
    weir_standing_service_stop(weir_daemon_standing(daemon));
}

static void standing_close(struct weir_daemon *daemon)
{
    weir_standing_service_close(weir_daemon_standing(daemon));
    weir_own_set(daemon, WEIR_OWN_STANDING, NULL);
}

static const struct weir_http_route *const standing_routes[] = {
    weir_standing_routes,
    weir_standing_lists_routes,
    NULL,
};

const struct weir_service weir_service_standing = {
    .name = "standing",
    .routes = standing_routes,
    .open = standing_open,
    .start = standing_start,
    .for_worker = standing_for_worker,
    .check = standing_check,
    .apply = standing_apply,
    .drop = standing_drop,
    .tick = standing_tick,
    .reopen = standing_reopen,
    .ready = standing_ready,
    .metrics = weir_standing_metrics,
    .stop = standing_stop,
    .close = standing_close,
};
