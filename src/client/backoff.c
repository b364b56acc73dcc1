/* SPDX-License-Identifier: Apache-2.0 */
/* see backoff.h */
#include "client/backoff.h"

#include "base/random.h"

static uint64_t exponential(const struct weir_backoff_spec *spec, uint32_t tries)
{
    double wait = (double)spec->base_ns;

    if (spec->factor == 1)
        return spec->base_ns;
    for (uint32_t i = 1; i < tries && wait < (double)spec->cap_ns; i++)
        wait *= spec->factor;
    return wait < (double)spec->cap_ns ? (uint64_t)wait : spec->cap_ns;
}

static uint64_t decorrelated(const struct weir_backoff_spec *spec, uint64_t previous_ns,
                             uint64_t *seed)
{
    uint64_t from = previous_ns > spec->base_ns ? previous_ns : spec->base_ns;
    uint64_t most = from > spec->cap_ns / 3 ? spec->cap_ns : from * 3;

    return most > spec->base_ns ? spec->base_ns + weir_random_up_to(seed, most - spec->base_ns)
                                : spec->base_ns;
}

uint64_t weir_backoff_wait(const struct weir_backoff_spec *spec, uint32_t tries,
                           uint64_t previous_ns, uint64_t *seed)
{
    uint64_t wait = exponential(spec, tries);

    switch (spec->jitter) {
    case WEIR_CLIENT_JITTER_EQUAL:
        return wait / 2 + weir_random_up_to(seed, wait - wait / 2);
    case WEIR_CLIENT_JITTER_DECORRELATED:
        return decorrelated(spec, previous_ns, seed);
    case WEIR_CLIENT_JITTER_NONE:
        return wait;
    case WEIR_CLIENT_JITTER_FULL:
    default:
        return weir_random_up_to(seed, wait);
    }
}
