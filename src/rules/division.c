/* SPDX-License-Identifier: Apache-2.0 */
/* see division.h */
#include "rules/division.h"

#include <stddef.h>

#include "core/bucket.h"

static uint64_t part_of(uint64_t count, uint32_t nodes)
{
    return count > 0 && count < nodes ? 1 : count / nodes;
}

void weir_limit_divide(const struct weir_limit *limit, uint32_t nodes, struct weir_limit *part)
{
    struct weir_limit_spec spec = limit->spec;
    bool bucket = bucket_is(spec.algorithm);
    /* A window beyond the range is left, and N divided: those of months, to which N matters more.
     */
    if (bucket && spec.rate % nodes != 0 && spec.window_ns <= WEIR_WINDOW_MAX_NS / nodes)
        spec.window_ns *= nodes;
    else
        spec.rate = part_of(spec.rate, nodes);
    spec.burst = part_of(spec.burst, nodes);
    spec.rollover /= nodes;
    /* Of those months, a burst that would take longer than the range to refill at the part's rate
     * is cut until it does not. */
    while (weir_limit_init(part, &spec, NULL) < 0 && spec.burst > 1)
        spec.burst /= 2;
    part->name = limit->name;
    part->local = NULL;
}
