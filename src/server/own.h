/* SPDX-License-Identifier: Apache-2.0 */
/* What each service keeps in the daemon for one run. The owner sets it when it opens and clears it
 * when it closes; others reach it by a function of the owner's header (`weir_daemon_…`), which
 * knows the type. So nobody has to know the types of all services.
 *
 * Threads: set by the main thread before workers run, and after they have ended.
 */
#ifndef WEIR_SERVER_OWN_H
#define WEIR_SERVER_OWN_H

struct weir_daemon;

enum weir_own {
    WEIR_OWN_STORE,
    WEIR_OWN_REGIONS,
    WEIR_OWN_STICKY,
    WEIR_OWN_IDENTITIES,
    WEIR_OWN_WEBHOOK,
    WEIR_OWN_STANDING,
    WEIR_OWN_KERNEL,
    WEIR_OWN_PENALTIES,
    WEIR_OWN_NET,
    WEIR_OWN_ADAPTIVE,
    WEIR_OWN_USE,
    WEIR_OWN_DASHBOARD,
    WEIR_OWN_PRESSURE,
    WEIR_OWN_RESERVATIONS,
    WEIR_OWN_ADHOC,
    WEIR_OWN_ENVOY,
    WEIR_OWN_COUNT
};

/* NULL: the service is not open, or keeps nothing by these rules. */
void *weir_own(const struct weir_daemon *daemon, enum weir_own what);
void weir_own_set(struct weir_daemon *daemon, enum weir_own what, void *own);

#endif
