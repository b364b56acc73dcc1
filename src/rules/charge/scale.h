/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: the part of a limit, in percent, that one request may use.
 *
 * Several keywords of a limit may scale it for one request. Each joins its scale, in any order: the
 * smallest counts, and of two equal ones the stricter kind, which is WEIR_SCALE_RATE. The store
 * applies what counts (core/check.h).
 *
 * A rate is `alone` where all that charge a state have it: it is the same for all (adaptive), or
 * the limit's key contains what has it, the caller of a standing or of a score. Of a bucket whose
 * burst it leaves not one request, only such a rate may charge more than the depth (core/scale.h).
 * There it is stricter than any other that is not alone, and counts before a smaller one.
 */
#ifndef WEIR_RULES_CHARGE_SCALE_H
#define WEIR_RULES_CHARGE_SCALE_H

#include "core/check.h"
#include "rules/rules.h"

/* The keywords that scale a limit for a request. */
enum weir_scale_cause {
    WEIR_SCALE_BY_PRIORITY,  /* shed */
    WEIR_SCALE_BY_ADAPTIVE,  /* adaptive */
    WEIR_SCALE_BY_STANDING,  /* by_standing */
    WEIR_SCALE_BY_CLASS,     /* by_class, of the score */
    WEIR_SCALE_BY_CHALLENGE, /* a step with `challenge`, for requests that have not passed one */
    WEIR_SCALE_CAUSES
};

/* What counts of the scales that were joined. All zero: none. */
struct weir_joined_scale {
    uint8_t percent, kind; /* the smallest; percent 0: none */
    uint8_t alone;         /* the smallest of the rates that are alone; 0: none */
};

/* Joins a scale of `percent` (1 to 100; 100 changes nothing); `alone` is of rates only. */
void weir_rules_join_scale(struct weir_joined_scale *joined, uint32_t percent,
                           enum weir_scale_kind kind, bool alone);

/* Gives a check with a limit the scale that counts for that limit. */
void weir_rules_scale_check(struct weir_check *check, const struct weir_joined_scale *joined);

/* Notes which standings and scores a limit's key contains; the limits are compiled. */
void rules_find_alone(struct weir_rules *rules);

/* Whether one caller with a low standing or score can use up a limit for all who share its key,
 * because the key does not contain the caller, and a bucket of the limit is not as deep as one
 * request weighs there. *burst: from which on it is. */
bool weir_rules_one_fills(const struct weir_rules *rules, uint32_t rule, uint64_t *burst);

#endif
