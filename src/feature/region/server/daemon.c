/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/region/server/daemon.h"

#include <stdio.h>

#include "feature/region/rules/region.h"
#include "feature/region/server/lenders.h"
#include "feature/region/server/metrics.h"
#include "feature/region/server/moving.h"
#include "server/daemon/daemon.h"
#include "server/daemon/redis_access.h"
#include "server/daemon/services/restart.h"

static int regions_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_lenders *lenders = NULL;
    int err = weir_lenders_open(&lenders, daemon->rules, &daemon->log, reason);
    weir_own_set(daemon, WEIR_OWN_REGIONS, lenders);
    return err;
}

static int regions_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                              struct weir_reason *reason)
{
    options->lenders = weir_daemon_lenders(daemon);
    return 0;
}

/* A region's part belongs to its own Redis, which a running daemon cannot change. */
static int regions_check(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                         struct weir_reason *reason)
{
    const struct weir_store_settings *from = &weir_rules_settings(daemon->rules)->store;
    const struct weir_store_settings *to = &weir_rules_settings(rules)->store;
    bool stays = !weir_setting_differs(from->redis.url, to->redis.url) &&
                 !weir_setting_differs(from->prefix, to->prefix);
    if (!weir_rules_has_regions(rules) || stays)
        return weir_lenders_check(weir_daemon_lenders(daemon), rules, reason);
    snprintf(reason->text, sizeof reason->text,
             "`regions`: this node has another Redis now, by `self` or `redis`; restart it to "
             "change that");
    return WEIR_ERR_RULES;
}

static void regions_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    weir_restart_note(daemon, !weir_lenders_number(weir_daemon_lenders(daemon), rules), "regions");
    weir_restart_note(daemon, weir_lenders_differ(weir_daemon_lenders(daemon), rules),
                      "regions.redis");
    weir_region_log_moving(&daemon->log, daemon->rules, rules);
}

static void regions_close(struct weir_daemon *daemon)
{
    weir_lenders_close(weir_daemon_lenders(daemon));
    weir_own_set(daemon, WEIR_OWN_REGIONS, NULL);
}

const struct weir_service weir_service_regions = {
    .name = "regions",
    .open = regions_open,
    .for_worker = regions_for_worker,
    .check = regions_check,
    .apply = regions_apply,
    .metrics = weir_region_metrics,
    .close = regions_close,
};
