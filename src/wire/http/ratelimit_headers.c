/* SPDX-License-Identifier: Apache-2.0 */
/* See ratelimit_headers.h. */
#include "wire/http/ratelimit_headers.h"

#include "core/period.h"
#include "core/scale.h"
#include "core/wide.h"
#include "wire/decimal.h"

#define NS_PER_S UINT64_C(1000000000)
#define INTEGER_MAX UINT64_C(999999999999999) /* RFC 9651 3.3.1: fifteen digits */

static char *integer_write(char *out, uint64_t value)
{
    return weir_decimal_write(out, value < INTEGER_MAX ? value : INTEGER_MAX);
}

static uint64_t seconds_up(uint64_t ns)
{
    return ns / NS_PER_S + (ns % NS_PER_S != 0);
}

/* Whether a structured string can hold a text. */
static bool is_printable(struct weir_bytes text)
{
    size_t i = 0;
    while (i < text.size && text.data[i] >= 0x20 && text.data[i] < 0x7f)
        i++;
    return i == text.size;
}

static bool is_shown(const struct weir_answer_limit *entry)
{
    if (entry->shadow || entry->unlimited || !entry->limit)
        return false;
    return entry->texts ||
           (entry->name.size <= WEIR_RATELIMIT_NAME_MAX && is_printable(entry->name));
}

/* One rate of a reported limit. */
struct policy {
    struct weir_bytes name; /* the limit's */
    unsigned number;        /* of the rate, from 1, where the limit has several; else 0 */
    const struct weir_limit *limit;
    const struct weir_report *report;
    uint64_t next_ns, quota; /* quota: of each window, at the scale of the request */
};

static uint64_t quota_of(const struct weir_limit *limit, uint8_t scale)
{
    if (!limit)
        return 0;
    return scale == 0 ? limit->spec.rate : scale_part(limit->spec.rate, scale);
}

static struct policy policy_of(const struct weir_answer_limit *entry)
{
    return (struct policy){entry->name,    0,
                           entry->limit,   &entry->report,
                           entry->next_ns, quota_of(entry->limit, entry->scale)};
}

/* A string (RFC 9651 4.1.6). */
static char *name_write(char *out, struct weir_bytes name, unsigned number)
{
    *out++ = '"';
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '"' || name.data[i] == '\\')
            *out++ = '\\';
        *out++ = name.data[i];
    }
    if (number > 0) {
        *out++ = ':';
        out = weir_decimal_write(out, number);
    }
    *out++ = '"';
    return out;
}

static char *policy_write(char *out, const struct policy *policy)
{
    const struct weir_limit_spec *spec = &policy->limit->spec;
    out = name_write(out, policy->name, policy->number);
    out = WEIR_LITERAL_WRITE(out, ";q=");
    out = integer_write(out, policy->quota);
    if (spec->algorithm == WEIR_CONCURRENCY)
        return WEIR_LITERAL_WRITE(out, ";qu=\"concurrent-requests\"");
    if (spec->algorithm != WEIR_QUOTA && spec->window_ns % NS_PER_S == 0) {
        out = WEIR_LITERAL_WRITE(out, ";w=");
        out = integer_write(out, spec->window_ns / NS_PER_S);
    }
    return out;
}

/* r, of which the quota is the cap: a burst or what came over is not promised for every W. */
static uint64_t available(const struct policy *policy)
{
    uint64_t q = policy->quota, left = policy->report->remaining;
    return left < q ? left : q;
}

/* ceil(r*W/q): how long r lasts at the pace of q in W. r <= q, so it is at most W. */
static uint64_t paced_ns(const struct policy *policy, uint64_t r)
{
    uint64_t rest, window_ns = policy->limit->spec.window_ns;
    if (r == policy->quota)
        return window_ns;
    struct wide product = wide_multiply(r, window_ns);
    uint64_t ns = wide_divide(product.hi, product.lo, policy->quota, &rest);
    return ns + (rest != 0);
}

/* t; WEIR_NEVER when there is none. */
static uint64_t window_left_ns(const struct policy *policy, uint64_t now_ns)
{
    const struct weir_limit_spec *spec = &policy->limit->spec;
    uint64_t r = available(policy), retry_ns = policy->report->retry_after_ns;
    if (!period_resets(spec) && retry_ns != 0 && retry_ns != WEIR_NEVER)
        return retry_ns;
    if (r == 0)
        return policy->next_ns;
    if (period_resets(spec))
        return period_end(spec, now_ns) - now_ns;
    return spec->algorithm == WEIR_CONCURRENCY ? WEIR_NEVER : paced_ns(policy, r);
}

