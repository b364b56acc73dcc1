/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_api.h */
#include "server/http/limit_api.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/siphash.h"
#include "server/http/check_api.h"
#include "server/http/limit_spec.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define PATH_MAX_SIZE 32 /* "limits[31].algorithm" */

static const char not_trusted[] =
    "this listener is not trusted, and callers of /v1/limit choose their limits: set `trusted: "
    "true` under server.http";

static const char too_many[] = "too many distinct limits in requests; put limits that differ by "
                               "customer into `plans` of the rules file";

void weir_limit_open(struct weir_http *http, struct weir_adhoc_limits *limits)
{
    static const char label[] = "weir http limit";
    http->limits = limits;
    weir_siphash128(weir_table_secret(http->worker->table), label, sizeof label - 1,
                    http->limit_secret);
    http->on_store_error = WEIR_FAIL_LOCAL;
    http->limit_flags = 0;
    if (!http->worker->remote_store)
        return;
    const struct weir_store_settings *store = &weir_worker_settings(http->worker)->store;
    http->limit_flags = store->leased ? WEIR_CHECK_LEASED : 0;
    http->on_store_error = store->on_store_error;
}

_Static_assert(WEIR_CHECKS_MAX *WEIR_LIMIT_STATE_MAX <= WEIR_SCRATCH_BYTES,
               "a decision keeps the names of all its states");

/* --- Requests --------------------------------------------------------------------------------- */

/* A limit of the request that is being read. */
struct reading {
    struct weir_http *http;
    struct weir_decision *decision;
    uint16_t number;
    struct weir_reason *reason;
};

/* Says what is wrong with a field, or with a whole limit (WEIR_LIMIT_FIELDS). */
static int fail(const struct reading *reading, int err, enum weir_limit_field field,
                const char *text)
{
    const struct weir_limits_json *given = &reading->http->given;
    char path[PATH_MAX_SIZE] = "";
    if (given->listed)
        snprintf(path, sizeof path, "%s[%u]", given->list ? given->list : "", reading->number);
    bool whole = field == WEIR_LIMIT_FIELDS;
    snprintf(reading->reason->text, sizeof reading->reason->text, "%s%s%s: %.200s", path,
             given->listed && !whole ? "." : "", whole ? "" : weir_limit_field_name(field), text);
    return err;
}

/* The compiled limit, through the worker's cache. Rates are below 2^41 and windows below 2^55 where
 * they are in range; others are refused before they come to the cache. */
static int find_limit(const struct reading *reading, const struct weir_limit_spec *spec,
                      const struct weir_limit **limit)
{
    struct weir_http *http = reading->http;
    struct weir_worker *worker = http->worker;
    struct weir_reason reason = {{0}};
    enum weir_limit_field field;
    uint64_t epoch = weir_adhoc_limits_epoch(http->limits);
    if (http->limits_epoch != epoch) {
        http->limits_epoch = epoch;
        memset(&http->limit_cache, 0, sizeof http->limit_cache);
    }
    uint64_t a = spec->rate | (uint64_t)spec->algorithm << 56;
    uint64_t b = spec->window_ns | (uint64_t)spec->strict << 63;
    uint64_t c = spec->burst | (uint64_t)spec->segments << 56;
    struct weir_adhoc_cached *cached = weir_adhoc_cache_at(&http->limit_cache, a, b, c);
    if (cached->limit && cached->a == a && cached->b == b && cached->c == c) {
        *limit = cached->limit;
        return 0;
    }
    int err = weir_limit_spec_check(spec, worker->remote_store, &field, &reason);
    if (err < 0)
        return fail(reading, err, field, reason.text);
    err = weir_adhoc_limits_find(http->limits, worker->store, worker->local, spec, NULL, limit,
                                 &reason);
    if (err == WEIR_ERR_FULL)
        return fail(reading, err, WEIR_LIMIT_FIELDS, too_many);
    if (err < 0)
        return fail(reading, err, WEIR_LIMIT_RATE,
                    reason.text[0] ? reason.text : weir_error_text(err));
    *cached = (struct weir_adhoc_cached){a, b, c, *limit};
    return 0;
}

static void check_fill(const struct reading *reading, const struct weir_limit *limit,
                       struct weir_bytes text)
{
    const struct weir_http *http = reading->http;
    struct weir_check *check = &reading->decision->checks[reading->number];
    memset(check, 0, sizeof *check);
    weir_siphash128(http->limit_secret, text.data, text.size, check->hash);
    check->limit = limit;
    check->key = text;
    check->cost = http->given.limits[reading->number].cost;
    check->rule = UINT32_MAX;
    check->flags = http->limit_flags;
    check->on_store_error = http->on_store_error & 3;
}

