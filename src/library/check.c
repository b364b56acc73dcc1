/* SPDX-License-Identifier: Apache-2.0 */
/* see check.h */
#include "library/check.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/embed.h>

#include "core/bytes.h"
#include "core/sized.h"
#include "engine/http/denial.h"
#include "engine/token/lease_token.h"
#include "feature/reserve/engine/reservation.h"
#include "rules/source.h"
#include "wire/http/forwarded.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/socket_address.h"

_Static_assert(WEIR_LIMITS_MAX == WEIR_CHECKS_MAX, "an answer has room for every limit");
_Static_assert(WEIR_RATELIMIT_HEADERS_MAX + WEIR_DENIAL_FIELDS_MAX <= WEIR_FIELDS_MAX &&
                   WEIR_DENIAL_BODY_MAX <= WEIR_BODY_MAX,
               "what is written fits");
_Static_assert(sizeof(((struct weir_reservation_token *)NULL)->text) > WEIR_RESERVATION_TEXT_MAX,
               "every reservation fits, with its NUL");
_Static_assert(sizeof((struct weir_lease_token){{0}}.text) >= WEIR_LEASE_TOKEN_MAX,
               "every token of the engine fits");

/* What is asked: a call, and values by name. */
struct asked {
    const struct weir_call *call;
    const struct weir_attribute_value *named;
    size_t named_count;
};

/* Where the answer of one decision goes. */
struct telling {
    const struct weir_call *call;
    struct weir_answer_summary *answer;
    size_t limit_size; /* of the caller's struct weir_limit_answer */
};

/* --- The request ------------------------------------------------------------------------------ */

/* Follows what proxies say of the client, if its peer is one that may. */
static int find_client(struct weir_address *client, const struct weir_call *call,
                       const struct weir_settings *settings)
{
    const struct weir_proxies proxies = {settings->trusted_proxies, settings->trusted_proxy_count,
                                         settings->trust_unix};
    const struct weir_bytes x_forwarded_for = {call->forwarded_for, call->forwarded_for_size};
    const struct weir_bytes rfc7239 = {call->forwarded, call->forwarded_size};
    const struct weir_forwarded fields = {&x_forwarded_for, &rfc7239, x_forwarded_for.data != NULL,
                                          rfc7239.data != NULL};
    if (!weir_forwarded_trusts(client, &proxies))
        return 0;
    return weir_forwarded_client(client, &fields, &proxies, NULL);
}

/* What handles mean to this lane. */
static const struct weir_attribute_map *map_of(const struct weir *weir, struct weir_lane *lane,
                                               const struct weir_rules *rules)
{
    struct weir_attribute_map *map = lane->map;
    if (__builtin_expect(
            map->generation != lane->generation || map->count != weir->attributes.count, 0))
        weir_attributes_map(&weir->attributes, rules, lane->generation, map);
    return map;
}

/* A header field is the client's, who is not to be trusted where the call says so; anything else is
 * what the program says. */
static void put_value(const struct weir *weir, const struct weir_attribute_map *map,
                      struct weir_request *request, const struct weir_call *call,
                      const struct weir_value *value)
{
    bool of_request = value->attribute >= WEIR_OF_REQUEST;
    unsigned handle = (unsigned)value->attribute % WEIR_OF_REQUEST;
    if (value->attribute < 0 || handle >= map->count)
        return;
    const struct weir_bytes bytes = {value->data, value->size};
    struct weir_attribute_source source = map->sources[handle];
    if ((source.flags & WEIR_NAME_OPEN) != 0 && !of_request) {
        weir_request_set(request, (uint16_t)source.attribute, bytes, WEIR_TRUST_CONFIGURATION);
        return;
    }
    if (source.attribute == WEIR_ATTR_CLIENT_IP && call->client)
        return;
    if (source.state == WEIR_NAME_UNKNOWN)
        weir_request_unknown(request, weir_bytes_of(weir->attributes.names[handle]),
                             WEIR_TRUST_CONFIGURATION);
    if (of_request)
        source.flags |= WEIR_NAME_OF_REQUEST;
    bool header = (source.flags & WEIR_NAME_HEADER) != 0;
    weir_request_put(request, source, bytes,
                     header && call->untrusted ? WEIR_TRUST_CLIENT : WEIR_TRUST_CONFIGURATION);
}

