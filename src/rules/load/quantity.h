/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as a rules file writes them: rates, durations, sizes. Integers only, nothing rounded.
 *
 *   rate      N/unit | N/Kunit, each optionally " burst B" | unlimited | plan      100/min burst 20
 *   duration  Kunit                                                                30s
 *   size      K, or K and KiB, MiB, GiB, TiB (powers of 1024)                      64MiB
 *   unit      ms s sec min h hour d day w week
 */
#ifndef WEIR_RULES_LOAD_QUANTITY_H
#define WEIR_RULES_LOAD_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

enum weir_rate_kind { WEIR_RATE_COUNT, WEIR_RATE_UNLIMITED, WEIR_RATE_PLAN };

struct weir_rate {
    uint8_t kind;       /* enum weir_rate_kind; the rest is for WEIR_RATE_COUNT */
    uint64_t count;     /* N, 0 included */
    uint64_t window_ns; /* K units, at least 1 ns */
    uint64_t burst;     /* B; 0 when not given */
};

/* Errors: WEIR_ERR_SYNTAX, or WEIR_ERR_RANGE for a number that no 64 bits hold; `reason` quotes the
 * text and says what is allowed. */
int weir_rate_parse(struct weir_rate *rate, const char *text, size_t size,
                    struct weir_reason *reason) __attribute__((warn_unused_result));
int weir_duration_parse(uint64_t *duration_ns, const char *text, size_t size,
                        struct weir_reason *reason) __attribute__((warn_unused_result));
int weir_size_parse(uint64_t *bytes, const char *text, size_t size, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Digits only. Returns the digits read (0: none), or WEIR_ERR_RANGE past 2^64 - 1. */
int weir_digits_parse(uint64_t *value, const char *text, size_t size)
    __attribute__((warn_unused_result));

#endif
