/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/limit.h */
#include <stddef.h>

#include <weir/limit.h>

#include "core/algorithm.h"
#include "core/memory.h"
#include "core/text/reason.h"

const char *weir_algorithm_name(enum weir_algorithm algorithm)
{
    return (unsigned)algorithm < ALGORITHMS ? algorithm_rows[algorithm].name : "unknown";
}

int limit_check_range(const struct limit_range *range, struct weir_reason *reason)
{
    if (range->value >= range->min && range->value <= range->max)
        return 0;
    reason_text(reason, range->field);
    reason_text(reason, " is ");
    reason_number(reason, range->value);
    reason_text(reason, "; the range is ");
    reason_number(reason, range->min);
    reason_text(reason, " to ");
    reason_number(reason, range->max);
    return WEIR_ERR_RANGE;
}

/* Fills in the defaults; what an algorithm has no use for becomes 0. Padding is zero too, so that
 * equal limits are equal bytes. */
static void limit_set_spec(struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    const unsigned traits = algorithm_row(spec->algorithm)->traits;

    memset(limit, 0, sizeof(*limit));
    limit->spec.algorithm = spec->algorithm;
    limit->spec.rate = spec->rate;
    limit->spec.window_ns = spec->window_ns;
    limit->capacity = spec->rate;
    if ((traits & ALGORITHM_BURST) != 0)
        limit->capacity = limit->spec.burst = spec->burst > 0 ? spec->burst : spec->rate;
    if ((traits & ALGORITHM_SEGMENTS) != 0) {
        limit->spec.segments = spec->segments;
        limit->spec.strict = spec->strict;
    }
    if ((traits & ALGORITHM_CALENDAR) != 0) {
        limit->spec.rollover = spec->rollover;
        limit->spec.calendar = spec->calendar;
        limit->spec.bounds = spec->bounds;
        limit->spec.bound_count = spec->bound_count;
    }
}

static int limit_check(const struct weir_limit_spec *spec, struct weir_reason *reason)
{
    const struct algorithm_row *row = algorithm_row(spec->algorithm);
    bool bursts = (row->traits & ALGORITHM_BURST) != 0;
    const struct limit_range ranges[] = {
        {"algorithm", spec->algorithm, 0, ALGORITHMS - 1},
        {"rate", spec->rate, 0, row->rate_max},
        {"window in ns", spec->window_ns, WEIR_WINDOW_MIN_NS, WEIR_WINDOW_MAX_NS},
        {"burst", bursts ? spec->burst : 0, 0, WEIR_BUCKET_MAX},
    };
    int err = 0;

    for (unsigned i = 0; err == 0 && i < sizeof(ranges) / sizeof(ranges[0]); i++)
        err = limit_check_range(&ranges[i], reason);
    return err;
}

int weir_limit_init(struct weir_limit *limit, const struct weir_limit_spec *spec,
                    struct weir_reason *reason)
{
    struct weir_limit made;

    if (reason)
        reason->text[0] = '\0';

    int err = limit_check(spec, reason);

    if (err != 0)
        return err;
    limit_set_spec(&made, spec);
    if (algorithm_of(&made)->init)
        err = algorithm_of(&made)->init(&made, reason);
    if (err == 0)
        memcpy(limit, &made, sizeof(made));
    return err;
}

bool weir_limit_converts(const struct weir_limit *from, const struct weir_limit *to)
{
    const struct weir_limit_spec *a = &from->spec, *b = &to->spec;
    const struct algorithm_upkeep *upkeep = algorithm_upkeep(from);

    if (a->algorithm != b->algorithm)
        return false;
    if (upkeep->converts)
        return upkeep->converts(a, b);
    return algorithm_has(a->algorithm, ALGORITHM_ANY_WINDOW) ||
           (a->window_ns == b->window_ns && a->segments == b->segments && a->strict == b->strict);
}
