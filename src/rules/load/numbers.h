/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a limit: what `rate`, `quota` or `limit` says, in a limit of the file, in a plan,
 * or for one caller (an override). All three are read and compiled here, so that they mean the
 * same.
 *
 * A blank is a limit without its numbers: its algorithm and what belongs to that. It is kept where
 * callers may have overrides.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_LOAD_NUMBERS_H
#define WEIR_RULES_LOAD_NUMBERS_H

#include "rules/compiled.h"
#include "rules/load/quantity.h"

/* `rollover` as written. */
struct rules_rollover {
    uint64_t number;
    bool percent; /* of the quota */
};

struct rules_limit_template {
    struct weir_limit_spec spec; /* algorithm, segments, strict; a lease's life; else zeros */
    struct rules_rollover rollover;
};

/* "100/min burst 20", of a quota "10000/month" (then *unit is an enum rules_calendar_unit), of
 * concurrency "5"; unlimited and plan. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE. */
int rules_numbers_parse(uint8_t algorithm, struct weir_bytes text, struct weir_rate *rate,
                        uint8_t *unit, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* "20%", or units up to `most`. Errors: WEIR_ERR_SYNTAX. */
int rules_rollover_parse(struct weir_bytes text, uint64_t most, struct rules_rollover *rollover,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

/* What may come over from the period before, of a quota of `count`. */
uint64_t rules_rollover_of(const struct rules_rollover *rollover, uint64_t count);

/* How long a calendar's unit lasts about: what its quotas have as their window. */
uint64_t rules_unit_ns(uint8_t unit);

/* A rate (not of a quota) into `spec`. Errors: WEIR_ERR_RANGE. */
int rules_numbers_use(const struct weir_rate *rate, struct weir_limit_spec *spec,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Which key of a limit is to blame. */
enum rules_fault {
    RULES_FAULT_NONE,
    RULES_FAULT_RATE,
    RULES_FAULT_LIFE,
    RULES_FAULT_SEGMENTS, /* of the two that don't go together */
    RULES_FAULT_SHARED,   /* segments, where states are in Redis */
};

/* Compiles a spec; `shared`: where its states may be in Redis. */
enum rules_fault rules_numbers_compile(const struct weir_limit_spec *spec, bool shared,
                                       struct weir_limit *limit, struct weir_reason *reason);

/* Whether, of two limits that both count, one never denies what the other admits, however requests
 * come: 1 if it is `a`, 2 if it is `b`; 0: neither. */
int rules_useless(const struct weir_limit *a, const struct weir_limit *b);

#endif
