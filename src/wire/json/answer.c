/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "wire/json/answer.h"

#include <assert.h>
#include <string.h>

#include "wire/decimal.h"
#include "wire/http/status.h"

#define NS_PER_MS 1000000
#define NS_PER_S UINT64_C(1000000000)

static char *text_write(char *out, const char *text)
{
    size_t size = strlen(text);
    memcpy(out, text, size);
    return out + size;
}

static char *string_write(char *out, struct weir_bytes text)
{
    return out + weir_json_string_write(text.data, text.size, out);
}

static char *name_write(char *out, struct weir_bytes name)
{
    assert(name.size <= WEIR_ANSWER_NAME_MAX);
    return string_write(out, name);
}

static char *milliseconds_write(char *out, uint64_t ns)
{
    if (ns == WEIR_NEVER)
        return WEIR_LITERAL_WRITE(out, "null");
    return weir_decimal_write(out, ns / NS_PER_MS + (ns % NS_PER_MS != 0));
}

static char *bool_write(char *out, bool value)
{
    return value ? WEIR_LITERAL_WRITE(out, "true") : WEIR_LITERAL_WRITE(out, "false");
}

static char *warning_write(char *out, const struct weir_answer_warning *warning)
{
    out = WEIR_LITERAL_WRITE(out, ",\"warning\":{\"threshold\":");
    out = weir_decimal_write(out, warning->percent);
    out = WEIR_LITERAL_WRITE(out, ",\"used\":");
    out = weir_decimal_write(out, warning->used);
    out = WEIR_LITERAL_WRITE(out, ",\"limit\":");
    out = weir_decimal_write(out, warning->capacity);
    *out++ = '}';
    return out;
}

static char *limit_write(char *out, const struct weir_answer_limit *entry)
{
    out = WEIR_LITERAL_WRITE(out, "{\"name\":");
    out = name_write(out, entry->name);
    out = WEIR_LITERAL_WRITE(out, ",\"algorithm\":");
    if (!entry->limit) {
        out = WEIR_LITERAL_WRITE(out, "null");
    } else {
        *out++ = '"';
        out = text_write(out, weir_algorithm_name(entry->limit->spec.algorithm));
        *out++ = '"';
    }
    if (entry->allowed && !entry->shadow) { /* as most */
        out = WEIR_LITERAL_WRITE(out, ",\"allowed\":true,\"shadow\":false,\"cost\":");
    } else {
        out = WEIR_LITERAL_WRITE(out, ",\"allowed\":");
        out = bool_write(out, entry->allowed);
        out = WEIR_LITERAL_WRITE(out, ",\"shadow\":");
        out = bool_write(out, entry->shadow);
        out = WEIR_LITERAL_WRITE(out, ",\"cost\":");
    }
    out = weir_decimal_write(out, entry->cost);
    if (entry->unlimited) {
        out = WEIR_LITERAL_WRITE(out, ",\"limit\":null,\"remaining\":null");
    } else {
        out = WEIR_LITERAL_WRITE(out, ",\"limit\":");
        out = weir_decimal_write(out, entry->report.limit);
        out = WEIR_LITERAL_WRITE(out, ",\"remaining\":");
        out = weir_decimal_write(out, entry->report.remaining);
    }
    out = WEIR_LITERAL_WRITE(out, ",\"retry_after_ms\":");
    out = milliseconds_write(out, entry->report.retry_after_ns);
    out = WEIR_LITERAL_WRITE(out, ",\"reset_after_ms\":");
    out = milliseconds_write(out, entry->report.reset_after_ns);
    if (entry->borrowed)
        out = WEIR_LITERAL_WRITE(out, ",\"borrowed\":true");
    else if (entry->bought)
        out = WEIR_LITERAL_WRITE(out, ",\"bought\":true");
    if (entry->overflow)
        out = WEIR_LITERAL_WRITE(out, ",\"overflow\":true");
    if (entry->warning.percent != 0)
        out = warning_write(out, &entry->warning);
    *out++ = '}';
    return out;
}

static char *standing_write(char *out, const struct weir_answer_standing *standing)
{
    assert(standing->reason.size <= WEIR_ANSWER_REASON_MAX);
    out = WEIR_LITERAL_WRITE(out, ",\"standing\":{\"level\":");
    out = name_write(out, standing->level);
    out = WEIR_LITERAL_WRITE(out, ",\"reason\":");
    if (standing->reason.size > 0)
        out = string_write(out, standing->reason);
    else
        out = WEIR_LITERAL_WRITE(out, "null");
    out = WEIR_LITERAL_WRITE(out, ",\"ends_after_ms\":");
    out = milliseconds_write(out, standing->ends_ns);
    *out++ = '}';
    return out;
}

