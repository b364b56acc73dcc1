/* SPDX-License-Identifier: Apache-2.0 */
/* see moving.h */
#include "feature/region/server/moving.h"

#include "feature/region/rules/region.h"

#define SECOND_NS UINT64_C(1000000000)

void weir_region_log_moving(struct weir_log *log, const struct weir_rules *before,
                            const struct weir_rules *rules)
{
    uint64_t before_ns = 0, wait_ns;
    uint32_t had = before ? weir_rules_moving(before, &before_ns) : 0;
    uint32_t has = weir_rules_moving(rules, &wait_ns);
    struct weir_log_line line;
    if (had == has && before_ns == wait_ns)
        return;
    weir_log_begin(&line, log, WEIR_LOG_INFO, has > 0 ? "homes_moving" : "homes_moved");
    weir_log_number(&line, "limits", has > 0 ? has : had);
    if (has > 0)
        weir_log_number(&line, "wait_seconds", (wait_ns + SECOND_NS - 1) / SECOND_NS);
    weir_log_end(&line);
}
