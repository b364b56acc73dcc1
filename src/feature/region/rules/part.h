/* SPDX-License-Identifier: Apache-2.0 */
/* A region's part of a limit: what its own Redis admits of a budget that regions share.
 *
 * A part is a fraction of the capacity, of the rate and of what rolls over, each rounded down. The
 * bound of every algorithm over any window is linear in these, and a state is in one Redis, so
 * parts whose fractions add up to at most 1 admit together at most what the whole limit would. A
 * queue admits B + 1 at once, so B + 1 is divided there. Windows keep their length.
 *
 * Unlike a node's part (division.h), a part is never rounded up to 1: the sum would be more than
 * the limit.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_REGION_RULES_PART_H
#define WEIR_FEATURE_REGION_RULES_PART_H

#include <stdbool.h>
#include <weir/limit.h>

#define RULES_FRACTION_MAX 10000 /* of numerator and denominator: percent with two decimals */

/* At most 1; denominator above 0. */
struct rules_fraction {
    uint32_t numerator, denominator;
};

/* Whether `count` times a fraction, and another, are at most 1 together. */
bool rules_fractions_fit(struct rules_fraction each, uint32_t count, struct rules_fraction other);

/* 1 - count * each; both then have a numerator of 0 where nothing is left. */
struct rules_fraction rules_fraction_rest(struct rules_fraction each, uint32_t count);

/* Fills `part`, compiled anew; its name is NULL. A limit of rate 0 has parts of rate 0.
 * Errors: WEIR_ERR_RANGE (a number of the part would be 0 where the limit's is not, or the part is
 * out of the range of its algorithm; `reason` says which). */
int rules_limit_part(const struct weir_limit *limit, struct rules_fraction fraction,
                     struct weir_limit *part, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