static char *score_write(char *out, const struct weir_answer_score *score)
{
    out = WEIR_LITERAL_WRITE(out, ",\"score\":{\"score\":");
    out = weir_decimal_write(out, score->score);
    out = WEIR_LITERAL_WRITE(out, ",\"class\":");
    out = name_write(out, score->class);
    if (score->signals) {
        out = WEIR_LITERAL_WRITE(out, ",\"signals\":{");
        for (unsigned i = 0; i < WEIR_SIGNALS_MAX; i++) {
            if ((score->held >> i & 1) == 0)
                continue;
            out = name_write(out, score->signals[i].name);
            *out++ = ':';
            out = weir_decimal_write(out, score->signals[i].add);
            *out++ = ',';
        }
        out -= out[-1] == ',';
        *out++ = '}';
    }
    *out++ = '}';
    return out;
}

static char *verdict_write(char *out, const struct weir_answer *answer)
{
    if (answer->allowed && answer->denied_by < 0 && !answer->standing.refused &&
        answer->retry_after_ns == 0 && answer->delay_ns == 0) /* as most */
        return WEIR_LITERAL_WRITE(
            out, "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,\"delay_ms\":0");
    out = WEIR_LITERAL_WRITE(out, "{\"allowed\":");
    out = bool_write(out, answer->allowed);
    out = WEIR_LITERAL_WRITE(out, ",\"denied_by\":");
    if (answer->denied_by >= 0)
        out = name_write(out, answer->limits[answer->denied_by].name);
    else if (answer->standing.refused)
        out = name_write(out, weir_answer_refuser(answer->standing.unknown));
    else
        out = WEIR_LITERAL_WRITE(out, "null");
    out = WEIR_LITERAL_WRITE(out, ",\"retry_after_ms\":");
    out = milliseconds_write(out, answer->retry_after_ns);
    out = WEIR_LITERAL_WRITE(out, ",\"delay_ms\":");
    return milliseconds_write(out, answer->delay_ns);
}

size_t weir_answer_json_write(const struct weir_answer *answer, char *out)
{
    char *start = out;
    out = verdict_write(out, answer);
    if (answer->action != WEIR_ACTION_NONE) {
        out = WEIR_LITERAL_WRITE(out, ",\"action\":\"");
        out = text_write(out, weir_action_name(answer->action));
        *out++ = '"';
    }
    if (answer->repeated)
        out = WEIR_LITERAL_WRITE(out, ",\"repeated\":true");
    if (answer->lease.data) {
        out = WEIR_LITERAL_WRITE(out, ",\"lease\":");
        out = string_write(out, answer->lease);
    }
    if (answer->standing.level.data)
        out = standing_write(out, &answer->standing);
    if (answer->score.class.data)
        out = score_write(out, &answer->score);
    out = WEIR_LITERAL_WRITE(out, ",\"limits\":[");
    for (uint16_t i = 0; i < answer->count; i++) {
        if (i > 0)
            *out++ = ',';
        out = limit_write(out, &answer->limits[i]);
    }
    out = WEIR_LITERAL_WRITE(out, "]}");
    return (size_t)(out - start);
}

/* A policy's name, as the RateLimit fields have it (http/ratelimit_headers.h). */
static char *policy_write(char *out, struct weir_bytes name, unsigned number)
{
    *out = ',';
    out = name_write(out + 1, name);
    if (number > 0) {
        out[-1] = ':'; /* for the closing quote */
        out = weir_decimal_write(out, number);
        *out++ = '"';
    }
    return out;
}

static char *violated_policies_write(char *out, const struct weir_answer *answer)
{
    out = WEIR_LITERAL_WRITE(out, ",\"violated-policies\":");
    char *list = out;
    for (uint16_t i = 0; answer && i < answer->count; i++) {
        const struct weir_answer_limit *limit = &answer->limits[i];
        if (limit->allowed || limit->shadow)
            continue;
        if (limit->rate_count == 0)
            out = policy_write(out, limit->name, 0);
        for (unsigned j = 0; j < limit->rate_count; j++)
            if (!answer->rates[limit->first_rate + j].allowed)
                out = policy_write(out, limit->name, j + 1);
    }
    if (out == list)
        *out++ = '[';
    *list = '['; /* for the comma before the first */
    *out++ = ']';
    return out;
}

