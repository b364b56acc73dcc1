/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties, and the strikes of other processes, in the life of the daemon. */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_DAEMON_H
#define WEIR_FEATURE_PENALTIES_SERVER_DAEMON_H

#include "feature/penalties/server/penalties.h"
#include "feature/penalties/server/ring.h"
#include "server/own.h"
#include "server/service.h"

struct weir_penalties_run {
    struct weir_penalties *penalties; /* NULL: standing has no history */
    struct weir_penalties_ring ring;  /* of other processes; .penalties NULL: none */
};

extern const struct weir_service weir_service_penalties;

/* NULL: standing has no history. */
static inline struct weir_penalties *weir_daemon_penalties(const struct weir_daemon *daemon)
{
    const struct weir_penalties_run *run = weir_own(daemon, WEIR_OWN_PENALTIES);
    return run ? run->penalties : NULL;
}

#endif
