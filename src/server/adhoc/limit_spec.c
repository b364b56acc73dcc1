/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_spec.h */
#include "server/adhoc/limit_spec.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/bucket.h"
#include "core/bytes.h"
#include "core/text/hex.h"
#include "rules/load/numbers.h"
#include "rules/problems.h"
#include "wire/decimal.h"

#define LIFE_DEFAULT_NS (UINT64_C(30) * 1000000000) /* as in the rules file */
#define BUCKETS "token_bucket, gcra and leaky_bucket"

/* --- Fields ----------------------------------------------------------------------------------- */

struct reading {
    const struct weir_given_limit *from;
    struct weir_limit_spec *spec;
    enum weir_limit_field *field;
    struct weir_reason *reason;
};

static bool given(const struct reading *reading, enum weir_limit_field field)
{
    return (reading->from->given >> field & 1) != 0;
}

static int wrong(const struct reading *reading, enum weir_limit_field field, const char *text)
{
    *reading->field = field;
    snprintf(reading->reason->text, sizeof reading->reason->text, "%s", text);
    return WEIR_ERR_SYNTAX;
}

/* A field that the algorithm has no use for. */
static int misplaced(const struct reading *reading, enum weir_limit_field field,
                     const char *belongs)
{
    char text[160];
    if (!given(reading, field))
        return 0;
    snprintf(text, sizeof text, "belongs to %s, not to %s", belongs,
             weir_algorithm_name(reading->spec->algorithm));
    return wrong(reading, field, text);
}

static int unknown_algorithm(const struct reading *reading)
{
    const char *const *words = algorithm_words;
    char text[WEIR_REASON_MAX];
    int used = snprintf(text, sizeof text, "must be %s", words[0]);
    for (size_t i = 1; words[i] && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s",
                         words[i + 1] ? ", " : " or ", words[i]);
    return wrong(reading, WEIR_LIMIT_ALGORITHM, text);
}

static int read_algorithm(const struct reading *reading)
{
    struct weir_limit_spec *spec = reading->spec;
    spec->algorithm = WEIR_SLIDING_WINDOW;
    if (given(reading, WEIR_LIMIT_ALGORITHM)) {
        int named = rules_algorithm_named(reading->from->algorithm);
        if (named < 0)
            return unknown_algorithm(reading);
        spec->algorithm = (enum weir_algorithm)named;
    }
    if (spec->algorithm != WEIR_LEAKY_BUCKET)
        return misplaced(reading, WEIR_LIMIT_QUEUE, "leaky_bucket");
    if (reading->from->queue)
        spec->algorithm = WEIR_LEAKY_QUEUE;
    return 0;
}

static int read_window_options(const struct reading *reading)
{
    struct weir_limit_spec *spec = reading->spec;
    if (spec->algorithm != WEIR_SLIDING_WINDOW) {
        int err = misplaced(reading, WEIR_LIMIT_SEGMENTS, "sliding_window");
        return err < 0 ? err : misplaced(reading, WEIR_LIMIT_STRICT, "sliding_window");
    }
    uint64_t segments = reading->from->segments;
    spec->strict = reading->from->strict;
    if (!given(reading, WEIR_LIMIT_SEGMENTS))
        return 0;
    if (segments < 1 || segments > WEIR_SEGMENTS_MAX)
        return wrong(reading, WEIR_LIMIT_SEGMENTS, "must be 1 to 120");
    spec->segments = (uint32_t)segments;
    return 0;
}

static int read_concurrency(const struct reading *reading)
{
    struct weir_limit_spec *spec = reading->spec;
    const struct weir_given_limit *from = reading->from;
    int err = misplaced(reading, WEIR_LIMIT_RATE, "the other algorithms");
    if (err == 0)
        err = misplaced(reading, WEIR_LIMIT_BURST, BUCKETS);
    if (err < 0)
        return err;
    if (!given(reading, WEIR_LIMIT_LIMIT))
        return wrong(reading, WEIR_LIMIT_LIMIT, "is missing: how many may be in flight");
    if (from->limit > WEIR_LEASES_MAX)
        return wrong(reading, WEIR_LIMIT_LIMIT, "must be 0 to 10000");
    spec->rate = from->limit;
    spec->window_ns = LIFE_DEFAULT_NS;
    *reading->field = WEIR_LIMIT_LIFE;
    return given(reading, WEIR_LIMIT_LIFE) ? weir_duration_parse(&spec->window_ns, from->life.data,
                                                                 from->life.size, reading->reason)
                                           : 0;
}