/* --- What is known of the limit to blame ------------------------------------------------------ */

/* The limit to blame; NULL: none is, or its numbers are not known. */
static const struct weir_answer_limit *blamed(const struct weir_problem_json *problem)
{
    const struct weir_answer *answer = problem->answer;
    if (!answer || answer->denied_by < 0 || answer->source == WEIR_SOURCE_CLOSED)
        return NULL;
    const struct weir_answer_limit *entry = &answer->limits[answer->denied_by];
    return entry->limit && !entry->unlimited ? entry : NULL;
}

/* Seconds until the request would be admitted, rounded up; 0: never, or not known. */
static uint64_t retry_seconds(const struct weir_problem_json *problem)
{
    const struct weir_answer *answer = problem->answer;
    if (!answer || answer->retry_after_ns == WEIR_NEVER)
        return 0;
    return answer->retry_after_ns / NS_PER_S + (answer->retry_after_ns % NS_PER_S != 0);
}

static char *number_member_write(char *out, const char *name, uint64_t value)
{
    out = WEIR_LITERAL_WRITE(out, ",\"");
    out = text_write(out, name);
    out = WEIR_LITERAL_WRITE(out, "\":");
    return weir_decimal_write(out, value);
}

/* The members that both forms have. */
static char *members_write(char *out, const struct weir_problem_json *problem, const char *retry)
{
    const struct weir_answer_limit *entry = blamed(problem);
    uint64_t seconds = retry_seconds(problem);
    if (seconds > 0)
        out = number_member_write(out, retry, seconds);
    if (entry) {
        out = number_member_write(out, "limit", entry->report.limit);
        out = number_member_write(out, "remaining", entry->report.remaining);
        out = number_member_write(out, "cost", entry->cost);
    }
    if (problem->documentation.data) {
        assert(problem->documentation.size <= WEIR_DOCUMENTATION_MAX);
        out = WEIR_LITERAL_WRITE(out, ",\"documentation\":");
        out = string_write(out, problem->documentation);
    }
    return out;
}

enum weir_problem_type weir_problem_of(const struct weir_answer *answer)
{
    struct weir_problem_json problem = {.answer = answer};
    const struct weir_answer_limit *entry = blamed(&problem);
    if (answer->source == WEIR_SOURCE_CLOSED)
        return WEIR_PROBLEM_REDUCED_CAPACITY;
    bool above = entry && entry->report.limit > 0 && entry->cost > entry->report.limit;
    return above && answer->retry_after_ns == WEIR_NEVER ? WEIR_PROBLEM_COST_ABOVE_LIMIT
                                                         : WEIR_PROBLEM_QUOTA_EXCEEDED;
}

/* --- Problem details -------------------------------------------------------------------------- */

size_t weir_problem_write(const struct weir_problem_json *problem, char *out)
{
    static const char *const types[] = {
        [WEIR_PROBLEM_QUOTA_EXCEEDED] =
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
        [WEIR_PROBLEM_REDUCED_CAPACITY] =
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        [WEIR_PROBLEM_BLANK] = "about:blank",
        [WEIR_PROBLEM_COST_ABOVE_LIMIT] = "tag:weir,2026:cost-above-limit",
    };
    static const char *const titles[] = {
        [WEIR_PROBLEM_QUOTA_EXCEEDED] =
            "Request cannot be satisfied as assigned quota has been exceeded",
        [WEIR_PROBLEM_REDUCED_CAPACITY] =
            "Request cannot be satisfied due to temporary server capacity constraints",
        [WEIR_PROBLEM_COST_ABOVE_LIMIT] =
            "Request cannot be satisfied at any time as its cost is above the limit",
    };
    char *start = out;
    const char *title = titles[problem->type];
    out = WEIR_LITERAL_WRITE(out, "{\"type\":\"");
    out = text_write(out, types[problem->type]);
    out = WEIR_LITERAL_WRITE(out, "\",\"title\":\"");
    out = text_write(out, title ? title : weir_http_status_text(problem->status));
    out = WEIR_LITERAL_WRITE(out, "\",\"status\":");
    out = weir_decimal_write(out, problem->status);
    if (problem->detail) {
        out = WEIR_LITERAL_WRITE(out, ",\"detail\":");
        out += weir_json_string_write(problem->detail,
                                      strnlen(problem->detail, WEIR_REASON_MAX - 1), out);
    }
    if (problem->type == WEIR_PROBLEM_QUOTA_EXCEEDED ||
        problem->type == WEIR_PROBLEM_COST_ABOVE_LIMIT)
        out = violated_policies_write(out, problem->answer);
    out = members_write(out, problem, "retry_after");
    *out++ = '}';
    return (size_t)(out - start);
}