static void put_named(struct weir_request *request, const struct asked *asked)
{
    for (size_t i = 0; i < asked->named_count; i++) {
        const char *value = asked->named[i].value;
        struct weir_bytes bytes = {value, value ? strlen(value) : 0};
        weir_request_put_name(request, weir_bytes_of(asked->named[i].name), bytes,
                              WEIR_TRUST_CONFIGURATION);
    }
}

static int fill_request(const struct weir *weir, struct weir_lane *lane, const struct asked *asked,
                        struct weir_request *request)
{
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    const struct weir_attribute_map *map = map_of(weir, lane, rules);
    const struct weir_call *call = asked->call;
    struct weir_address client;
    weir_request_begin(request, rules, WEIR_FIELDS_NONE,
                       (struct weir_room){lane->map->joined, sizeof lane->map->joined});
    if (!weir->names_are_configured)
        weir_request_of_program(request);
    request->cost = call->cost;
    if (call->client) {
        weir_socket_address_read(&client, call->client);
        weir_request_put_client(request, &client);
    }
    for (size_t i = 0; i < call->count; i++)
        put_value(weir, map, request, call, &call->values[i]);
    put_named(request, asked);
    if (call->forwarded_for || call->forwarded) {
        client = request->client;
        int err = find_client(&client, call, weir_rules_settings(rules));
        weir_request_put_client(request, &client);
        if (err < 0)
            return err;
    }
    return weir_request_end(request, NULL);
}

/* Turns the decision into what the call asks for. */
static int apply(struct weir_lane *lane, struct weir_decision *decision,
                 const struct weir_call *call)
{
    const struct weir_bytes key = {call->idempotency_key, call->idempotency_size};
    uint64_t life_ns = call->reserve_life_ns ? call->reserve_life_ns : WEIR_RESERVATION_LIFE_NS;
    if (call->peek)
        decision->op = WEIR_OP_PEEK;
    else if (key.data)
        return weir_engine_apply_idempotency(lane->engine, decision, key, NULL);
    else if (call->reserve != WEIR_RESERVE_NEVER && call->cost > 0)
        return weir_engine_apply_reservation(lane->engine, decision, call->cost, life_ns, NULL);
    return 0;
}

static int check_call(const struct weir_call *call)
{
    uint64_t life_ns = call->reserve_life_ns;
    if (call->idempotency_key &&
        (call->idempotency_size == 0 || call->idempotency_size > WEIR_IDEMPOTENCY_KEY_MAX))
        return WEIR_ERR_RANGE;
    if (call->reserve == WEIR_RESERVE_ALWAYS && (call->cost == 0 || call->idempotency_key))
        return WEIR_ERR_RANGE;
    if (call->reserve != WEIR_RESERVE_NEVER && !call->reservation)
        return WEIR_ERR_RANGE;
    if (life_ns != 0 &&
        (life_ns < WEIR_RESERVATION_LIFE_MIN_NS || life_ns > WEIR_RESERVATION_LIFE_MAX_NS))
        return WEIR_ERR_RANGE;
    return 0;
}

/* --- The answer ------------------------------------------------------------------------------- */

/* Copies what fits of a text, with a NUL. */
static void copy_text(char *to, size_t room, struct weir_bytes text)
{
    size_t size = text.size < room ? text.size : room - 1;
    memcpy(to, text.data, size);
    to[size] = '\0';
}

