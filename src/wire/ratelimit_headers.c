/* See ratelimit_headers.h. */
#include "wire/ratelimit_headers.h"

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

static bool is_told(const struct weir_answer_limit *told)
{
    size_t i = 0;
    if (told->shadow || told->unlimited || told->limit == NULL ||
        told->name.size > WEIR_RATELIMIT_NAME_MAX) {
        return false;
    }
    while (i < told->name.size && told->name.data[i] >= 0x20 && told->name.data[i] < 0x7f) {
        i++;
    }
    return i == told->name.size;
}

/* A string (RFC 9651 4.1.6). */
static char *name_write(char *out, struct weir_bytes name)
{
    *out++ = '"';
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '"' || name.data[i] == '\\') {
            *out++ = '\\';
        }
        *out++ = name.data[i];
    }
    *out++ = '"';
    return out;
}

static char *policy_write(char *out, const struct weir_answer_limit *told)
{
    const struct weir_limit_spec *spec = &told->limit->spec;
    out = name_write(out, told->name);
    out = WEIR_LITERAL_WRITE(out, ";q=");
    out = integer_write(out, spec->rate);
    if (spec->algorithm == WEIR_CONCURRENCY) {
        return WEIR_LITERAL_WRITE(out, ";qu=\"concurrent-requests\"");
    }
    if (spec->algorithm != WEIR_QUOTA && spec->window_ns % NS_PER_S == 0) {
        out = WEIR_LITERAL_WRITE(out, ";w=");
        out = integer_write(out, spec->window_ns / NS_PER_S);
    }
    return out;
}

/* ceil(r*W/N): how long a bucket takes to earn what is left of it. r <= N, so it is at most W. */
static uint64_t earned_in_ns(const struct weir_limit_spec *spec, uint64_t r)
{
    uint64_t rest;
    struct wide product = wide_multiply(r, spec->window_ns);
    uint64_t ns =
        r == spec->rate ? spec->window_ns : wide_divide(product.hi, product.lo, spec->rate, &rest);
    return r == spec->rate ? ns : ns + (rest != 0);
}

/* The effective window; WEIR_NEVER when there is none to tell. */
static uint64_t effective_window_ns(const struct weir_answer_limit *told, uint64_t r)
{
    if (r == 0) {
        return told->next_ns;
    }
    switch (told->limit->spec.algorithm) {
    case WEIR_TOKEN_BUCKET:
    case WEIR_GCRA:
    case WEIR_LEAKY_BUCKET:
    case WEIR_LEAKY_QUEUE:
        return earned_in_ns(&told->limit->spec, r);
    case WEIR_CONCURRENCY:
        return WEIR_NEVER;
    default:
        return told->report.reset_after_ns;
    }
}

static char *quota_write(char *out, const struct weir_answer_limit *told)
{
    uint64_t q = told->limit->spec.rate;
    uint64_t r = told->report.remaining < q ? told->report.remaining : q;
    uint64_t window_ns = effective_window_ns(told, r);

    out = name_write(out, told->name);
    out = WEIR_LITERAL_WRITE(out, ";r=");
    out = integer_write(out, r);
    if (window_ns != WEIR_NEVER) {
        out = WEIR_LITERAL_WRITE(out, ";t=");
        out = integer_write(out, seconds_up(window_ns));
    }
    return out;
}

