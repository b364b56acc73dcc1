/* SPDX-License-Identifier: Apache-2.0 */
/* What a key takes of the state, by algorithm and by what it has used: the slot at three quarters
 * full, with what belongs to it, and the span, measured with 1,000 keys each. The table "How large"
 * of docs/state.md has these figures.
 *
 *   bench-state
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/text/siphash.h"
#include "table/submit.h"
#include "table/table.h"

#define KEYS 1000
#define NOW_NS UINT64_C(1700000000000000000)
#define MINUTE UINT64_C(60000000000)
#define BYTES (UINT64_C(256) << 20)

struct use {
    const char *name;
    struct weir_limit_spec spec;
    uint64_t cost;
    uint32_t fills[4]; /* requests of a key; 0: no more */
};

static const struct use uses[] = {
    {"token_bucket, gcra, leaky_bucket", {.algorithm = WEIR_GCRA, .rate = 1000}, 1, {1, 1000}},
    {"fixed_window", {.algorithm = WEIR_FIXED_WINDOW, .rate = 1000}, 1, {1, 1000}},
    {"sliding_window", {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000}, 1, {1, 1000}},
    {"sliding_window, 10 segments",
     {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .segments = 10},
     1,
     {1, 1000}},
    {"sliding_window, 60 segments",
     {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .segments = 60},
     1,
     {1, 1000}},
    {"sliding_log 5/min", {.algorithm = WEIR_SLIDING_LOG, .rate = 5}, 1, {1, 3, 5}},
    {"sliding_log 1000/min", {.algorithm = WEIR_SLIDING_LOG, .rate = 1000}, 1, {1, 60, 300, 1000}},
    {"sliding_log 1000/min, cost 3",
     {.algorithm = WEIR_SLIDING_LOG, .rate = 1000},
     3,
     {1, 60, 300}},
    {"concurrency 100", {.algorithm = WEIR_CONCURRENCY, .rate = 100}, 1, {1, 10, 100}},
    {"quota", {.algorithm = WEIR_QUOTA, .rate = 1000}, 1, {1, 1000}},
};

static void fail(const char *what)
{
    fprintf(stderr, "bench-state: %s\n", what);
    exit(1);
}

static void charge(struct weir_table *table, struct weir_table_owner *owner,
                   const struct weir_limit *limit, uint64_t key, uint64_t cost, uint64_t i)
{
    struct weir_check check = {.limit = limit, .cost = cost, .rule = UINT32_MAX};
    struct weir_outcome outcome;
    struct weir_decision decision = {
        .checks = &check, .outcomes = &outcome, .count = 1, .lease = {i + 1, 0}};
    struct weir_decision *decisions[] = {&decision};

    weir_siphash128(weir_table_secret(table), &key, sizeof key, check.hash);
    weir_table_submit(owner, NOW_NS + i, decisions, 1);
    if (decision.verdict != WEIR_ALLOWED)
        fail("a request was denied");
}

/* Bytes of spans that a key has after so many requests. */
static double measure(const struct use *use, uint32_t requests)
{
    static const uint64_t bounds[2] = {NOW_NS - 1, NOW_NS + MINUTE};
    struct weir_table_options options = {.bytes = BYTES, .span_percent = 50, .secret = {1, 2}};
    struct weir_limit_spec spec = use->spec;
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_table_stats stats;
    struct weir_limit limit;

    spec.window_ns = MINUTE;
    spec.bounds = bounds;
    spec.bound_count = 2;
    if (weir_limit_init(&limit, &spec, NULL) < 0 || weir_table_open(&table, &options, NULL) < 0 ||
        weir_table_intern(table, &limit) < 0 || weir_table_attach(table, &owner) < 0)
        fail("no table");
    for (uint32_t i = 0; i < requests; i++)
        for (uint64_t key = 0; key < KEYS; key++)
            charge(table, owner, &limit, key, use->cost, i);
    weir_table_stats(table, NOW_NS, &stats);
    if (stats.evictions + stats.overflows > 0)
        fail("the table was too small");
    weir_table_detach(owner);
    weir_table_close(table);
    return (double)stats.span_bytes_used / KEYS;
}

/* Bytes of everything but spans, for each key of a table that is three quarters full. */
static double slot_bytes(void)
{
    struct weir_table_options options = {.bytes = UINT64_C(64) << 20, .secret = {1, 2}};
    struct weir_table *table;
    struct weir_table_stats stats;

    if (weir_table_open(&table, &options, NULL) < 0)
        fail("no table");
    weir_table_stats(table, NOW_NS, &stats);
    weir_table_close(table);
    return (double)(stats.bytes - stats.span_bytes) / ((double)stats.slots * 3 / 4);
}

int main(void)
{
    double slot = slot_bytes();

    printf("a slot, with all that belongs to it: %.1f bytes\n\n", slot);
    printf("%-34s %9s %12s %12s\n", "", "requests", "span, bytes", "all, bytes");
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        for (uint32_t k = 0; k < 4 && uses[i].fills[k] > 0; k++) {
            double span = measure(&uses[i], uses[i].fills[k]);

            printf("%-34s %9u %12.0f %12.0f\n", uses[i].name, uses[i].fills[k], span, slot + span);
        }
    return 0;
}