static void tell_limit(const struct weir_answer_limit *limit, struct weir_limit_answer *out)
{
    copy_text(out->name, sizeof out->name, limit->name);
    out->allowed = limit->allowed;
    out->shadow = limit->shadow;
    out->unlimited = limit->unlimited;
    out->borrowed = limit->borrowed;
    out->overflow = limit->overflow;
    out->algorithm = limit->limit ? limit->limit->spec.algorithm : WEIR_FIXED_WINDOW;
    out->window_ns = limit->limit ? limit->limit->spec.window_ns : 0;
    out->warning = limit->warning.percent;
    out->cost = limit->cost;
    out->report = limit->unlimited ? (struct weir_report){0, 0, 0, 0} : limit->report;
}

/* The caller's array has limits of its own size. */
static void tell_limits(const struct weir_answer *told, const struct telling *telling)
{
    struct weir_limit_answer one;
    size_t size = telling->limit_size;
    char *to = (char *)telling->call->limits;
    for (uint16_t i = 0; i < told->count; i++, to += size) {
        bool same = size == sizeof one;
        tell_limit(&told->limits[i], same ? (struct weir_limit_answer *)(void *)to : &one);
        if (!same)
            weir_sized_tell(to, size, &one, sizeof one);
    }
}

/* The fields and the body, as far as the call has room for them. */
static void tell_http(const struct weir *weir, const struct weir_rules *rules,
                      const struct weir_answer *told, const struct telling *telling)
{
    const struct weir_call *call = telling->call;
    struct weir_answer_summary *answer = telling->answer;
    uint32_t dialects = weir_rules_settings(rules)->headers;
    uint64_t wall_s = 0;
    struct weir_denial_body body;
    answer->status = told->allowed ? 200 : weir_denial_status(told);
    answer->fields_size = answer->body_size = 0;
    answer->type[0] = '\0';
    if (call->fields) {
        if ((dialects & WEIR_HEADERS_X_EPOCH) != 0)
            wall_s = library_wall_time(weir) / UINT64_C(1000000000);
        answer->fields_size = weir_ratelimit_headers_write(dialects, told, wall_s, call->fields);
        if (!told->allowed)
            answer->fields_size +=
                weir_denial_fields_write(told, call->fields + answer->fields_size);
    }
    if (!call->body || told->allowed)
        return;
    weir_denial_body_write(told, answer->status, call->body, &body);
    if (body.text.size > WEIR_BODY_MAX)
        body.text.size = WEIR_BODY_MAX;
    if (body.text.data != call->body)
        memcpy(call->body, body.text.data, body.text.size);
    answer->body_size = body.text.size;
    copy_text(answer->type, sizeof answer->type, body.type);
}

/* Notes the places of the request in queues, to find out later whether others are behind it. */
static void tell_places(const struct weir_decision *decision, struct weir_reservation_token *token)
{
    struct weir_report report;
    unsigned part = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        if (!weir_reservation_has(decision, i))
            continue;
        if (decision->outcomes[i].charged && check->limit->spec.algorithm == WEIR_LEAKY_QUEUE) {
            weir_decision_report_whole(decision, i, &report);
            token->places[token->place_count++] =
                (struct weir_queue_place){.hash = {check->hash[0], check->hash[1]},
                                          .until_ns = decision->now_ns + report.reset_after_ns,
                                          .part = part};
        }
        part++;
    }
}

static void tell_reservation(struct weir_lane *lane, const struct weir_decision *decision,
                             const struct weir_call *call, const struct weir_answer_summary *answer)
{
    struct weir_reservation_token *token = call->reservation;
    uint64_t life_ns, id;
    bool wanted = call->reserve == WEIR_RESERVE_ALWAYS ||
                  (call->reserve == WEIR_RESERVE_DELAYED && answer->delay_ns > 0);
    token->text[0] = '\0';
    token->place_count = 0;
    if (!wanted || !answer->allowed || call->peek || call->cost == 0 || call->idempotency_key ||
        !weir_engine_reserved(decision))
        return;
    size_t size = weir_engine_reservation(lane->engine, decision, decision->now_ns, &life_ns, &id,
                                          token->text);
    token->text[size] = '\0';
    tell_places(decision, token);
}

