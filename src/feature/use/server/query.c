/* SPDX-License-Identifier: Apache-2.0 */
/* see query.h */
#include "feature/use/server/query.h"

#include <jansson.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/use/engine/cause.h"
#include "feature/use/server/daemon.h"
#include "rules/load/numbers.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define S UINT64_C(1000000000)
#define COUNT_MAX 10000
#define WAIT_MAX_S 20

struct weir_use_service *weir_use_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    return weir_daemon_use(daemon);
}

static bool read_number(struct weir_bytes text, uint64_t most, uint64_t *number)
{
    int digits = weir_digits_parse(number, text.data, text.size);
    return digits > 0 && (size_t)digits == text.size && *number <= most;
}

/* A time since the epoch in seconds, "1795442587" or "1795442587.214", or how long ago, "10min". */
static bool read_time(struct weir_bytes text, uint64_t now_ns, uint64_t *time_ns)
{
    uint64_t number;
    struct weir_reason reason;
    const char *point = text.size > 0 ? memchr(text.data, '.', text.size) : NULL;
    struct weir_bytes whole = {text.data, point ? (size_t)(point - text.data) : text.size};
    if (read_number(whole, UINT64_MAX / S - 1, &number)) {
        uint64_t unit = S;
        *time_ns = number * S;
        for (const char *at = point ? point + 1 : NULL; at && at < text.data + text.size; at++) {
            if (*at < '0' || *at > '9')
                return false;
            unit /= 10;
            *time_ns += unit * (uint64_t)(*at - '0');
        }
        return true;
    }
    if (weir_duration_parse(&number, text.data, text.size, &reason) < 0)
        return false;
    *time_ns = now_ns > number ? now_ns - number : 1;
    return true;
}

static bool read_word(struct weir_bytes text, const char *const *words, unsigned count,
                      unsigned *word)
{
    for (*word = 0; *word < count; (*word)++)
        if (weir_bytes_are(text, words[*word]))
            return true;
    return false;
}

const char *const weir_use_window_names[WEIR_WINDOWS] = {"minute", "hour", "day"};

static const char *const callers[WEIR_DENIAL_CALLERS] = {"user", "org", "address"};
static const char *const caller_kinds[WEIR_DENIAL_CALLERS] = {WEIR_USE_USER, WEIR_USE_ORG,
                                                              WEIR_USE_ADDRESS};

struct weir_denial_filter weir_use_query_filter(const struct weir_use_query *query)
{
    struct weir_denial_filter filter = {.limit = query->limit,
                                        .route = query->route,
                                        .causes = query->causes,
                                        .since_ns = query->since_ns,
                                        .until_ns = query->until_ns};
    if (query->key.data)
        (void)!weir_asked_read(&filter.key, query->key); /* it was read before: read_key */
    for (unsigned i = 0; i < WEIR_DENIAL_CALLERS; i++)
        if (query->callers[i].data)
            weir_asked_read_kind(&filter.callers[i], weir_bytes_of(caller_kinds[i]),
                                 query->callers[i]);
    return filter;
}

/* "denied,allowed": a bit for each field of a series. False: it is no such list. */
static bool read_fields(struct weir_bytes text, uint32_t *fields)
{
    _Static_assert(WEIR_USE_WHOLE_FIELDS <= 32, "a bit for each");
    while (text.size > 0) {
        const char *comma = memchr(text.data, ',', text.size);
        size_t size = comma ? (size_t)(comma - text.data) : text.size;
        unsigned field;
        if (!read_word((struct weir_bytes){text.data, size}, weir_use_field_names,
                       WEIR_USE_WHOLE_FIELDS, &field))
            return false;
        *fields |= UINT32_C(1) << field;
        text.data += size + (comma != NULL);
        text.size -= size + (comma != NULL);
    }
    return *fields != 0;
}

/* Whom to look for is refused here, where it costs a reading and not a search. */
static bool read_key(struct weir_bytes text, struct weir_bytes *key)
{
    struct weir_asked asked;
    *key = text;
    return weir_asked_read(&asked, text);
}

