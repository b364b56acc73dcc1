/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/sticky/server/daemon.h"

#include <stdio.h>
#include <string.h>

#include "core/text/reason.h"
#include "feature/sticky/server/metrics.h"
#include "feature/sticky/server/sticky_peers.h"
#include "server/daemon/daemon.h"
#include "server/daemon/redis_access.h"

static int sticky_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_sticky_peers *sticky = NULL;
    int err = weir_sticky_peers_open(&sticky, daemon->rules, &daemon->log, reason);
    weir_own_set(daemon, WEIR_OWN_STICKY, sticky);
    return err;
}

static int sticky_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason)
{
    options->sticky = weir_daemon_sticky(daemon);
    return 0;
}

/* What chooses the node of a key, and whether nodes are asked at all, changes with all nodes. The
 * list of nodes may change, but not which of them this one is. */
static int sticky_compare(const struct weir_sticky_settings *from,
                          const struct weir_sticky_settings *to, struct weir_reason *reason)
{
    if (weir_setting_differs(from->by, to->by)) {
        reason_text(reason,
                    !from->by ? "`sticky` is new; restart weir to ask other nodes"
                    : !to->by ? "`sticky` was removed; restart weir to count all keys here"
                              : "`sticky`: `by` has changed, so keys have other homes; restart all "
                                "nodes to change that");
        return WEIR_ERR_RULES;
    }
    if (!from->by || !strcmp(from->peers[from->self].name, to->peers[to->self].name))
        return 0;
    snprintf(reason->text, sizeof reason->text,
             "`sticky`: `self` was %s and is %s: this node would count the keys of another one; "
             "restart it to change that",
             from->peers[from->self].name, to->peers[to->self].name);
    return WEIR_ERR_RULES;
}

static int sticky_check(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                        struct weir_reason *reason)
{
    struct weir_sticky_list *list = NULL;
    int err = sticky_compare(&weir_rules_settings(daemon->rules)->sticky,
                             &weir_rules_settings(rules)->sticky, reason);
    if (err == 0)
        err = weir_sticky_list_read(&list, rules, reason);
    *read = list;
    return err;
}

/* Before the rules: workers take both at once. */
static void sticky_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (read && weir_sticky_peers_set(weir_daemon_sticky(daemon), read) < 0) {
        weir_log_event(&daemon->log, WEIR_LOG_ERROR, "peers_failed", "reason", "out of memory");
        weir_sticky_list_unref(read);
    }
}

static void sticky_drop(void *read)
{
    weir_sticky_list_unref(read);
}

static void sticky_close(struct weir_daemon *daemon)
{
    weir_sticky_peers_close(weir_daemon_sticky(daemon));
    weir_own_set(daemon, WEIR_OWN_STICKY, NULL);
}

const struct weir_service weir_service_sticky = {
    .name = "sticky",
    .open = sticky_open,
    .for_worker = sticky_for_worker,
    .check = sticky_check,
    .apply = sticky_apply,
    .drop = sticky_drop,
    .metrics = weir_sticky_metrics,
    .close = sticky_close,
};