static void tell_standing(const struct weir_answer *told, struct weir_answer_summary *answer)
{
    const struct weir_answer_standing *standing = &told->standing;
    if (standing->level.data) {
        copy_text(answer->standing, sizeof answer->standing, standing->level);
        copy_text(answer->reason, sizeof answer->reason,
                  (struct weir_bytes){standing->reason.data ? standing->reason.data : "",
                                      standing->reason.data ? standing->reason.size : 0});
    }
    if (told->denied_by < 0 && standing->refused)
        copy_text(answer->denied_by, sizeof answer->denied_by,
                  weir_answer_refuser(standing->unknown));
}

static void summarise(const struct weir_decision *decision, struct weir_answer *told,
                      struct weir_answer_summary *answer)
{
    weir_engine_answer(decision, told, answer->lease.text);
    answer->lease.text[told->lease.data ? told->lease.size : 0] = '\0';
    answer->allowed = told->allowed;
    answer->repeated = told->repeated;
    answer->store_failed = decision->error != 0;
    answer->retry_after_ns = told->retry_after_ns;
    answer->delay_ns = told->delay_ns;
    answer->action = told->action != WEIR_ACTION_NONE ? weir_action_name(told->action) : NULL;
    answer->remaining = WEIR_NEVER;
    answer->warning = 0;
    answer->limit_count = told->count;
    for (uint16_t i = 0; i < told->count; i++) {
        const struct weir_answer_limit *limit = &told->limits[i];
        if (!limit->shadow && !limit->unlimited && limit->report.remaining < answer->remaining)
            answer->remaining = limit->report.remaining;
        if (limit->warning.percent > answer->warning)
            answer->warning = limit->warning.percent;
    }
    answer->denied_by[0] = answer->standing[0] = answer->reason[0] = answer->class_name[0] = '\0';
    if (told->denied_by >= 0)
        copy_text(answer->denied_by, sizeof answer->denied_by, told->limits[told->denied_by].name);
    tell_standing(told, answer);
    const char *class_name = weir_decision_class(decision);
    if (class_name)
        copy_text(answer->class_name, sizeof answer->class_name, weir_bytes_of(class_name));
}

static void tell(const struct weir *weir, struct weir_lane *lane,
                 const struct weir_decision *decision, const struct telling *telling)
{
    struct weir_answer told;
    const struct weir_call *call = telling->call;
    summarise(decision, &told, telling->answer);
    if (call->limits)
        tell_limits(&told, telling);
    tell_http(weir, weir_decision_rules(decision), &told, telling);
    if (call->reservation)
        tell_reservation(lane, decision, call, telling->answer);
}

/* Counts a request that was decided. */
static void count(const struct weir_lane *lane, const struct weir_answer_summary *answer)
{
    struct weir_edge_results *results = lane->results;
    if (!results)
        return;
    if (__builtin_expect(lane->standing.missing, 0))
        weir_count(&results->unknown, 1);
    if (__builtin_expect(answer->store_failed, 0))
        weir_count(weir_edge_failed(lane->edge, results), 1);
    weir_count(&results->counts[!answer->allowed        ? WEIR_EDGE_DENIED
                                : answer->delay_ns != 0 ? WEIR_EDGE_DELAYED
                                                        : WEIR_EDGE_ALLOWED],
               1);
}

/* --- Deciding --------------------------------------------------------------------------------- */

void library_decide(struct weir *weir, struct weir_lane *lane, struct weir_decision *decision)
{
    weir_engine_decide(lane->engine, decision, library_now(weir, lane));
}

/* Fills a decision of the lane. */
static int prepare(struct weir_lane *lane, const struct weir_request *request,
                   const struct weir_call *call, struct weir_decision *decision)
{
    int err = weir_engine_apply_rules(lane->engine, decision, request, NULL);
    return err < 0 ? err : apply(lane, decision, call);
}

