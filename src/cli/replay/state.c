/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h */
#include "cli/replay/state.h"

#include <string.h>
#include <sys/stat.h>

#include "table/table.h"

#define SIZE_MIN (UINT64_C(64) << 20)            /* the server's default */
#define UNKNOWN_TRACE_BYTES (UINT64_C(64) << 20) /* a few hundred thousand requests */
#define LINE_BYTES 64      /* a short line; longer ones make the guess too large */
#define CELL_BYTES 40      /* of the table, for a state that fits into a slot, at 75 % fill */
#define EVENT_BYTES 64     /* the span of a log or of leases: a line adds an event at most */
#define PLAN_SPAN_BYTES 64 /* where the size depends on the plan: a window of a few segments */
#define SPAN_PERCENT_MAX 90

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* What a state of a rate takes beside its slot; 0 where it fits into the slot. */
static uint64_t state_bytes(const struct weir_limit *limit)
{
    if (limit->spec.algorithm == WEIR_SLIDING_LOG || limit->spec.algorithm == WEIR_CONCURRENCY)
        return EVENT_BYTES;
    if (limit->span_words > 0)
        return (uint64_t)limit->span_words * sizeof(uint64_t);
    return limit->packs ? 0 : sizeof(struct weir_cell);
}

/* The same of all states of a key of this limit. */
static uint64_t span_bytes(const struct weir_rule_info *info)
{
    uint64_t bytes = info->by_plan ? PLAN_SPAN_BYTES : 0;
    for (uint32_t i = 0; i < info->limit_count; i++)
        bytes = add(bytes, state_bytes(&info->limit[i]));
    return bytes;
}

void replay_state_size(const struct weir_rules *rules, uint64_t given, uint64_t trace_bytes,
                       uint64_t memory_bytes, uint64_t *bytes, uint32_t *span_percent)
{
    uint64_t cells = 0, spans = 0;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        cells = add(cells, CELL_BYTES * (info.limit_count > 1 ? info.limit_count : 1));
        spans = add(spans, span_bytes(&info));
    }
    /* Twice: spans come in size classes. */
    uint64_t keys = trace_bytes / LINE_BYTES + 1;
    uint64_t need = multiply(multiply(add(cells, spans), 2), keys);
    uint64_t most = memory_bytes / 4 > SIZE_MIN ? memory_bytes / 4 : SIZE_MIN;
    if (most > WEIR_TABLE_BYTES_MAX)
        most = WEIR_TABLE_BYTES_MAX;
    *bytes = given > 0 ? given : need < SIZE_MIN ? SIZE_MIN : need < most ? need : most;
    *span_percent = 0;
    if (spans > 0) {
        uint64_t share = multiply(spans, 100) / add(cells, spans) + 1;
        *span_percent = share < SPAN_PERCENT_MAX ? (uint32_t)share : SPAN_PERCENT_MAX;
    }
}

uint64_t replay_state_trace_bytes(const char *const *files, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        bool known = strcmp(files[i], "-") != 0 && stat(files[i], &status) == 0 &&
                     S_ISREG(status.st_mode) && status.st_size >= 0;
        sum = add(sum, known ? (uint64_t)status.st_size : UNKNOWN_TRACE_BYTES);
    }
    return sum;
}
