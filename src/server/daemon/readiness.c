/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this node can do its work: what /readyz and gRPC's health tell. See daemon.h. */
#include "server/daemon/readiness.h"

#include "feature/envoy/server/call.h"
#include "feature/envoy/server/daemon.h"
#include "feature/identity/server/daemon.h"
#include "feature/identity/server/directories.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

/* Whether a limit denies what the store does not decide: then this node is no good without it. */
static bool fails_closed(const struct weir_rules *rules)
{
    bool closed = false;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        closed = closed || info.on_store_error == WEIR_FAIL_CLOSED;
    }
    return closed;
}

void weir_daemon_readiness(const struct weir_daemon *daemon, const struct weir_rules *rules,
                           struct weir_readiness *readiness)
{
    struct weir_shared_totals store = {.workers = 0};
    if (weir_daemon_shared(daemon))
        weir_shared_store_totals(weir_daemon_shared(daemon), &store);
    readiness->workers = store.workers;
    readiness->without_store = store.workers - store.up;
    struct weir_directories_totals identities = {.workers = 0};
    if (weir_daemon_directories(daemon))
        weir_directories_totals(weir_daemon_directories(daemon), &identities);
    readiness->without_identities = identities.workers - identities.up;
    bool reached = readiness->without_store == 0;
    readiness->stopped = weir_daemon_shared(daemon) ? 0 : weir_table_stopped(daemon->table);
    bool held = readiness->stopped != 0; /* whatever on_store_error says */
    readiness->envoy = !weir_daemon_envoy(daemon) ||
                       (!held && (reached || !weir_envoy_fails_without(weir_daemon_envoy(daemon))));
    readiness->limits = (!held || weir_rules_count(rules) == 0) &&
                        (reached || !fails_closed(rules)) &&
                        (readiness->without_identities == 0 || !identities.deny);
}