/* The words of a rules file that mean nothing here are left out of the message. */
static int parse_rate(const struct reading *reading, struct weir_rate *rate)
{
    struct weir_bytes text = reading->from->rate;
    struct rules_quote quote;
    uint64_t count;
    int digits = weir_digits_parse(&count, text.data, text.size);
    *reading->field = WEIR_LIMIT_RATE;
    if (digits == WEIR_ERR_RANGE || (digits > 0 && (size_t)digits < text.size &&
                                     (text.data[digits] == '/' || text.data[digits] == '.')))
        return weir_rate_parse_decimal(rate, text.data, text.size, reading->reason);
    snprintf(reading->reason->text, sizeof reading->reason->text,
             "%.120s is not a rate; write N/unit, as in 100/min or 5/10s",
             rules_quote(&quote, text.data, text.size));
    return WEIR_ERR_SYNTAX;
}

static int read_burst(const struct reading *reading, const struct weir_rate *rate)
{
    uint64_t burst = reading->from->burst;
    if (!given(reading, WEIR_LIMIT_BURST))
        return 0;
    if (!bucket_is(reading->spec->algorithm))
        return misplaced(reading, WEIR_LIMIT_BURST, BUCKETS);
    if (rate->burst > 0)
        return wrong(reading, WEIR_LIMIT_BURST, "the rate already has a burst");
    if (burst < 1 || burst > WEIR_BUCKET_MAX)
        return wrong(reading, WEIR_LIMIT_BURST, "must be 1 to 1099511627776");
    reading->spec->burst = burst;
    return 0;
}

static int read_rate(const struct reading *reading)
{
    struct weir_rate rate;
    int err = misplaced(reading, WEIR_LIMIT_LIMIT, "concurrency");
    if (err == 0)
        err = misplaced(reading, WEIR_LIMIT_LIFE, "concurrency");
    if (err < 0)
        return err;
    if (!given(reading, WEIR_LIMIT_RATE))
        return wrong(reading, WEIR_LIMIT_RATE, "is missing, as in 100/min");
    err = parse_rate(reading, &rate);
    if (err == 0)
        err = read_burst(reading, &rate);
    if (err < 0)
        return err;
    *reading->field = WEIR_LIMIT_RATE;
    return rules_numbers_use(&rate, reading->spec, reading->reason);
}

int weir_limit_spec_read(const struct weir_given_limit *from, struct weir_limit_spec *spec,
                         enum weir_limit_field *field, struct weir_reason *reason)
{
    const struct reading reading = {from, spec, field, reason};
    memset(spec, 0, sizeof *spec);
    int err = read_algorithm(&reading);
    if (err == 0)
        err = read_window_options(&reading);
    if (err == 0)
        err =
            spec->algorithm == WEIR_CONCURRENCY ? read_concurrency(&reading) : read_rate(&reading);
    return err;
}

int weir_limit_spec_check(const struct weir_limit_spec *spec, bool shared,
                          enum weir_limit_field *field, struct weir_reason *reason)
{
    static const enum weir_limit_field fields[] = {[RULES_FAULT_NONE] = WEIR_LIMIT_KEY,
                                                   [RULES_FAULT_RATE] = WEIR_LIMIT_RATE,
                                                   [RULES_FAULT_LIFE] = WEIR_LIMIT_LIFE,
                                                   [RULES_FAULT_SEGMENTS] = WEIR_LIMIT_SEGMENTS,
                                                   [RULES_FAULT_SHARED] = WEIR_LIMIT_SEGMENTS};
    struct weir_limit limit;
    enum rules_fault fault = rules_numbers_compile(spec, shared, &limit, reason);
    *field = fields[fault];
    return fault == RULES_FAULT_NONE ? 0 : WEIR_ERR_RANGE;
}

/* --- States ----------------------------------------------------------------------------------- */

size_t weir_limit_state_write(const struct weir_limit_spec *spec, struct weir_bytes name,
                              struct weir_bytes key, char text[WEIR_LIMIT_STATE_MAX])
{
    bool whole = key.size <= WEIR_LIMIT_KEY_SENT_MAX;
    char *at = text;
    *at++ = 'l';
    at = weir_decimal_write(at, spec->algorithm);
    *at++ = '.';
    at = weir_decimal_write(at, spec->algorithm == WEIR_CONCURRENCY ? 0 : spec->window_ns);
    if (spec->segments > 1) {
        *at++ = '/';
        at = weir_decimal_write(at, spec->segments);
    }
    if (spec->strict)
        *at++ = 's';
    *at++ = ':';
    if (name.size > 0)
        memcpy(at, name.data, name.size);
    at += name.size;
    *at++ = whole ? ':' : '#';
    if (whole) {
        memcpy(at, key.data, key.size);
        return (size_t)(at - text) + key.size;
    }
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key.data, key.size, digest);
    return (size_t)(weir_hex_write(at, digest, sizeof digest) - text);
}

struct weir_bytes weir_limit_state_name(struct weir_bytes text)
{
    const char *name = (const char *)memchr(text.data, ':', text.size) + 1, *end = name;
    while (*end != ':' && *end != '#')
        end++;
    return (struct weir_bytes){name, (size_t)(end - name)};
}