/* No two limits of one request may count in one state. */
static int check_alone(const struct reading *reading)
{
    const struct weir_check *checks = reading->decision->checks;
    const struct weir_check *check = &checks[reading->number];
    for (uint16_t i = 0; i < reading->number; i++) {
        char text[160];
        if (checks[i].hash[0] != check->hash[0] || checks[i].hash[1] != check->hash[1])
            continue;
        snprintf(text, sizeof text,
                 "the same key, algorithm and period as number %u; give one of them a `name`", i);
        return fail(reading, WEIR_ERR_SYNTAX, WEIR_LIMIT_FIELDS, text);
    }
    return 0;
}

/* How answers call a limit without a name. */
static struct weir_bytes default_name(bool listed, uint16_t number, char room[PATH_MAX_SIZE])
{
    static const char only[] = "limit";
    if (!listed)
        return (struct weir_bytes){only, sizeof only - 1};
    int size = snprintf(room, PATH_MAX_SIZE, "limit-%u", number);
    return (struct weir_bytes){room, (size_t)size};
}

static struct weir_bytes name_of(const struct weir_limits_json *given, uint16_t number,
                                 char room[PATH_MAX_SIZE])
{
    struct weir_bytes name = given->limits[number].name;
    return name.data ? name : default_name(given->listed, number, room);
}

/* Answers name limits, so names must differ. */
static int name_alone(const struct reading *reading)
{
    const struct weir_limits_json *given = &reading->http->given;
    char room[PATH_MAX_SIZE], other_room[PATH_MAX_SIZE];
    struct weir_bytes name = name_of(given, reading->number, room);
    for (uint16_t i = 0; i < reading->number; i++) {
        char text[160];
        if (!weir_bytes_equal(name, name_of(given, i, other_room)))
            continue;
        snprintf(text, sizeof text, "number %u is called %.*s, too", i, (int)name.size, name.data);
        return fail(reading, WEIR_ERR_SYNTAX, WEIR_LIMIT_NAME, text);
    }
    return 0;
}

static int limit_read(const struct reading *reading)
{
    const struct weir_limit_json *json = &reading->http->given.limits[reading->number];
    const struct weir_limit *limit = NULL;
    struct weir_limit_spec spec;
    struct weir_reason reason = {{0}};
    enum weir_limit_field field;
    char text[WEIR_LIMIT_STATE_MAX];
    int err = weir_limit_spec_read(json, &spec, &field, &reason);
    if (err < 0)
        return fail(reading, err, field, reason.text);
    err = find_limit(reading, &spec, &limit);
    if (err < 0)
        return err;
    size_t size = weir_limit_state_write(&spec, json->name, json->key, text);
    struct weir_bytes kept = weir_decision_keep(reading->decision, (struct weir_bytes){text, size});
    check_fill(reading, limit, kept);
    err = check_alone(reading);
    return err < 0 ? err : name_alone(reading);
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void limit_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    const struct weir_decision *decision = slot->decision;
    struct weir_answer *answer = &http->answer;
    char names[WEIR_CHECKS_MAX][PATH_MAX_SIZE];
    weir_engine_answer(decision, answer, http->lease);
    for (uint16_t i = 0; i < answer->count; i++) {
        struct weir_bytes *name = &answer->limits[i].name;
        *name = weir_limit_state_name(decision->checks[i].key);
        if (name->size == 0)
            *name = default_name(slot->outcome != 0, i, names[i]);
    }
    weir_check_write_answer(slot, output, weir_worker_rules(http->worker));
}

/* --- Handler ---------------------------------------------------------------------------------- */

static void limit_decide(struct weir_http_call *call)
{
    struct weir_http *http = call->http;
    struct weir_reason reason = {{0}};
    struct reading reading = {
        .http = http, .decision = weir_worker_take(call->worker), .reason = &reason};
    int err = 0;
    if (!reading.decision) { /* not after weir_worker_has_room */
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    for (; err == 0 && reading.number < http->given.count; reading.number++)
        err = limit_read(&reading);
    if (err < 0) {
        weir_worker_give(call->worker, reading.decision);
        if (err == WEIR_ERR_FULL)
            weir_http_problem(call, WEIR_HTTP_503, NULL, reason.text);
        else
            weir_http_refuse(call, err, &reason);
        return;
    }
    reading.decision->count = http->given.count;
    if (http->given.dry_run)
        reading.decision->op = WEIR_OP_PEEK;
    struct weir_slot *slot = weir_http_wait(call, reading.decision, limit_write);
    if (slot)
        slot->outcome = http->given.listed;
}

void weir_limit_handle(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    struct weir_bytes body = call->request->body;
    if (!weir_http_json_post(call))
        return;
    if (!weir_listener_trusts(call->connection->listener)) {
        weir_http_problem(call, WEIR_HTTP_403, NULL, not_trusted);
        return;
    }
    int err = weir_limits_json_parse((char *)(uintptr_t)body.data, body.size, &call->http->given,
                                     &reason);
    if (err < 0)
        weir_http_refuse(call, err, &reason);
    else
        limit_decide(call);
}
