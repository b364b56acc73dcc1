/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook and the log of warnings, in the life of the daemon. */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_DAEMON_H
#define WEIR_FEATURE_WEBHOOK_SERVER_DAEMON_H

#include "feature/webhook/server/warnings.h"
#include "server/own.h"
#include "server/service.h"

extern const struct weir_service weir_service_webhook;

/* NULL: it is not open. */
static inline struct weir_webhook *weir_daemon_webhook(const struct weir_daemon *daemon)
{
    const struct weir_warnings_sink *warnings = weir_own(daemon, WEIR_OWN_WEBHOOK);
    return warnings ? warnings->webhook : NULL;
}

#endif
