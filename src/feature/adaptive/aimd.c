/* SPDX-License-Identifier: Apache-2.0 */
/* see aimd.h */
#include "feature/adaptive/aimd.h"

#include "feature/adaptive/key_sample.h"

enum { FRACTION_BITS = 16 };

void weir_aimd_init(struct weir_aimd *aimd, const struct weir_aimd_spec *spec)
{
    uint64_t initial = spec->initial > 0 ? spec->initial : spec->max;
    *aimd = (struct weir_aimd){.limit_q16 = initial << FRACTION_BITS};
}

uint32_t weir_aimd_limit(const struct weir_aimd *aimd)
{
    return (uint32_t)(aimd->limit_q16 >> FRACTION_BITS);
}

static void decrease(struct weir_aimd *aimd, const struct weir_aimd_spec *spec, uint64_t now_ns)
{
    uint64_t least = (uint64_t)spec->min << FRACTION_BITS;
    uint64_t lower = aimd->limit_q16 * spec->decrease_percent / 100;

    aimd->limit_q16 = lower > least ? lower : least;
    aimd->decreased_ns = now_ns;
}

static void increase(struct weir_aimd *aimd, const struct weir_aimd_spec *spec)
{
    uint64_t most = (uint64_t)spec->max << FRACTION_BITS;
    uint64_t step = (uint64_t)spec->increase << FRACTION_BITS; /* of a success, or of a round */
    uint64_t higher =
        aimd->limit_q16 + (spec->per_success ? step : (step << FRACTION_BITS) / aimd->limit_q16);

    aimd->limit_q16 = higher < most ? higher : most;
}

bool weir_aimd_heeds(const struct weir_aimd_spec *spec, uint32_t keys, uint16_t failed)
{
    return keys < WEIR_KEY_LEAST || failed > spec->failing_percent * 100;
}

void weir_aimd_update(struct weir_aimd *aimd, const struct weir_aimd_spec *spec,
                      const struct weir_result *result)
{
    uint64_t began_ns =
        result->now_ns > result->latency_ns ? result->now_ns - result->latency_ns : 0;

    if (result->failed) {
        if (began_ns >= aimd->decreased_ns)
            decrease(aimd, spec, result->now_ns);
    } else if (weir_result_in_use(result, weir_aimd_limit(aimd))) {
        increase(aimd, spec);
    }
}
