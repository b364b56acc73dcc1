/* SPDX-License-Identifier: Apache-2.0 */
/* see warnings.h */
#include "feature/webhook/server/warnings.h"

#include "server/daemon/clock.h"

void weir_warnings_tell(void *context, const struct weir_warning *warning)
{
    const struct weir_warnings_sink *sink = context;
    char resets_at[WEIR_TIMESTAMP_SIZE];
    struct weir_log_line line;
    weir_clock_timestamp(warning->resets_at_ns, resets_at);
    weir_log_begin_below(&line, sink->log, WEIR_LOG_WARNING, "limit_warning",
                         WEIR_LOG_LINES_PER_SECOND / 2);
    weir_log_bytes(&line, "limit", warning->limit.data, warning->limit.size);
    weir_log_bytes(&line, "key", warning->key.data, warning->key.size);
    weir_log_number(&line, "threshold", warning->percent);
    weir_log_number(&line, "used", (int64_t)warning->used);
    weir_log_number(&line, "capacity", (int64_t)warning->capacity);
    weir_log_bytes(&line, "resets_at", resets_at, sizeof resets_at);
    weir_log_end(&line);
    weir_webhook_post(sink->webhook, warning);
}
