/* SPDX-License-Identifier: Apache-2.0 */
/* Random decisions through the Redis store beside the core's own, decision for decision: outcomes,
 * reports, and what was charged. In a time that the test gives. */
#ifndef TESTS_STORE_TRACE_H
#define TESTS_STORE_TRACE_H

#include "fake_store.h"
#include "store_rig.h"

struct store_trace {
    struct store_rig *rig;    /* its options name rig->now_ns as the scripts' time */
    struct fake_store *model; /* the core, on plain memory */
    uint64_t random;
    uint64_t times_ns[8]; /* of decisions before, for refunds */
    uint32_t remembered, denied, steps;
};

void store_trace_begin(struct store_trace *trace, struct store_rig *rig, uint64_t seed);
void store_trace_end(struct store_trace *trace);

/* A number below `below`. */
uint64_t store_trace_draw(struct store_trace *trace, uint64_t below);

/* `steps` decisions of one check of `limit`, on three keys that begin with `key`. */
void store_trace_one(struct store_trace *trace, const struct weir_limit *limit, const char *key,
                     uint32_t steps);

/* Decisions of up to four limits, of all operations, policies and flags. */
void store_trace_several(struct store_trace *trace, uint32_t steps);

#endif
