/* SPDX-License-Identifier: Apache-2.0 */
/* Where the warnings of all workers arrive: one line of the log each, and the webhook.
 *
 * Lines of warnings take half of what the log may write in a second at most: many keys may reach a
 * threshold at once. They are counted by the engines, by limit and threshold. Threads: any.
 */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_WARNINGS_H
#define WEIR_FEATURE_WEBHOOK_SERVER_WARNINGS_H

#include "feature/webhook/server/webhook.h"
#include "server/daemon/log.h"

struct weir_warnings_sink {
    struct weir_log *log;
    struct weir_webhook *webhook;
};

/* A weir_engine_warn; `context` is a struct weir_warnings_sink. */
void weir_warnings_tell(void *context, const struct weir_warning *warning);

#endif