static void answer_decision(struct weir *weir, struct weir_lane *lane,
                            const struct weir_decision *decision, const struct telling *telling)
{
    tell(weir, lane, decision, telling);
    if (!telling->call->peek)
        count(lane, telling->answer);
}

static int check_in(struct weir *weir, struct weir_lane *lane, const struct asked *asked,
                    const struct telling *telling)
{
    struct weir_request request;
    library_renew_standing(weir, lane);
    int err = fill_request(weir, lane, asked, &request);
    if (err < 0)
        return err;
    struct weir_decision *decision = weir_engine_take(lane->engine); /* there is one */
    err = prepare(lane, &request, asked->call, decision);
    if (err == 0) {
        library_decide(weir, lane, decision);
        answer_decision(weir, lane, decision, telling);
    }
    weir_engine_release(lane->engine, decision);
    return err;
}

static int check(struct weir *weir, const struct asked *asked, struct weir_answer_summary *answer,
                 size_t limit_size)
{
    const struct telling telling = {asked->call, answer, limit_size};
    int err = library_is_ours(weir) ? check_call(asked->call) : WEIR_ERR_UNSUPPORTED;
    if (err < 0)
        return err;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    err = check_in(weir, lane, asked, &telling);
    library_leave(weir, lane, err == 0 && answer->store_failed);
    return err;
}

/* --- Several at once -------------------------------------------------------------------------- */

/* Calls that are decided together. */
struct batch {
    struct weir *weir;
    struct weir_lane *lane;
    struct weir_decision *decisions[WEIR_LANE_DECISIONS];
    struct telling tellings[WEIR_LANE_DECISIONS];
    unsigned count;
    size_t decided;
    bool store_failed;
};

static void batch_decide(struct batch *batch)
{
    struct weir_lane *lane = batch->lane;
    if (batch->count == 0)
        return;
    do
        weir_engine_run(lane->engine, library_now(batch->weir, lane));
    while (weir_engine_waits(lane->engine));
    for (unsigned i = 0; i < batch->count; i++) {
        answer_decision(batch->weir, lane, batch->decisions[i], &batch->tellings[i]);
        batch->store_failed |= batch->tellings[i].answer->store_failed;
        weir_engine_release(lane->engine, batch->decisions[i]);
    }
    batch->decided += batch->count;
    batch->count = 0;
}

/* A request with joined fields is the last of its batch: the lane has room for those of one. */
static int batch_add(struct batch *batch, const struct telling *telling)
{
    struct weir_lane *lane = batch->lane;
    const struct asked asked = {.call = telling->call};
    struct weir_request request;
    int err = check_call(telling->call);
    if (err == 0)
        err = fill_request(batch->weir, lane, &asked, &request);
    if (err < 0)
        return err;
    struct weir_decision *decision = weir_engine_take(lane->engine);
    err = prepare(lane, &request, telling->call, decision);
    if (err < 0) {
        weir_engine_release(lane->engine, decision);
        return err;
    }
    weir_engine_queue(lane->engine, decision);
    batch->decisions[batch->count] = decision;
    batch->tellings[batch->count++] = *telling;
    if (batch->count == WEIR_LANE_DECISIONS || request.room_used > 0)
        batch_decide(batch);
    return 0;
}

/* --- Structs of the caller's size ------------------------------------------------------------- */

/* What WEIR_SIZES says. */
struct sizes {
    size_t call, answer, limit;
};

static struct sizes read_sizes(uint64_t sizes)
{
    return (struct sizes){sizes & 0xffff, sizes >> 16 & 0xffff, sizes >> 32};
}

/* Of a program that was built with other headers. */
__attribute__((noinline)) static int check_other(struct weir *weir, const struct weir_call *given,
                                                 struct weir_answer_summary *answer,
                                                 struct sizes sizes)
{
    struct weir_call room;
    struct weir_answer_summary whole;
    const struct asked asked = {.call = weir_sized(given, sizes.call, &room, sizeof room)};
    if (!asked.call)
        return WEIR_ERR_UNSUPPORTED;
    int err = check(weir, &asked, &whole, sizes.limit);
    if (err == 0)
        weir_sized_tell(answer, sizes.answer, &whole, sizeof whole);
    return err;
}

