/* SPDX-License-Identifier: Apache-2.0 */
/* see part.h */
#include "feature/region/rules/part.h"

#include <stdio.h>

bool rules_fractions_fit(struct rules_fraction each, uint32_t count, struct rules_fraction other)
{
    uint64_t both = (uint64_t)each.denominator * other.denominator;
    uint64_t sum = (uint64_t)count * each.numerator * other.denominator +
                   (uint64_t)other.numerator * each.denominator;
    return sum <= both;
}

struct rules_fraction rules_fraction_rest(struct rules_fraction each, uint32_t count)
{
    uint64_t taken = (uint64_t)count * each.numerator;
    uint32_t left = taken < each.denominator ? each.denominator - (uint32_t)taken : 0;
    return (struct rules_fraction){left, each.denominator};
}

/* Below 2^40 * 10^4, which fits. */
static uint64_t part_of(uint64_t count, struct rules_fraction fraction)
{
    return count * fraction.numerator / fraction.denominator;
}

int rules_limit_part(const struct weir_limit *limit, struct rules_fraction fraction,
                     struct weir_limit *part, struct weir_reason *reason)
{
    struct weir_limit_spec spec = limit->spec;
    bool queue = spec.algorithm == WEIR_LEAKY_QUEUE;
    uint64_t capacity = queue ? spec.burst + 1 : spec.burst;
    uint64_t burst = part_of(capacity, fraction), rate = part_of(spec.rate, fraction);
    /* A burst of 0 would be the default, the rate. */
    bool nothing = (spec.rate > 0 && rate == 0) || (capacity > 0 && burst <= queue);
    if (nothing) {
        snprintf(reason->text, sizeof(reason->text), "%u/%u of %llu is less than %d",
                 fraction.numerator, fraction.denominator,
                 (unsigned long long)(rate == 0 ? spec.rate : capacity),
                 rate != 0 && queue ? 2 : 1);
        return WEIR_ERR_RANGE;
    }
    spec.rate = rate;
    spec.burst = queue ? burst - 1 : burst;
    spec.rollover = part_of(spec.rollover, fraction);
    return weir_limit_init(part, &spec, reason);
}