size_t weir_problem_json_write(enum weir_problem_type type, unsigned status, const char *detail,
                               const struct weir_answer *answer, char *out)
{
    const struct weir_problem_json problem = {type, status, detail, answer, {NULL, 0}};
    return weir_problem_write(&problem, out);
}

/* --- The plain form --------------------------------------------------------------------------- */

/* The name of what denies, without quotes. */
static char *name_within_write(char *out, const struct weir_answer *answer)
{
    char *end = name_write(out, answer->limits[answer->denied_by].name);
    size_t size = (size_t)(end - out) - 2;
    memmove(out, out + 1, size);
    return out + size;
}

static char *retry_write(char *out, uint64_t seconds)
{
    if (seconds == 0)
        return out;
    out = WEIR_LITERAL_WRITE(out, " Retry after ");
    out = weir_decimal_write(out, seconds);
    return seconds == 1 ? WEIR_LITERAL_WRITE(out, " second.")
                        : WEIR_LITERAL_WRITE(out, " seconds.");
}

/* What people read; without quotes. */
static char *message_write(char *out, const struct weir_problem_json *problem)
{
    const struct weir_answer *answer = problem->answer;
    const struct weir_answer_limit *entry = blamed(problem);
    bool named = answer && answer->denied_by >= 0;
    if (problem->type == WEIR_PROBLEM_COST_ABOVE_LIMIT && entry) {
        out = WEIR_LITERAL_WRITE(out, "The cost of ");
        out = weir_decimal_write(out, entry->cost);
        out = WEIR_LITERAL_WRITE(out, " is above the limit of ");
        out = weir_decimal_write(out, entry->report.limit);
        out = WEIR_LITERAL_WRITE(out, " for ");
        out = name_within_write(out, answer);
        return WEIR_LITERAL_WRITE(out, ". Waiting does not help.");
    }
    if (problem->type == WEIR_PROBLEM_REDUCED_CAPACITY) {
        out = WEIR_LITERAL_WRITE(out, "The service cannot count requests now.");
    } else if (named) {
        out = WEIR_LITERAL_WRITE(out, "Rate limit exceeded for ");
        out = name_within_write(out, answer);
        *out++ = '.';
    } else if (problem->type == WEIR_PROBLEM_BLANK) {
        out = WEIR_LITERAL_WRITE(out, "Access denied.");
    } else {
        out = WEIR_LITERAL_WRITE(out, "Rate limit exceeded.");
    }
    return retry_write(out, retry_seconds(problem));
}

size_t weir_error_json_write(const struct weir_problem_json *problem, char *out)
{
    static const char *const codes[] = {
        [WEIR_PROBLEM_QUOTA_EXCEEDED] = "RATE_LIMIT_EXCEEDED",
        [WEIR_PROBLEM_REDUCED_CAPACITY] = "SERVICE_UNAVAILABLE",
        [WEIR_PROBLEM_BLANK] = "ACCESS_DENIED",
        [WEIR_PROBLEM_COST_ABOVE_LIMIT] = "COST_ABOVE_LIMIT",
    };
    char *start = out;
    out = WEIR_LITERAL_WRITE(out, "{\"error\":\"");
    out = text_write(out, weir_http_status_text(problem->status));
    out = WEIR_LITERAL_WRITE(out, "\",\"code\":\"");
    out = text_write(out, codes[problem->type]);
    out = WEIR_LITERAL_WRITE(out, "\",\"message\":");
    if (problem->detail) {
        out += weir_json_string_write(problem->detail,
                                      strnlen(problem->detail, WEIR_REASON_MAX - 1), out);
    } else {
        *out++ = '"';
        out = message_write(out, problem);
        *out++ = '"';
    }
    out = members_write(out, problem, "retryAfter");
    *out++ = '}';
    return (size_t)(out - start);
}
