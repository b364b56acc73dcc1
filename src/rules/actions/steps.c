/* SPDX-License-Identifier: Apache-2.0 */
/* see steps.h */
#include "rules/actions/steps.h"

#include "core/bucket.h"
#include "rules/compiled.h"

const struct weir_steps *weir_rules_steps(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_rule *r = &rules->rules[rule];
    return r->flags & WEIR_CHECK_SHADOW ? NULL : r->steps;
}

bool weir_rules_acts(const struct weir_rules *rules)
{
    return rules->acts;
}

/* What is owed is rounded up to whole nanoseconds, and so is the step: a bucket that is used up to
 * the step, and no further, delays nothing. */
uint64_t weir_step_drain_ns(const struct weir_limit *limit, uint8_t percent, uint64_t owed_ns)
{
    struct wide units = wide_multiply(limit->depth_ns, percent);
    uint64_t rest, part_rest;
    /* percent * depth_rem / denom, below 100 */
    struct wide part = wide_multiply(limit->depth_rem, percent);
    uint64_t more = wide_divide(part.hi, part.lo, limit->denom, &part_rest);
    units = wide_add(units, more);
    uint64_t step_ns = wide_divide(units.hi, units.lo, 100, &rest);
    step_ns += rest != 0 || part_rest != 0;
    return owed_ns > step_ns ? owed_ns - step_ns : 0;
}