/* Reads one parameter. Returns what was wrong with it, or NULL. */
static const char *read_parameter(unsigned takes, struct weir_bytes name, struct weir_bytes value,
                                  uint64_t now_ns, struct weir_use_query *query)
{
    static const char *const orders[] = {"requests", "cost", "share", "denied"};
    static const char *const resolutions[] = {"1s", "1min"};
    unsigned word;
    if (takes & WEIR_USE_P_LIMIT && weir_bytes_are(name, "limit")) {
        query->limit = value;
    } else if (takes & WEIR_USE_P_KEY && weir_bytes_are(name, "key")) {
        if (!read_key(value, &query->key))
            return "key must be one value, or at most 8 with their kinds";
    } else if (takes & WEIR_USE_P_CALLER && read_word(name, callers, WEIR_DENIAL_CALLERS, &word)) {
        query->callers[word] = value;
    } else if (takes & WEIR_USE_P_KIND && weir_bytes_are(name, "kind")) {
        if (!read_word(value, caller_kinds, WEIR_DENIAL_CALLERS, &word))
            return "kind must be user, org or client.ip";
        query->kind = value;
    } else if (takes & WEIR_USE_P_WINDOW && weir_bytes_are(name, "window")) {
        if (!read_word(value, weir_use_window_names, WEIR_WINDOWS, &word))
            return "window must be minute, hour or day";
        query->window = (enum weir_window)word;
    } else if (takes & WEIR_USE_P_BY && weir_bytes_are(name, "by")) {
        if (!read_word(value, orders, 4, &word))
            return "by must be requests, cost, share or denied";
        query->by = (enum weir_use_order)word;
    } else if (takes & WEIR_USE_P_COUNT && weir_bytes_are(name, "count")) {
        if (!read_number(value, COUNT_MAX, &query->count))
            return "count must be 0 to 10000";
    } else if (takes & WEIR_USE_P_ABOVE && weir_bytes_are(name, "above")) {
        if (!read_number(value, 100, &query->above))
            return "above must be 0 to 100, in percent";
    } else if (takes & WEIR_USE_P_SINCE && weir_bytes_are(name, "since")) {
        if (!read_time(value, now_ns, &query->since_ns))
            return "since must be seconds since the epoch, or how long ago, as 10min";
    } else if (takes & WEIR_USE_P_UNTIL && weir_bytes_are(name, "until")) {
        if (!read_time(value, now_ns, &query->until_ns))
            return "until must be seconds since the epoch, or how long ago, as 10min";
    } else if (takes & WEIR_USE_P_AFTER && weir_bytes_are(name, "after")) {
        if (!read_number(value, INT64_MAX, &query->after))
            return "after must be the id of a denial";
        query->after_given = true;
    } else if (takes & WEIR_USE_P_BEFORE && weir_bytes_are(name, "before")) {
        if (!read_number(value, INT64_MAX, &query->before) || query->before == 0)
            return "before must be the id of a denial";
    } else if (takes & WEIR_USE_P_FIELDS && weir_bytes_are(name, "fields")) {
        if (!read_fields(value, &query->fields))
            return "fields must be names of a series, with commas between";
    } else if (takes & WEIR_USE_P_ROUTE && weir_bytes_are(name, "route")) {
        query->route = value;
    } else if (takes & WEIR_USE_P_CAUSE && weir_bytes_are(name, "cause")) {
        _Static_assert(WEIR_CAUSE_UNREADABLE == WEIR_CAUSES - 1, "it makes no denial");
        if (!read_word(value, weir_cause_names, WEIR_CAUSE_UNREADABLE, &word))
            return "cause must be limit, standing, unknown, challenge or store";
        query->causes |= 1u << word;
    } else if (takes & WEIR_USE_P_WAIT && weir_bytes_are(name, "wait")) {
        if (!read_number(value, WAIT_MAX_S, &query->wait_s))
            return "wait must be 0 to 20, in seconds";
    } else if (takes & WEIR_USE_P_RESOLUTION && weir_bytes_are(name, "resolution")) {
        if (!read_word(value, resolutions, 2, &word))
            return "resolution must be 1s or 1min";
        query->minutes = word == 1;
    } else {
        return "unknown parameter in the query; see docs/use.md";
    }
    return NULL;
}

bool weir_use_query_read(struct weir_http_call *call, unsigned takes, uint64_t now_ns,
                         struct weir_use_query *query)
{
    struct weir_bytes rest = call->request->query, name, value;
    char *at = call->http->joined;
    while (weir_http_next_parameter(&rest, &name, &value)) {
        long size = weir_http_decode(value, at); /* never longer than the request's head */
        const char *wrong = "query: invalid percent-encoding";
        if (size >= 0) {
            wrong =
                read_parameter(takes, name, (struct weir_bytes){at, (size_t)size}, now_ns, query);
            at += size;
        }
        if (wrong) {
            weir_http_problem(call, WEIR_HTTP_400, NULL, wrong);
            return false;
        }
    }
    return true;
}

/* Those who are not limits, but refuse like one, are known, too. */
static bool is_known(const struct weir_use_service *use, struct weir_bytes limit)
{
    if (limit.size == 0 || weir_rules_find(use->daemon->rules, limit.data, limit.size) >= 0)
        return true;
    for (unsigned cause = 0; cause < WEIR_CAUSES; cause++)
        if (weir_bytes_are(limit, weir_cause_names[cause]))
            return true;
    return weir_bytes_are(limit, WEIR_ANSWER_BY_STANDING) ||
           weir_bytes_are(limit, WEIR_ANSWER_BY_UNKNOWN);
}

void weir_use_say_limit(struct json_t *answer, const struct weir_use_service *use,
                        struct weir_bytes limit)
{
    bool known = is_known(use, limit);
    const char *near = known ? NULL : weir_admin_nearest_limit(use->daemon->rules, limit);
    json_object_set_new(answer, "limit_known", json_boolean(known));
    if (!known)
        json_object_set_new(answer, "did_you_mean", near ? json_string(near) : json_null());
}
