/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h */
#include "cli/replay/state.h"

#include <string.h>
#include <sys/stat.h>

#include "table/table.h"

#define SIZE_START (UINT64_C(8) << 20)           /* most of it fits into a processor's caches */
#define SIZE_MIN (UINT64_C(64) << 20)            /* the server's default */
#define UNKNOWN_TRACE_BYTES (UINT64_C(64) << 20) /* a few hundred thousand requests */
#define LINE_BYTES 64      /* a short line; longer ones make the guess too large */
#define CELL_BYTES 40      /* of the table, for a state that fits into a slot, at 75 % fill */
#define EVENT_BYTES 64     /* the span of a log or of leases: a line adds an event at most */
#define PLAN_SPAN_BYTES 64 /* where the size depends on the plan: a window of a few segments */
#define SPAN_PERCENT_MAX 90
#define STATES_PER_RATE 4 /* its own, its candidate's, a cap's, a penalty's strikes */
#define GROWTH 4
#define USED_PERCENT 50 /* from 75 on keys crowd (table.h) */
#define LOOK_LINES_MIN 64
#define PACKED 10 /* text in a byte of a compressed log */

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

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct replay_state_size replay_state_size(const struct weir_rules *rules, uint64_t given,
                                           uint64_t trace_bytes, uint64_t memory_bytes)
{
    struct replay_state_size size = {.bytes = given, .bytes_max = given};
    uint64_t cells = 0, spans = 0;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        uint32_t rates = info.limit_count > 1 ? info.limit_count : 1;
        size.states += STATES_PER_RATE * rates;
        cells = add(cells, CELL_BYTES * rates);
        spans = add(spans, span_bytes(&info));
    }
    if (spans > 0) {
        uint64_t share = multiply(spans, 100) / add(cells, spans) + 1;
        size.span_percent = share < SPAN_PERCENT_MAX ? (uint32_t)share : SPAN_PERCENT_MAX;
        size.span_bytes = multiply(spans, STATES_PER_RATE);
    }
    if (given > 0)
        return size;
    /* Twice: spans come in size classes. */
    uint64_t keys = trace_bytes / LINE_BYTES + 1;
    uint64_t need = multiply(multiply(add(cells, spans), 2), keys);
    uint64_t most = memory_bytes / 4 > SIZE_MIN ? memory_bytes / 4 : SIZE_MIN;
    most = at_most(most, WEIR_TABLE_BYTES_MAX);
    size.bytes_max = need < SIZE_MIN ? SIZE_MIN : at_most(need, most);
    size.bytes = spans > 0 ? SIZE_MIN : SIZE_START;
    return size;
}

/* Whether the name says that the file is compressed; input.h looks at its bytes. */
static bool is_packed(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".zst") == 0);
}

uint64_t replay_state_trace_bytes(const char *const *files, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        bool known = strcmp(files[i], "-") != 0 && stat(files[i], &status) == 0 &&
                     S_ISREG(status.st_mode) && status.st_size >= 0;
        uint64_t size = known ? (uint64_t)status.st_size : UNKNOWN_TRACE_BYTES;
        sum = add(sum, known && is_packed(files[i]) ? multiply(size, PACKED) : size);
    }
    return sum;
}

/* --- The table -------------------------------------------------------------------------------- */

static struct weir_table_options table_options(const struct replay_state *state, uint64_t bytes,
                                               const uint64_t secret[2])
{
    return (struct weir_table_options){
        .bytes = bytes, .span_percent = state->size.span_percent, .secret = {secret[0], secret[1]}};
}

int replay_state_open(struct replay_state *state, const struct replay_state_size *size,
                      const uint64_t secret[2], struct weir_reason *reason)
{
    *state = (struct replay_state){.size = *size};
    struct weir_table_options options = table_options(state, size->bytes, secret);
    int error = weir_table_open(&state->table, &options, reason);
    if (error == 0)
        error = weir_store_embedded_open(&state->store, state->table);
    return error;
}

void replay_state_close(struct replay_state *state)
{
    if (state->store)
        state->store->ops->close(state->store);
    if (state->table)
        weir_table_close(state->table);
}

/* Moves all states to a table that is larger. */
static int move(struct replay_state *state, uint64_t now_ns, const uint64_t secret[2])
{
    uint64_t bytes = at_most(multiply(state->size.bytes, GROWTH), state->size.bytes_max);
    struct weir_table_options options = table_options(state, bytes, secret);
    struct weir_table_stats stats;
    struct weir_table *larger;
    weir_table_mark(state->table, now_ns);
    options.copy_of = state->table;
    int error = weir_table_open(&larger, &options, NULL);
    if (error < 0)
        return error;
    weir_table_stats(state->table, now_ns, &stats);
    error = weir_store_embedded_move(state->store, larger);
    if (error < 0) {
        weir_table_close(larger);
        return error;
    }
    weir_table_close(state->table);
    state->table = larger;
    state->size.bytes = bytes;
    state->evictions += stats.evictions;
    state->overflows += stats.overflows;
    return 1;
}

bool replay_state_enlarge(struct replay_state *state, const uint64_t secret[2])
{
    return state->size.bytes < state->size.bytes_max && move(state, 0, secret) > 0;
}

/* Lines until so much of `room`, of which `used` is in use, may be taken. */
static uint64_t lines_left(uint64_t room, uint64_t used, uint64_t per_line)
{
    uint64_t most = room / 100 * USED_PERCENT;
    return used >= most ? 0 : (most - used) / (per_line > 0 ? per_line : 1);
}

int replay_state_grow(struct replay_state *state, uint64_t lines, uint64_t now_ns,
                      const uint64_t secret[2])
{
    struct weir_table_stats stats;
    int moved = 0;
    for (;;) {
        if (state->size.bytes >= state->size.bytes_max) {
            state->look_at = UINT64_MAX;
            return moved;
        }
        weir_table_stats(state->table, now_ns, &stats);
        uint64_t left = lines_left(stats.slots, stats.keys, state->size.states);
        if (state->size.span_bytes > 0)
            left = at_most(
                left, lines_left(stats.span_bytes, stats.span_bytes_used, state->size.span_bytes));
        if (left >= LOOK_LINES_MIN) {
            state->look_at = lines + left;
            return moved;
        }
        moved = move(state, now_ns, secret);
        if (moved < 0)
            return moved;
    }
}

void replay_state_stats(const struct replay_state *state, uint64_t now_ns,
                        struct weir_table_stats *stats)
{
    weir_table_stats(state->table, now_ns, stats);
    stats->evictions += state->evictions;
    stats->overflows += state->overflows;
}
