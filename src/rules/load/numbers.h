/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as a rules file writes them, and the numbers of a limit. Integers only; nothing is
 * rounded.
 *
 *   rate      N/unit | N/Kunit, each optionally " burst B" | unlimited | plan      100/min burst 20
 *             of a bucket N may have decimals                                      1.67/s
 *   duration  Kunit                                                                30s
 *   size      K, or K and KiB, MiB, GiB, TiB (powers of 1024)                      64MiB
 *   unit      ms s sec min h hour d day w week
 *
 * The numbers of a limit are its `rate`, `quota` or `limit`. They may come from the limit itself,
 * from a plan, or from one caller's override. All three are read and compiled here, so that they
 * mean the same.
 *
 * A limit template is a limit without its numbers: its algorithm and the options of that. It is
 * kept where callers may have overrides.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_LOAD_NUMBERS_H
#define WEIR_RULES_LOAD_NUMBERS_H

#include "rules/compiled.h"

enum weir_rate_kind { WEIR_RATE_COUNT, WEIR_RATE_UNLIMITED, WEIR_RATE_PLAN };

struct weir_rate {
    uint8_t kind;       /* enum weir_rate_kind; the rest is for WEIR_RATE_COUNT */
    uint64_t count;     /* N, 0 included */
    uint64_t window_ns; /* K units, at least 1 ns */
    uint64_t burst;     /* B; 0 when not given */
    uint64_t whole;     /* of a decimal rate, N/unit rounded up: its burst where none is given; the
                           count and the window are those of the whole numbers ("1.67/s": 167 in
                           100 s), which only buckets can take for it; 0: no decimal rate */
};

/* Errors: WEIR_ERR_SYNTAX, or WEIR_ERR_RANGE for a number that no 64 bits hold; `reason` quotes the
 * text and says what is allowed. */
int weir_rate_parse(struct weir_rate *rate, const char *text, size_t size,
                    struct weir_reason *reason) __attribute__((warn_unused_result));

/* The same, and decimals of N: "1.67/s", "0.08/s". */
int weir_rate_parse_decimal(struct weir_rate *rate, const char *text, size_t size,
                            struct weir_reason *reason) __attribute__((warn_unused_result));
int weir_duration_parse(uint64_t *duration_ns, const char *text, size_t size,
                        struct weir_reason *reason) __attribute__((warn_unused_result));
int weir_size_parse(uint64_t *bytes, const char *text, size_t size, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Digits only. Returns the digits read (0: none), or WEIR_ERR_RANGE past 2^64 - 1. */
int weir_digits_parse(uint64_t *value, const char *text, size_t size)
    __attribute__((warn_unused_result));

/* The units of durations and rates: name number `i`, and what it is in nanoseconds. NULL: there is
 * no such number. */
const char *rules_time_unit(uint32_t i, uint64_t *length_ns);

/* The algorithm that a limit chooses by this name (algorithm_words); -1: there is none. */
int rules_algorithm_named(struct weir_bytes name);

/* --- The numbers of a limit ------------------------------------------------------------------- */

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