/* Writes a list (RFC 9651 4.1.1) of all limits that are told. */
static char *list_write(char *out, const struct weir_answer *answer, uint32_t told,
                        char *(*member_write)(char *, const struct weir_answer_limit *))
{
    for (uint32_t left = told; left != 0; left &= left - 1) {
        if (left != told) {
            out = WEIR_LITERAL_WRITE(out, ", ");
        }
        out = member_write(out, &answer->limits[__builtin_ctz(left)]);
    }
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static char *warning_write(char *out, const struct weir_answer_limit *told)
{
    out = name_write(out, told->name);
    out = WEIR_LITERAL_WRITE(out, ";threshold=");
    out = integer_write(out, told->warning.percent);
    out = WEIR_LITERAL_WRITE(out, ";used=");
    out = integer_write(out, told->warning.used);
    out = WEIR_LITERAL_WRITE(out, ";limit=");
    return integer_write(out, told->warning.capacity);
}

/* The limit that the single-limit dialects tell. */
static const struct weir_answer_limit *tightest(const struct weir_answer *answer, uint32_t told)
{
    if (answer->denied_by >= 0 && (told >> answer->denied_by & 1) != 0) {
        return &answer->limits[answer->denied_by];
    }
    const struct weir_answer_limit *best = &answer->limits[__builtin_ctz(told)];
    for (uint32_t left = told & (told - 1); left != 0; left &= left - 1) {
        const struct weir_answer_limit *limit = &answer->limits[__builtin_ctz(left)];
        if (limit->report.remaining < best->report.remaining) {
            best = limit;
        }
    }
    return best;
}

#define SINGLE_WRITE(out, prefix, report, reset)                                                   \
    single_write(out, "\r\n" prefix, sizeof(prefix) + 1, report, reset)

/* <prefix>Limit, -Remaining and -Reset. `line` is the prefix with a line end before it. */
static char *single_write(char *out, const char *line, size_t size,
                          const struct weir_report *report, uint64_t reset)
{
    memcpy(out, line + 2, size - 2);
    out = WEIR_LITERAL_WRITE(out + size - 2, "Limit: ");
    out = integer_write(out, report->limit);
    memcpy(out, line, size);
    out = WEIR_LITERAL_WRITE(out + size, "Remaining: ");
    out = integer_write(out, report->remaining);
    memcpy(out, line, size);
    out = WEIR_LITERAL_WRITE(out + size, "Reset: ");
    out = integer_write(out, reset);
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

size_t weir_ratelimit_headers_write(uint32_t dialects, const struct weir_answer *answer,
                                    uint64_t wall_s, char *out)
{
    char *start = out;
    uint32_t told = 0, warned = 0; /* a bit a limit */

    _Static_assert(WEIR_CHECKS_MAX <= 32, "a bit a limit");
    for (uint16_t i = 0; i < answer->count; i++) {
        uint32_t bit = (uint32_t)is_told(&answer->limits[i]) << i;
        told |= bit;
        warned |= answer->limits[i].warning.percent != 0 ? bit : 0;
    }
    if (told != 0) {
        if (dialects & WEIR_HEADERS_DRAFT) {
            out = WEIR_LITERAL_WRITE(out, "RateLimit-Policy: ");
            out = list_write(out, answer, told, policy_write);
            out = WEIR_LITERAL_WRITE(out, "RateLimit: ");
            out = list_write(out, answer, told, quota_write);
        }
        const struct weir_answer_limit *limit = tightest(answer, told);
        const struct weir_report *report = &limit->report;
        uint64_t reset_s = seconds_up(report->reset_after_ns);
        if (dialects & WEIR_HEADERS_DRAFT_03) {
            out = SINGLE_WRITE(out, "RateLimit-", report, reset_s);
        }
        if (dialects & (WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA)) {
            bool epoch = (dialects & WEIR_HEADERS_X_EPOCH) != 0;
            uint64_t epoch_s = wall_s + reset_s + (reset_s > 0);
            out = SINGLE_WRITE(out, "X-RateLimit-", report, epoch ? epoch_s : reset_s);
        }
        if (dialects & WEIR_HEADERS_COST) {
            out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Cost: ");
            out = integer_write(out, limit->cost);
            out = WEIR_LITERAL_WRITE(out, "\r\n");
        }
    }
    if (warned != 0 && dialects != 0) {
        out = WEIR_LITERAL_WRITE(out, "X-RateLimit-Warning: ");
        out = list_write(out, answer, warned, warning_write);
    }
    if (!answer->allowed && answer->retry_after_ns != WEIR_NEVER) {
        out = WEIR_LITERAL_WRITE(out, "Retry-After: ");
        out = weir_decimal_write(out, seconds_up(answer->retry_after_ns));
        out = WEIR_LITERAL_WRITE(out, "\r\n");
    }
    return (size_t)(out - start);
}
