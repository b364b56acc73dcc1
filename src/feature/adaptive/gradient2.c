/* SPDX-License-Identifier: Apache-2.0 */
/* see gradient2.h */
#include "feature/adaptive/gradient2.h"

void weir_gradient2_init(struct weir_gradient2 *gradient, const struct weir_gradient2_spec *spec)
{
    *gradient = (struct weir_gradient2){.limit = spec->min};
}

uint32_t weir_gradient2_limit(const struct weir_gradient2 *gradient)
{
    return (uint32_t)gradient->limit;
}

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* The mean of the first windows, then an exponential average. */
static void average(struct weir_gradient2_average *of, double short_ns)
{
    double part;

    if (of->windows < WEIR_GRADIENT2_WARMUP) {
        of->windows++;
        part = 1.0 / of->windows;
    } else {
        part = 2.0 / (WEIR_GRADIENT2_LONG + 1);
    }
    of->long_ns += (short_ns - of->long_ns) * part;
}

static void close_window(struct weir_gradient2 *gradient, const struct weir_gradient2_spec *spec,
                         uint64_t typical_ns)
{
    double mean_ns = (double)gradient->latency_sum_ns / gradient->samples, slope, target;
    double short_ns = typical_ns > 0 ? (double)typical_ns : mean_ns;
    /* A mean is compared with means: the median may differ from it for ever, without a queue. */
    struct weir_gradient2_average *of = &gradient->averages[typical_ns > 0];
    struct weir_result most = {.in_flight = gradient->most_in_flight};

    average(of, short_ns);
    if (of->long_ns > 2 * short_ns)
        of->long_ns *= 0.95;
    gradient->window_end_ns = 0;
    if (!weir_result_in_use(&most, weir_gradient2_limit(gradient)))
        return;
    slope = clamp(WEIR_GRADIENT2_TOLERANCE * of->long_ns / short_ns, 0.5, 1.0);
    target = gradient->limit * slope + WEIR_GRADIENT2_QUEUE;
    gradient->limit =
        clamp(gradient->limit * (1 - WEIR_GRADIENT2_SMOOTHING) + target * WEIR_GRADIENT2_SMOOTHING,
              spec->min, spec->max);
}

void weir_gradient2_update(struct weir_gradient2 *gradient, const struct weir_gradient2_spec *spec,
                           const struct weir_result *result, uint64_t typical_ns)
{
    if (result->latency_ns < WEIR_GRADIENT2_LEAST_NS)
        return;
    if (gradient->window_end_ns == 0) {
        gradient->window_end_ns = result->now_ns + WEIR_GRADIENT2_WINDOW_NS;
        gradient->latency_sum_ns = gradient->samples = gradient->most_in_flight = 0;
    }
    if (__builtin_add_overflow(gradient->latency_sum_ns, result->latency_ns,
                               &gradient->latency_sum_ns))
        gradient->latency_sum_ns = UINT64_MAX;
    gradient->samples++;
    if (result->in_flight > gradient->most_in_flight)
        gradient->most_in_flight = result->in_flight;
    if (result->now_ns >= gradient->window_end_ns && gradient->samples >= WEIR_GRADIENT2_SAMPLES)
        close_window(gradient, spec, typical_ns);
}
