/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for the tests of what writes them. */
#ifndef ANSWER_MAKE_H
#define ANSWER_MAKE_H

#include "core/bytes.h"
#include "unit_wire.h"

#include "core/answer.h"

#define SECOND UINT64_C(1000000000)

/* Limits of the answers made; as many as an answer may hold. */
struct answer_limits {
    struct weir_limit limits[WEIR_CHECKS_MAX];
};

static inline void answer_start(struct weir_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->allowed = true;
    answer->denied_by = -1;
}

/* Adds a limit of N per W with a report whose figures the caller sets. */
static inline struct weir_answer_limit *answer_add(struct weir_answer *answer,
                                                   struct answer_limits *limits, const char *name,
                                                   enum weir_algorithm algorithm, uint64_t rate,
                                                   uint64_t window_ns)
{
    struct weir_limit *limit = &limits->limits[answer->count];
    struct weir_answer_limit *entry = &answer->limits[answer->count++];
    memset(limit, 0, sizeof *limit);
    limit->spec.algorithm = algorithm;
    limit->spec.rate = rate;
    limit->spec.window_ns = window_ns;
    limit->capacity = rate;
    entry->name = weir_bytes_of(name);
    entry->limit = limit;
    entry->allowed = true;
    entry->cost = 1;
    entry->report.limit = rate;
    return entry;
}

/* Adds one of several rates to the limit that was added last; returns it. */
static inline struct weir_answer_rate *answer_add_rate(struct weir_answer *answer,
                                                       const struct weir_limit *limit)
{
    struct weir_answer_limit *entry = &answer->limits[answer->count - 1];
    struct weir_answer_rate *rate;
    if (entry->rate_count == 0 && answer->count > 1) {
        const struct weir_answer_limit *before = entry - 1;
        entry->first_rate =
            (uint8_t)(before->first_rate + (before->rate_count > 0 ? before->rate_count : 1));
    }
    rate = &answer->rates[entry->first_rate + entry->rate_count++];
    rate->limit = limit;
    rate->allowed = true;
    return rate;
}

#endif