/* The numbers of a member of RateLimit. */
static char *left_write(char *out, const struct policy *policy, uint64_t now_ns)
{
    uint64_t window_ns = window_left_ns(policy, now_ns);

    out = integer_write(out, available(policy));
    if (window_ns != WEIR_NEVER) {
        out = WEIR_LITERAL_WRITE(out, ";t=");
        out = integer_write(out, seconds_up(window_ns));
    }
    return out;
}

/* --- Texts that are made once ----------------------------------------------------------------- */

#define TEXT_STEP 32 /* most texts: one copy of a fixed size */

/* There is room for all of WEIR_LIMIT_TEXT_MAX. */
static char *text_write(char *out, const char text[WEIR_LIMIT_TEXT_MAX], uint8_t size)
{
    if (__builtin_expect(size <= TEXT_STEP, 1))
        memcpy(out, text, TEXT_STEP);
    else
        memcpy(out, text, WEIR_LIMIT_TEXT_MAX);
    return out + size;
}

/* A name of 64 bytes that is escaped, and two numbers. */
_Static_assert(WEIR_LIMIT_TEXT_MAX >= WEIR_RATELIMIT_NAME_MAX + 2 + 2 * 18 &&
                   WEIR_LIMIT_TEXT_MAX >= WEIR_RATELIMIT_NAME_MAX + 2 + 18 + 26,
               "a name without escapes has room");

static bool is_escaped(struct weir_bytes name)
{
    return memchr(name.data, '"', name.size) || memchr(name.data, '\\', name.size);
}

void weir_ratelimit_texts_make(struct weir_limit_texts *texts, struct weir_bytes name,
                               const struct weir_limit *limit)
{
    const struct policy policy = {.name = name, .limit = limit, .quota = quota_of(limit, 0)};
    *texts = (struct weir_limit_texts){.policy_size = 0};
    if (name.size > WEIR_RATELIMIT_NAME_MAX || !is_printable(name) || is_escaped(name))
        return;
    char *end = WEIR_LITERAL_WRITE(name_write(texts->quota, name, 0), ";r=");
    texts->quota_size = (uint8_t)(end - texts->quota);
    texts->policy_size = (uint8_t)(policy_write(texts->policy, &policy) - texts->policy);
}

/* --- Fields ----------------------------------------------------------------------------------- */

/* Policy `i` of a limit that has several rates, or of its only one. */
static struct policy policy_at(const struct weir_answer *answer,
                               const struct weir_answer_limit *limit, unsigned i)
{
    const struct weir_answer_rate *rate = &answer->rates[limit->first_rate + i];
    if (limit->rate_count == 0)
        return policy_of(limit);
    return (struct policy){limit->name,   i + 1,         rate->limit,
                           &rate->report, rate->next_ns, quota_of(rate->limit, rate->scale)};
}

static char *policies_write(char *out, const struct weir_answer *answer,
                            const struct weir_answer_limit *limit)
{
    unsigned i = 0;
    if (limit->texts)
        return text_write(out, limit->texts->policy, limit->texts->policy_size);
    do {
        const struct policy policy = policy_at(answer, limit, i);
        if (i > 0)
            out = WEIR_LITERAL_WRITE(out, ", ");
        out = policy_write(out, &policy);
    } while (++i < limit->rate_count);
    return out;
}

static char *quotas_write(char *out, const struct weir_answer *answer,
                          const struct weir_answer_limit *limit)
{
    unsigned i = 0;
    if (limit->texts) {
        const struct policy policy = policy_of(limit);
        out = text_write(out, limit->texts->quota, limit->texts->quota_size);
        return left_write(out, &policy, answer->now_ns);
    }
    do {
        const struct policy policy = policy_at(answer, limit, i);
        if (i > 0)
            out = WEIR_LITERAL_WRITE(out, ", ");
        out = WEIR_LITERAL_WRITE(name_write(out, policy.name, policy.number), ";r=");
        out = left_write(out, &policy, answer->now_ns);
    } while (++i < limit->rate_count);
    return out;
}

