/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: the part of a limit, in percent, that one request may use.
 *
 * Several keywords of a limit may scale it for one request. Each joins its scale to the limit's
 * checks, in any order: the smallest counts, and of two equal ones the stricter kind, which is
 * WEIR_SCALE_RATE. The store applies what counts (core/check.h).
 */
#ifndef WEIR_RULES_CHARGE_SCALE_H
#define WEIR_RULES_CHARGE_SCALE_H

#include "core/check.h"

/* The keywords that scale a limit for a request. */
enum weir_scale_cause {
    WEIR_SCALE_BY_PRIORITY,  /* shed */
    WEIR_SCALE_BY_ADAPTIVE,  /* adaptive */
    WEIR_SCALE_BY_STANDING,  /* by_standing */
    WEIR_SCALE_BY_CLASS,     /* by_class, of the score */
    WEIR_SCALE_BY_CHALLENGE, /* a step with `challenge`, for requests that have not passed one */
    WEIR_SCALE_CAUSES
};

/* Joins a scale of `percent` (1 to 100; 100 changes nothing) to a check. */
static inline void weir_rules_join_scale(struct weir_check *check, uint32_t percent,
                                         enum weir_scale_kind kind)
{
    if (percent >= 100 || (check->scale != 0 && percent > check->scale))
        return;
    if (percent == check->scale && kind == WEIR_SCALE_RESERVE)
        return;
    check->scale = percent & 0x7f;
    check->scale_kind = kind & 1;
}

#endif
