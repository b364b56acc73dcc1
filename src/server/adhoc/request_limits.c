/* SPDX-License-Identifier: Apache-2.0 */
/* see request_limits.h */
#include "server/adhoc/request_limits.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "rules/match/checks.h"
#include "server/adhoc/limit_spec.h"
#include "server/daemon/worker.h"
#include "table/table.h"

#define PATH_MAX_SIZE 32 /* "limits[31].algorithm" */

static const char too_many[] = "too many distinct limits in requests; put limits that differ by "
                               "customer into `plans` of the rules file";

void weir_request_limits_open(struct weir_request_limits *limits, struct weir_worker *worker,
                              struct weir_adhoc_limits *all)
{
    static const char label[] = "weir http limit"; /* and of gRPC: the keys are the same */
    limits->worker = worker;
    limits->limits = all;
    weir_siphash128(weir_table_secret(worker->table), label, sizeof label - 1, limits->secret);
    limits->on_store_error = WEIR_FAIL_LOCAL;
    limits->flags = 0;
    if (!worker->remote_store)
        return;
    const struct weir_store_settings *store = &weir_worker_settings(worker)->store;
    limits->flags = store->leased ? WEIR_CHECK_LEASED : 0;
    limits->on_store_error = store->on_store_error;
}

_Static_assert(WEIR_CHECKS_MAX *WEIR_LIMIT_STATE_MAX <= WEIR_SCRATCH_BYTES,
               "a decision keeps the names of all its states");

/* --- Requests --------------------------------------------------------------------------------- */

/* A limit of the request that is being read. */
struct reading {
    struct weir_request_limits *limits;
    const struct weir_given_limits *given;
    struct weir_decision *decision;
    uint16_t number;
    struct weir_reason *reason;
};

/* Says what is wrong with a field, or with a whole limit (WEIR_LIMIT_FIELDS). */
static int fail(const struct reading *reading, int err, enum weir_limit_field field,
                const char *text)
{
    const struct weir_given_limits *given = reading->given;
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
    struct weir_request_limits *limits = reading->limits;
    struct weir_worker *worker = limits->worker;
    struct weir_reason reason = {{0}};
    enum weir_limit_field field;
    uint64_t epoch = weir_adhoc_limits_epoch(limits->limits);
    if (limits->epoch != epoch) {
        limits->epoch = epoch;
        memset(&limits->cache, 0, sizeof limits->cache);
    }
    uint64_t a = spec->rate | (uint64_t)spec->algorithm << 56;
    uint64_t b = spec->window_ns | (uint64_t)spec->strict << 63;
    uint64_t c = spec->burst | (uint64_t)spec->segments << 56;
    struct weir_adhoc_cached *cached = weir_adhoc_cache_at(&limits->cache, a, b, c);
    if (cached->limit && cached->a == a && cached->b == b && cached->c == c) {
        *limit = cached->limit;
        return 0;
    }
    int err = weir_limit_spec_check(spec, worker->remote_store, &field, &reason);
    if (err < 0)
        return fail(reading, err, field, reason.text);
    err = weir_adhoc_limits_find(limits->limits, worker->store, worker->local, spec, NULL, limit,
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
    const struct weir_request_limits *limits = reading->limits;
    struct weir_check *check = &reading->decision->checks[reading->number];
    memset(check, 0, sizeof *check);
    weir_siphash128(limits->secret, text.data, text.size, check->hash);
    check->limit = limit;
    check->key = text;
    check->cost = reading->given->limits[reading->number].cost;
    check->rule = UINT32_MAX;
    check->flags = limits->flags;
    check->on_store_error = limits->on_store_error & 3;
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
static struct weir_bytes default_name(bool listed, uint16_t number,
                                      char room[WEIR_REQUEST_LIMIT_NAME_SIZE])
{
    static const char only[] = "limit";
    if (!listed)
        return (struct weir_bytes){only, sizeof only - 1};
    int size = snprintf(room, WEIR_REQUEST_LIMIT_NAME_SIZE, "limit-%u", number);
    return (struct weir_bytes){room, (size_t)size};
}

static struct weir_bytes name_of(const struct weir_given_limits *given, uint16_t number,
                                 char room[WEIR_REQUEST_LIMIT_NAME_SIZE])
{
    struct weir_bytes name = given->limits[number].name;
    return name.data ? name : default_name(given->listed, number, room);
}

/* Answers name limits, so names must differ. */
static int name_alone(const struct reading *reading)
{
    const struct weir_given_limits *given = reading->given;
    char room[WEIR_REQUEST_LIMIT_NAME_SIZE], other_room[WEIR_REQUEST_LIMIT_NAME_SIZE];
    struct weir_bytes name = name_of(given, reading->number, room);
    for (uint16_t i = 0; i < reading->number; i++) {
        char text[160];
        if (!given->limits[reading->number].name.data && !given->limits[i].name.data)
            continue; /* their numbers differ */
        if (!weir_bytes_equal(name, name_of(given, i, other_room)))
            continue;
        snprintf(text, sizeof text, "number %u is called %.*s, too", i, (int)name.size, name.data);
        return fail(reading, WEIR_ERR_SYNTAX, WEIR_LIMIT_NAME, text);
    }
    return 0;
}

static int limit_read(const struct reading *reading)
{
    const struct weir_given_limit *from = &reading->given->limits[reading->number];
    const struct weir_limit *limit = NULL;
    struct weir_limit_spec spec;
    struct weir_reason reason = {{0}};
    enum weir_limit_field field;
    char text[WEIR_LIMIT_STATE_MAX];
    int err = weir_limit_spec_read(from, &spec, &field, &reason);
    if (err < 0)
        return fail(reading, err, field, reason.text);
    err = find_limit(reading, &spec, &limit);
    if (err < 0)
        return err;
    size_t size = weir_limit_state_write(&spec, from->name, from->key, text);
    struct weir_bytes kept = weir_decision_keep(reading->decision, (struct weir_bytes){text, size});
    check_fill(reading, limit, kept);
    err = check_alone(reading);
    return err < 0 ? err : name_alone(reading);
}

int weir_request_limits_decide(struct weir_request_limits *limits,
                               const struct weir_given_limits *given,
                               struct weir_decision *decision, struct weir_reason *reason)
{
    struct reading reading = {
        .limits = limits, .given = given, .decision = decision, .reason = reason};
    int err = 0;
    for (; err == 0 && reading.number < given->count; reading.number++)
        err = limit_read(&reading);
    if (err < 0)
        return err;
    decision->count = given->count;
    if (given->dry_run)
        decision->op = WEIR_OP_PEEK;
    return 0;
}

/* --- Answers ---------------------------------------------------------------------------------- */

void weir_request_limits_name(const struct weir_decision *decision, bool listed,
                              struct weir_answer *answer, weir_request_limit_names room)
{
    for (uint16_t i = 0; i < answer->count; i++) {
        struct weir_bytes *name = &answer->limits[i].name;
        *name = weir_limit_state_name(decision->checks[i].key);
        if (name->size == 0)
            *name = default_name(listed, i, room[i]);
    }
}