/* Writes RateLimit-Policy and RateLimit: lists (RFC 9651 4.1.1). */
static char *draft_write(char *out, const struct weir_answer *answer, uint32_t shown)
{
    out = WEIR_LITERAL_WRITE(out, "RateLimit-Policy: ");
    for (uint32_t left = shown; left != 0; left &= left - 1) {
        if (left != shown)
            out = WEIR_LITERAL_WRITE(out, ", ");
        out = policies_write(out, answer, &answer->limits[__builtin_ctz(left)]);
    }
    out = WEIR_LITERAL_WRITE(out, "\r\nRateLimit: ");
    for (uint32_t left = shown; left != 0; left &= left - 1) {
        if (left != shown)
            out = WEIR_LITERAL_WRITE(out, ", ");
        out = quotas_write(out, answer, &answer->limits[__builtin_ctz(left)]);
    }
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static char *warning_write(char *out, const struct weir_answer_limit *entry)
{
    out = name_write(out, entry->name, 0);
    out = WEIR_LITERAL_WRITE(out, ";threshold=");
    out = integer_write(out, entry->warning.percent);
    out = WEIR_LITERAL_WRITE(out, ";used=");
    out = integer_write(out, entry->warning.used);
    out = WEIR_LITERAL_WRITE(out, ";limit=");
    return integer_write(out, entry->warning.capacity);
}

/* Writes a list of all limits in `warned`. */
static char *warnings_write(char *out, const struct weir_answer *answer, uint32_t warned)
{
    for (uint32_t left = warned; left != 0; left &= left - 1) {
        if (left != warned)
            out = WEIR_LITERAL_WRITE(out, ", ");
        out = warning_write(out, &answer->limits[__builtin_ctz(left)]);
    }
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

/* The limit that the single-limit dialects tell. */
static const struct weir_answer_limit *tightest(const struct weir_answer *answer, uint32_t shown)
{
    if (answer->denied_by >= 0 && (shown >> answer->denied_by & 1) != 0)
        return &answer->limits[answer->denied_by];
    const struct weir_answer_limit *best = &answer->limits[__builtin_ctz(shown)];
    for (uint32_t left = shown & (shown - 1); left != 0; left &= left - 1) {
        const struct weir_answer_limit *limit = &answer->limits[__builtin_ctz(left)];
        if (limit->report.remaining < best->report.remaining)
            best = limit;
    }
    return best;
}

#define PREFIX_STEP 16 /* the room of a prefix: one copy of a fixed size */

/* A prefix with a line end before it, zeros behind it, and its size without them. */
struct prefix {
    char line[PREFIX_STEP];
    uint8_t size;
};

/* There is room for all of PREFIX_STEP, since a name and a number follow. */
static char *prefix_write(char *out, const struct prefix *prefix)
{
    memcpy(out, prefix->line, PREFIX_STEP);
    return out + prefix->size;
}

/* <prefix>Limit, -Remaining and -Reset. */
static char *single_write(char *out, const struct prefix *prefix, const struct weir_report *report,
                          uint64_t reset)
{
    memcpy(out, prefix->line + 2, PREFIX_STEP - 2);
    out = WEIR_LITERAL_WRITE(out + prefix->size - 2, "Limit: ");
    out = integer_write(out, report->limit);
    out = WEIR_LITERAL_WRITE(prefix_write(out, prefix), "Remaining: ");
    out = integer_write(out, report->remaining);
    out = WEIR_LITERAL_WRITE(prefix_write(out, prefix), "Reset: ");
    out = integer_write(out, reset);
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

/* What the single-limit dialects call the reset: t; where there is none, when all is as new. */
static uint64_t reset_ns(const struct weir_answer_limit *entry, uint64_t now_ns)
{
    struct policy policy = policy_of(entry);
    uint64_t window_ns = window_left_ns(&policy, now_ns);
    return window_ns != WEIR_NEVER ? window_ns : entry->report.reset_after_ns;
}

/* The dialects that tell one limit. */
#define SINGLE_DIALECTS                                                                            \
    (WEIR_HEADERS_DRAFT_03 | WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA | WEIR_HEADERS_COST)

static char *singles_write(char *out, const struct weir_answer *answer,
                           const struct weir_answer_limit *limit, uint32_t dialects,
                           uint64_t wall_s)
{
    static const struct prefix plain = {"\r\nRateLimit-", 12}, x = {"\r\nX-RateLimit-", 14};
    const struct weir_report *report = &limit->report;
    uint64_t reset_s = seconds_up(reset_ns(limit, answer->now_ns));
    if (dialects & WEIR_HEADERS_DRAFT_03)
        out = single_write(out, &plain, report, reset_s);
    if (dialects & (WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA)) {
        bool epoch = (dialects & WEIR_HEADERS_X_EPOCH) != 0;
        uint64_t epoch_s = wall_s + reset_s + (reset_s > 0);
        out = single_write(out, &x, report, epoch ? epoch_s : reset_s);
    }
    if (dialects & WEIR_HEADERS_COST) {
        out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Cost: ");
        out = integer_write(out, limit->cost);
        out = WEIR_LITERAL_WRITE(out, "\r\n");
    }
    return out;
}

/* An item (RFC 9651 3.3): a token with parameters. */
static char *standing_write(char *out, const struct weir_answer_standing *standing)
{
    out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Standing: ");
    memcpy(out, standing->level.data, standing->level.size);
    out += standing->level.size;
    if (standing->ends_ns != WEIR_NEVER) {
        out = WEIR_LITERAL_WRITE(out, ";t=");
        out = integer_write(out, seconds_up(standing->ends_ns));
    }
    if (standing->reason.size > 0 && standing->reason.size <= WEIR_RATELIMIT_REASON_MAX &&
        is_printable(standing->reason)) {
        out = WEIR_LITERAL_WRITE(out, ";reason=");
        out = name_write(out, standing->reason, 0);
    }
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

/* What denies, as the member denied_by of JSON answers names it. */
static char *dimension_write(char *out, const struct weir_answer *answer)
{
    struct weir_bytes name;
    if (answer->denied_by >= 0)
        name = answer->limits[answer->denied_by].name;
    else if (answer->standing.refused)
        name = weir_answer_refuser(answer->standing.unknown);
    else
        return out;
    if (name.size > WEIR_RATELIMIT_NAME_MAX || !is_printable(name))
        return out;
    out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Dimension: ");
    memcpy(out, name.data, name.size);
    return WEIR_LITERAL_WRITE(out + name.size, "\r\n");
}

/* The names of signals are tokens, as the rules load them. */
static char *score_write(char *out, const struct weir_answer_score *score)
{
    const char *most = out + WEIR_SCORE_FIELD_MAX - WEIR_RATELIMIT_NAME_MAX - 16;
    out = WEIR_LITERAL_WRITE(out, "X-Weir-Score: ");
    memcpy(out, score->class.data, score->class.size);
    out += score->class.size;
    out = WEIR_LITERAL_WRITE(out, ";score=");
    out = weir_decimal_write(out, score->score);
    for (unsigned i = 0; i < WEIR_SIGNALS_MAX && out < most; i++) {
        const struct weir_answer_signal *signal = &score->signals[i];
        if ((score->held >> i & 1) == 0 || signal->name.size > WEIR_RATELIMIT_NAME_MAX)
            continue;
        out = WEIR_LITERAL_WRITE(out, ", ");
        memcpy(out, signal->name.data, signal->name.size);
        out += signal->name.size;
        out = WEIR_LITERAL_WRITE(out, ";add=");
        out = weir_decimal_write(out, signal->add);
    }
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

size_t weir_ratelimit_headers_write(uint32_t dialects, const struct weir_answer *answer,
                                    uint64_t wall_s, char *out)
{
    char *start = out;
    uint32_t shown = 0, warned = 0; /* a bit a limit */

    _Static_assert(WEIR_CHECKS_MAX <= 32, "a bit a limit");
    for (uint16_t i = 0; i < answer->count; i++) {
        uint32_t bit = (uint32_t)is_shown(&answer->limits[i]) << i;
        shown |= bit;
        warned |= answer->limits[i].warning.percent != 0 ? bit : 0;
    }
    if (shown != 0) {
        if (dialects & WEIR_HEADERS_DRAFT)
            out = draft_write(out, answer, shown);
        if (dialects & SINGLE_DIALECTS)
            out = singles_write(out, answer, tightest(answer, shown), dialects, wall_s);
    }
    if (warned != 0 && dialects != 0) {
        out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Warning: ");
        out = warnings_write(out, answer, warned);
    }
    if ((dialects & WEIR_HEADERS_DIMENSION) && !answer->allowed)
        out = dimension_write(out, answer);
    if ((dialects & WEIR_HEADERS_STANDING) && answer->standing.level.data)
        out = standing_write(out, &answer->standing);
    if (answer->score.class.data && answer->score.signals)
        out = score_write(out, &answer->score);
    if (!answer->allowed && answer->retry_after_ns != WEIR_NEVER) {
        out = WEIR_LITERAL_WRITE(out, "Retry-After: ");
        out = weir_decimal_write(out, seconds_up(answer->retry_after_ns));
        out = WEIR_LITERAL_WRITE(out, "\r\n");
    }
    return (size_t)(out - start);
}
