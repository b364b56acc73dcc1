/* SPDX-License-Identifier: Apache-2.0 */
/* see keys.h; the names of the integrals are those of the paper's section on Zipf. */
#include "cli/bench/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Below it the series are exact to the last bit of a double where the quotients are 0/0. */
#define TAYLOR_MAX 1e-8

/* Uniform in [0, 1). */
static double random_fraction(struct bench_keys *keys)
{
    return (double)(weir_random(&keys->random) >> 11) * 0x1p-53;
}

/* (e^x - 1) / x */
static double exp_quotient(double x)
{
    return fabs(x) > TAYLOR_MAX ? expm1(x) / x : 1 + x / 2;
}

/* ln(1 + x) / x */
static double log_quotient(double x)
{
    return fabs(x) > TAYLOR_MAX ? log1p(x) / x : 1 - x / 2;
}

/* H(x): the integral of t^-s from 1 to x. */
static double integral(const struct bench_keys *keys, double x)
{
    double log_x = log(x);
    return exp_quotient(keys->one_minus_s * log_x) * log_x;
}

static double integral_inverse(const struct bench_keys *keys, double y)
{
    double t = y * keys->one_minus_s;
    return exp(log_quotient(t < -1 ? -1 : t) * y); /* below -1 by rounding only */
}

static void zipf_start(struct bench_keys *keys, double exponent)
{
    keys->s = exponent;
    keys->one_minus_s = 1 - exponent;
    keys->integral_first = integral(keys, 1.5) - 1;
    keys->integral_last = integral(keys, (double)keys->count + 0.5);
    keys->near = 2 - integral_inverse(keys, integral(keys, 2.5) - pow(2, -exponent));
}

static uint64_t zipf_next(struct bench_keys *keys)
{
    for (;;) {
        double u = keys->integral_last +
                   random_fraction(keys) * (keys->integral_first - keys->integral_last);
        double x = integral_inverse(keys, u), k = floor(x + 0.5);
        k = k < 1 ? 1 : k > (double)keys->count ? (double)keys->count : k;
        if (k - x <= keys->near || u >= integral(keys, k + 0.5) - pow(k, -keys->s))
            return (uint64_t)k - 1;
    }
}

bool bench_distribution_parse(const char *text, struct bench_keyspace *space)
{
    static const struct {
        const char *name;
        enum bench_distribution distribution;
    } names[] = {{"uniform", BENCH_UNIFORM},
                 {"zipf", BENCH_ZIPF},
                 {"hot", BENCH_HOT},
                 {"sequential", BENCH_SEQUENTIAL}};
    space->exponent = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i].name) == 0) {
            space->distribution = names[i].distribution;
            return true;
        }
    }
    if (strncmp(text, "zipf:", 5) != 0 || text[5] < '0' || text[5] > '9')
        return false;
    char *end;
    space->distribution = BENCH_ZIPF;
    space->exponent = strtod(text + 5, &end);
    return *end == '\0' && space->exponent > 0 && space->exponent <= BENCH_ZIPF_EXPONENT_MAX;
}

void bench_keys_start(struct bench_keys *keys, const struct bench_keyspace *space, uint64_t seed,
                      unsigned index, unsigned threads)
{
    *keys = (struct bench_keys){.distribution = space->distribution,
                                .count = space->count,
                                .random = seed,
                                .next = index % space->count,
                                .step = threads};
    for (unsigned i = 0; i <= index; i++)
        keys->random = weir_random(&keys->random); /* the streams start far from each other */
    if (space->distribution == BENCH_ZIPF)
        zipf_start(keys, space->exponent);
}

uint64_t bench_keys_next(struct bench_keys *keys)
{
    uint64_t key = 0;
    switch (keys->distribution) {
    case BENCH_UNIFORM:
        return (weir_random(&keys->random) >> 32) * keys->count >> 32;
    case BENCH_ZIPF:
        return zipf_next(keys);
    case BENCH_SEQUENTIAL:
        key = keys->next;
        keys->next = (key + keys->step) % keys->count;
        return key;
    default:
        return key;
    }
}
