/* SPDX-License-Identifier: Apache-2.0 */
/* What was done to the state file version1.state.gz, by weir as of commit 3e9eada
 * (256 KiB, 30 % for spans, secret {3, 4}): every algorithm, states with and without a span, debts,
 * refunds, leases, keys that are denied, logs with costs above 1, logs as full as they can be. */
#ifndef VERSION1_KEYS_H
#define VERSION1_KEYS_H

#include "../table_test.h"

#define V1_DAY (1440 * MINUTE)
#define V1_END (START + 2 * SECOND) /* the latest time that was marked */
#define V1_KEYS_EACH 24

static const uint64_t v1_bounds[2] = {1698000000000000000, 1701000000000000000};

#define V1_LIMITS 16
static const struct weir_limit_spec v1_specs[V1_LIMITS] = {
    {.algorithm = WEIR_GCRA, .rate = 10, .window_ns = V1_DAY},
    {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = V1_DAY, .burst = 3},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 100, .window_ns = V1_DAY, .burst = 4},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = (UINT64_C(1) << 39) - 7, .window_ns = SECOND + 1},
    {.algorithm = WEIR_LEAKY_BUCKET, .rate = 3, .window_ns = V1_DAY},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = V1_DAY, .burst = 5},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = V1_DAY},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MINUTE},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = V1_DAY},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MINUTE},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = V1_DAY, .segments = 60},
    {.algorithm = WEIR_SLIDING_WINDOW,
     .rate = 9,
     .window_ns = MINUTE,
     .segments = 4,
     .strict = true},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 8, .window_ns = V1_DAY},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 40, .window_ns = MINUTE},
    {.algorithm = WEIR_CONCURRENCY, .rate = 4, .window_ns = MINUTE},
    {.algorithm = WEIR_QUOTA,
     .rate = 20,
     .window_ns = 30 * V1_DAY,
     .rollover = 5,
     .calendar = 9,
     .bounds = v1_bounds,
     .bound_count = 2},
};

/* The keys of limit `i` are i * 100 .. i * 100 + V1_KEYS_EACH - 1. */
static inline uint64_t v1_key(uint32_t limit, uint32_t i)
{
    return limit * 100 + i;
}

static inline void v1_use(struct weir_table *table, struct weir_table_owner *owner,
                          const struct weir_limit *limit, const struct weir_use *use, uint64_t key,
                          enum weir_op op)
{
    struct one one;

    begin_one(&one);
    add_check(&one, table, limit, key, use->cost);
    one.decision.op = (uint8_t)op;
    one.decision.charged_at_ns = use->charged_at_ns;
    one.decision.lease = use->lease;
    submit_one(owner, &one, use->now_ns);
}

/* Twelve rounds in two seconds. */
static inline void v1_play(struct weir_table *table, struct weir_table_owner *owner,
                           const struct weir_limit limits[V1_LIMITS])
{
    uint64_t random = 77, last_ns = START, lease = 0;

    for (uint32_t round = 0; round < 12; round++)
        for (uint32_t i = 0; i < V1_LIMITS; i++)
            for (uint32_t k = 0; k < V1_KEYS_EACH; k++) {
                uint64_t draw = next_random(&random);
                enum weir_op op = draw % 16 == 0   ? WEIR_OP_DEBIT
                                  : draw % 16 == 1 ? WEIR_OP_REFUND
                                                   : WEIR_OP_DECIDE;
                struct weir_use use = {.now_ns = START + round * 150 * MS + draw / 16 % 8 * MS,
                                       .cost = draw / 256 % 8 < 6 ? 1 : 3,
                                       .charged_at_ns = last_ns,
                                       .lease = {++lease, 1 + draw / 4096 % 3}};

                if (op == WEIR_OP_REFUND && limits[i].spec.algorithm == WEIR_CONCURRENCY)
                    use.lease.id -= (uint64_t)V1_LIMITS * V1_KEYS_EACH;
                if (draw / 16384 % 4 < 3)
                    v1_use(table, owner, &limits[i], &use, v1_key(i, k), op);
                last_ns = k == 0 ? use.now_ns : last_ns;
            }
}

#endif
