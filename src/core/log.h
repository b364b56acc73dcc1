/* sliding_log: the admission times in (t - W, t] with their costs; see entries.h for the layout.
 *
 * An entry's expiry is its time + W. Costs of one time merge, and there are never more than N
 * entries: an admitted cost is at least 1, so only debits can find the log full, and they then join
 * the newest entry, which moves to their time. A time before the newest entry is taken for its.
 *
 * Memory: 16 * N + 16 bytes. Edits of a charge: at most 7.
 */
#ifndef WEIR_CORE_LOG_H
#define WEIR_CORE_LOG_H

#include "core/span_change.h"

bool log_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns, uint64_t cost);
void log_charge(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use);
void log_refund(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use);
void log_report(const struct weir_limit *limit, const uint64_t *span, const struct weir_use *use,
                struct weir_report *report);

#endif