int weir_check_sized(struct weir *weir, const struct weir_call *call,
                     struct weir_answer_summary *answer, uint64_t sizes)
{
    const struct asked asked = {.call = call};
    if (__builtin_expect(sizes != WEIR_SIZES, 0))
        return check_other(weir, call, answer, read_sizes(sizes));
    return check(weir, &asked, answer, sizeof(struct weir_limit_answer));
}

int weir_check_named_sized(struct weir *weir, const struct weir_attribute_value *attributes,
                           size_t count, uint64_t cost, const char *idempotency_key,
                           struct weir_answer_summary *answer, size_t answer_size)
{
    struct weir_answer_summary whole;
    const struct weir_call call = {.cost = cost,
                                   .idempotency_key = idempotency_key,
                                   .idempotency_size =
                                       idempotency_key ? strlen(idempotency_key) : 0};
    const struct asked asked = {&call, attributes, count};
    if (__builtin_expect(answer_size == sizeof whole, 1))
        return check(weir, &asked, answer, 0);
    int err = check(weir, &asked, &whole, 0);
    if (err == 0)
        weir_sized_tell(answer, answer_size, &whole, sizeof whole);
    return err;
}

/* One after the other. */
static int check_many_others(struct weir *weir, const struct weir_call *calls,
                             struct weir_answer_summary *answers, int *errors, size_t count,
                             struct sizes sizes)
{
    int decided = 0;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        const char *call = (const char *)calls + i * sizes.call;
        char *answer = (char *)answers + i * sizes.answer;
        errors[i] = check_other(weir, (const void *)call,
                                (struct weir_answer_summary *)(void *)answer, sizes);
        decided += errors[i] == 0;
    }
    return decided;
}

int weir_check_many_sized(struct weir *weir, const struct weir_call *calls,
                          struct weir_answer_summary *answers, int *errors, size_t count,
                          uint64_t sizes)
{
    if (count > INT_MAX)
        return WEIR_ERR_RANGE;
    if (sizes != WEIR_SIZES)
        return check_many_others(weir, calls, answers, errors, count, read_sizes(sizes));
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct batch batch = {.weir = weir, .lane = weir_engine_slots_enter(&weir->lanes)};
    library_renew_standing(weir, batch.lane);
    for (size_t i = 0; i < count; i++)
        errors[i] = batch_add(
            &batch, &(struct telling){&calls[i], &answers[i], sizeof(struct weir_limit_answer)});
    batch_decide(&batch);
    library_leave(weir, batch.lane, batch.store_failed);
    return (int)batch.decided;
}

/* --- Outcomes --------------------------------------------------------------------------------- */

int weir_outcome_sized(struct weir *weir, const struct weir_call *given, unsigned status,
                       uint64_t sizes)
{
    struct weir_call room;
    struct weir_request request;
    const struct asked asked = {.call =
                                    weir_sized(given, read_sizes(sizes).call, &room, sizeof room)};
    if (status < WEIR_STATUS_MIN || status > WEIR_STATUS_MAX)
        return WEIR_ERR_RANGE;
    if (!asked.call || !library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    library_renew_standing(weir, lane);
    int err = fill_request(weir, lane, &asked, &request);
    if (err == 0) {
        struct weir_decision *decision = weir_engine_take(lane->engine); /* there is one */
        err = weir_engine_apply_rules(lane->engine, decision, &request, NULL);
        if (err == 0) {
            decision->op = WEIR_OP_PEEK;
            library_decide(weir, lane, decision);
            (void)weir_engine_strike_outcome(lane->engine, decision, status);
        }
        weir_engine_release(lane->engine, decision);
    }
    weir_engine_slots_leave(lane);
    return err;
}
