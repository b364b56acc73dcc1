/* SPDX-License-Identifier: Apache-2.0 */
/* see include/weir/embed.h */
#include <weir/embed.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <weir/version.h>

#include "core/bytes.h"
#include "engine/http/denial.h"
#include "engine/token/lease_token.h"
#include "feature/penalties/rules/penalty.h"
#include "feature/reserve/engine/reservation.h"
#include "feature/standing/standing.h"
#include "library/library.h"
#include "rules/known_names.h"
#include "rules/source.h"
#include "table/file/access.h"
#include "table/file/state_file.h"
#include "wire/http/forwarded.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/socket_address.h"

#define NAME_MESSAGE (3 * WEIR_ATTRIBUTE_NAME_MAX + 128)

_Static_assert(WEIR_LIMITS_MAX == WEIR_CHECKS_MAX, "an answer has room for every limit");
_Static_assert(WEIR_RATELIMIT_HEADERS_MAX + WEIR_DENIAL_FIELDS_MAX <= WEIR_FIELDS_MAX &&
                   WEIR_DENIAL_BODY_MAX <= WEIR_BODY_MAX,
               "what is written fits");
_Static_assert(sizeof(((struct weir_reservation_token *)NULL)->text) > WEIR_RESERVATION_TEXT_MAX,
               "every reservation fits, with its NUL");

/* --- Rules ------------------------------------------------------------------------------------ */

int weir_rules_check_file(const char *rules_file, weir_mistake tell, void *context,
                          struct weir_reason *reason)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    int err = library_load(&rules, rules_file, &problems, reason);
    for (uint32_t i = 0; tell && i < problems.count; i++) {
        const struct weir_problem *problem = &problems.list[i];
        tell(context, problem->file, problem->line, problem->column, problem->message);
    }
    weir_problems_free(&problems);
    if (err == 0)
        weir_rules_unref(rules);
    return err;
}

/* What is wrong with one name; empty: nothing. */
static void judge_name(const struct weir_rules *rules, const char *name, char message[NAME_MESSAGE])
{
    struct weir_bytes bytes = weir_bytes_of(name);
    message[0] = '\0';
    if (bytes.size > WEIR_ATTRIBUTE_NAME_MAX) {
        snprintf(message, NAME_MESSAGE, "the name is longer than %d bytes, so no rule can read it",
                 WEIR_ATTRIBUTE_NAME_MAX);
        return;
    }
    enum weir_name_state state = weir_rules_source(rules, name, bytes.size).state;
    const char *nearest = state == WEIR_NAME_UNKNOWN ? rules_nearest_name(rules, bytes) : NULL;
    if (state == WEIR_NAME_MADE)
        snprintf(message, NAME_MESSAGE, "weir makes `%s` itself, so what is given is ignored",
                 name);
    else if (nearest)
        snprintf(message, NAME_MESSAGE,
                 "`%s` is neither built in nor declared, so it is ignored; did you mean `%s`?",
                 name, nearest);
    else if (state == WEIR_NAME_UNKNOWN)
        snprintf(message, NAME_MESSAGE,
                 "`%s` is neither built in nor declared, so it is ignored; declare it in the rules "
                 "file: `attributes: [%s]`",
                 name, name);
}

int weir_rules_check_names(const char *rules_file, const char *const *names, size_t count,
                           weir_wrong_name tell, void *context)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    struct weir_reason reason = {""};
    char message[NAME_MESSAGE];
    int err = library_load(&rules, rules_file, &problems, &reason);
    weir_problems_free(&problems);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++) {
        judge_name(rules, names[i], message);
        if (message[0] != '\0')
            tell(context, i, message);
    }
    weir_rules_unref(rules);
    return 0;
}

/* --- Before opening --------------------------------------------------------------------------- */

/* What has been found. */
struct findings {
    weir_finding tell;
    void *context;
    int err; /* the first */
};

static void find(struct findings *findings, int err, const struct weir_reason *reason)
{
    if (err == 0)
        return;
    if (findings->err == 0)
        findings->err = err;
    if (findings->tell)
        findings->tell(findings->context,
                       reason->text[0] != '\0' ? reason->text : weir_error_text(err));
}

static void check_state(struct findings *findings, struct weir_rules *rules,
                        const struct weir_options *options)
{
    struct weir_table_options table = library_table_options(rules, options);
    uint32_t limits, specs;
    struct weir_reason reason = {{0}};
    table.path = options->state_file ? options->state_file : weir_rules_settings(rules)->state_file;
    find(findings, weir_table_check_access(&table, &reason), &reason);
    int err = weir_rules_distinct(rules, &limits, &specs);
    reason.text[0] = '\0';
    if (err == 0)
        err = weir_table_check_room(&table, limits, specs, &reason);
    find(findings, err, &reason);
}

/* One that is not there yet is as good as an empty one. */
static void check_map(struct findings *findings, const struct weir_rules *rules)
{
    const char *path = weir_rules_settings(rules)->standing.map;
    struct weir_standing *map = NULL;
    struct weir_reason reason = {{0}};
    int err = path ? weir_standing_open(&map, path, &reason) : 0;
    weir_standing_close(map);
    if (err != WEIR_ERR_NOT_FOUND)
        find(findings, err, &reason);
}

int weir_open_check(const char *rules_file, const struct weir_options *options, weir_finding tell,
                    void *context)
{
    static const struct weir_options defaults = {.state_file = NULL};
    struct findings findings = {tell, context, 0};
    struct weir_problems problems = {0};
    struct weir_reason reason = {{0}};
    struct weir_rules *rules;
    int err = library_load(&rules, rules_file, &problems, &reason);
    weir_problems_free(&problems);
    find(&findings, err, &reason);
    if (err < 0)
        return err;
    check_state(&findings, rules, options ? options : &defaults);
    check_map(&findings, rules);
    weir_rules_unref(rules);
    return findings.err;
}

/* --- Attributes ------------------------------------------------------------------------------- */

enum weir_on_store_error weir_rules_on_store_error(const char *rules_file)
{
    static const enum weir_on_store_error words[] = {
        [WEIR_FAIL_LOCAL] = WEIR_ON_STORE_ERROR_LOCAL,
        [WEIR_FAIL_OPEN] = WEIR_ON_STORE_ERROR_OPEN,
        [WEIR_FAIL_CLOSED] = WEIR_ON_STORE_ERROR_CLOSED,
    };
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    enum weir_on_store_error says = WEIR_ON_STORE_ERROR_NONE;
    if (weir_rules_load(&rules, rules_file, &problems) == 0) {
        const struct weir_settings *settings = weir_rules_settings(rules);
        if (settings->on_store_error_given)
            says = words[settings->on_store_error];
        weir_rules_unref(rules);
    }
    weir_problems_free(&problems);
    return says;
}

bool weir_passes(int err, enum weir_on_store_error rules, bool open_before)
{
    if (weir_error_fault(err) != WEIR_FAULT_STATE)
        return false;
    if (rules == WEIR_ON_STORE_ERROR_NONE)
        return open_before && weir_still_takes(WEIR_REFUSED_FROM);
    return rules == WEIR_ON_STORE_ERROR_OPEN;
}

const char *weir_on_store_error_warning(enum weir_on_store_error rules, bool open_before)
{
    if (rules != WEIR_ON_STORE_ERROR_NONE || !open_before || !weir_still_takes(WEIR_REFUSED_FROM))
        return NULL;
    return "the rules file does not say what happens to requests while the state cannot be opened: "
           "they pass, and from weir " WEIR_REFUSED_FROM
           " on each process decides by its own counts; write `on_store_error: open`, "
           "`on_store_error: local` or `on_store_error: closed`";
}

int weir_state_check(struct weir *weir, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    return library_is_ours(weir) ? weir_absence_why(&weir->absence, reason) : WEIR_ERR_UNSUPPORTED;
}

int weir_penalties_check(struct weir *weir, uint64_t *lost, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    if (lost)
        *lost = atomic_load_explicit(&weir->strikes.lost, memory_order_relaxed);
    return weir_library_strikes_check(&weir->strikes, reason);
}

int weir_attribute(struct weir *weir, const char *name)
{
    return weir_attributes_add(&weir->attributes, name);
}

int weir_front(struct weir *weir, const char *name)
{
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    bool nginx = strcmp(name, "nginx") == 0;
    if (!nginx && strcmp(name, "library") != 0)
        return WEIR_ERR_RANGE;
    weir->names_are_configured = nginx;
    weir_engine_slots_set_front(&weir->lanes, nginx ? WEIR_EDGE_NGINX : WEIR_EDGE_LIBRARY);
    return 0;
}

static bool is_handle(const struct weir *weir, int attribute)
{
    return attribute >= 0 && (unsigned)attribute < weir->attributes.count;
}

const char *weir_attribute_name(const struct weir *weir, int attribute)
{
    return is_handle(weir, attribute) ? weir->attributes.names[attribute] : NULL;
}

bool weir_attribute_read(const struct weir *weir, int attribute)
{
    if (!is_handle(weir, attribute) || !library_is_ours(weir))
        return false;
    struct weir *shared = (struct weir *)(uintptr_t)weir; /* a lane is internally locked */
    struct weir_lane *lane = weir_engine_slots_enter(&shared->lanes);
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    const char *name = weir->attributes.names[attribute];
    bool read = weir_rules_source(rules, name, strlen(name)).state == WEIR_NAME_READ;
    weir_engine_slots_leave(lane);
    return read;
}

bool weir_rules_refund(struct weir *weir)
{
    if (!library_is_ours(weir))
        return false;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    bool refunds = weir_rules_refunds(weir_engine_rules(lane->engine));
    weir_engine_slots_leave(lane);
    return refunds;
}

/* --- Checking --------------------------------------------------------------------------------- */

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
    struct weir_attribute_source source = map->sources[handle];
    bool header = (source.flags & WEIR_NAME_HEADER) != 0;
    if (source.attribute == WEIR_ATTR_CLIENT_IP && call->client)
        return;
    if (source.state == WEIR_NAME_UNKNOWN)
        weir_request_unknown(request, weir->attributes.names[handle],
                             strlen(weir->attributes.names[handle]));
    if (of_request)
        source.flags |= WEIR_NAME_OF_REQUEST;
    weir_request_put(request, source, (struct weir_bytes){value->data, value->size},
                     header && call->untrusted ? WEIR_TRUST_CLIENT : WEIR_TRUST_CONFIGURATION);
}

static int fill_request(const struct weir *weir, struct weir_lane *lane,
                        const struct weir_call *call, struct weir_request *request)
{
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    const struct weir_attribute_map *map = map_of(weir, lane, rules);
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
    client = request->client;
    int err = find_client(&client, call, weir_rules_settings(rules));
    weir_request_put_client(request, &client);
    return err < 0 ? err : weir_request_end(request, NULL);
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
    if (life_ns != 0 &&
        (life_ns < WEIR_RESERVATION_LIFE_MIN_NS || life_ns > WEIR_RESERVATION_LIFE_MAX_NS))
        return WEIR_ERR_RANGE;
    return 0;
}

static void tell_limit(const struct weir_answer_limit *limit, struct weir_limit_answer *out)
{
    size_t size = limit->name.size < sizeof out->name ? limit->name.size : sizeof out->name - 1;
    memcpy(out->name, limit->name.data, size);
    out->name[size] = '\0';
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

/* The fields and the body, as far as the call has room for them. */
static void tell_http(const struct weir *weir, const struct weir_rules *rules,
                      const struct weir_answer *told, const struct weir_call *call,
                      struct weir_full_answer *answer)
{
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
    snprintf(answer->type, sizeof answer->type, "%.*s", (int)body.type.size, body.type.data);
}

/* Notes the places of the request in queues, to find out later whether others are behind it. */
static void tell_places(const struct weir_decision *decision, struct weir_reservation_token *token)
{
    struct weir_report report;
    unsigned part = 0;
    token->place_count = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        if (!weir_reservation_covers(decision, i) || !decision->outcomes[i].charged)
            continue;
        if (check->limit->spec.algorithm == WEIR_LEAKY_QUEUE) {
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
                             const struct weir_call *call, struct weir_full_answer *answer)
{
    struct weir_reservation_token *token = &answer->reservation;
    const struct weir_answer_summary *summary = &answer->summary;
    uint64_t life_ns, id;
    bool wanted = call->reserve == WEIR_RESERVE_ALWAYS ||
                  (call->reserve == WEIR_RESERVE_DELAYED && summary->delay_ns > 0);
    token->text[0] = '\0';
    token->place_count = 0;
    if (!wanted || !summary->allowed || call->peek || call->cost == 0 || call->idempotency_key ||
        !weir_engine_reserved(decision))
        return;
    size_t size = weir_engine_reservation(lane->engine, decision, decision->now_ns, &life_ns, &id,
                                          token->text);
    token->text[size] = '\0';
    tell_places(decision, token);
}

static void tell(const struct weir *weir, struct weir_lane *lane,
                 const struct weir_decision *decision, const struct weir_call *call,
                 struct weir_full_answer *answer)
{
    struct weir_answer told;
    const char *class_name = weir_decision_class(decision);
    library_summarise(decision, &told, &answer->summary);
    answer->class_name[0] = '\0';
    if (class_name)
        snprintf(answer->class_name, sizeof answer->class_name, "%s", class_name);
    answer->limit_count = told.count;
    for (uint16_t i = 0; i < told.count; i++)
        tell_limit(&told.limits[i], &answer->limits[i]);
    tell_http(weir, weir_decision_rules(decision), &told, call, answer);
    tell_reservation(lane, decision, call, answer);
}

/* Decides a filled decision of the lane. A settlement takes several runs. */
static void decide(struct weir *weir, struct weir_lane *lane, struct weir_decision *decision)
{
    weir_engine_queue(lane->engine, decision);
    do
        weir_engine_run(lane->engine, library_now(weir, lane));
    while (weir_engine_waits(lane->engine));
}

int weir_check_full(struct weir *weir, const struct weir_call *call,
                    struct weir_full_answer *answer)
{
    struct weir_request request;
    int err = library_is_ours(weir) ? check_call(call) : WEIR_ERR_UNSUPPORTED;
    if (err < 0)
        return err;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    library_renew_standing(weir, lane);
    err = fill_request(weir, lane, call, &request);
    if (err == 0) {
        struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
        err = weir_engine_apply_rules(lane->engine, decision, &request, NULL);
        if (err == 0)
            err = apply(lane, decision, call);
        if (err == 0) {
            decide(weir, lane, decision);
            tell(weir, lane, decision, call, answer);
            if (!call->peek)
                library_count(lane, &answer->summary);
        }
        weir_engine_release(lane->engine, decision);
    }
    library_leave(weir, lane, err == 0 && answer->summary.store_failed);
    return err;
}

/* --- After the request ------------------------------------------------------------------------ */

static struct weir_bytes text_of(const struct weir_reservation_token *reservation)
{
    return (struct weir_bytes){reservation->text,
                               strnlen(reservation->text, sizeof reservation->text)};
}

static int settle(struct weir *weir, const struct weir_reservation_token *reservation,
                  const struct weir_settle *how)
{
    struct weir_settled settled;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_settle(lane->engine, decision, text_of(reservation), how,
                                       library_now(weir, lane));
    if (err == 0) {
        decide(weir, lane, decision);
        weir_engine_settled(decision, &settled);
        if (settled.failed)
            err = WEIR_ERR_BUSY;
    }
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err;
}

int weir_settle(struct weir *weir, const struct weir_reservation_token *reservation, uint64_t cost)
{
    const struct weir_settle how = {.how = WEIR_SETTLE_COST, .cost = cost};
    return settle(weir, reservation, &how);
}

/* Most outcomes change nothing, and then no record of them is made. */
static bool gives_back(struct weir *weir, unsigned status)
{
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    uint32_t count = weir_rules_count(rules), i = 0;
    while (i < count && !weir_rules_gives_back(rules, i, status))
        i++;
    weir_engine_slots_leave(lane);
    return i < count;
}

/* Whether it is a token of this state, be its life over or not: else an outcome that changes
 * nothing would hide that a program reports what it never reserved. */
static int check_token(struct weir *weir, const struct weir_reservation_token *reservation,
                       const struct weir_settle *how)
{
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_settle(lane->engine, decision, text_of(reservation), how,
                                       library_now(weir, lane));
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err == WEIR_ERR_SYNTAX ? err : 0;
}

int weir_report(struct weir *weir, const struct weir_reservation_token *reservation,
                unsigned status)
{
    const struct weir_settle how = {.how = WEIR_SETTLE_STATUS, .status = status};
    if (status < WEIR_STATUS_MIN || status > WEIR_STATUS_MAX)
        return WEIR_ERR_RANGE;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    return gives_back(weir, status) ? settle(weir, reservation, &how)
                                    : check_token(weir, reservation, &how);
}

bool weir_rules_outcome(struct weir *weir, unsigned status)
{
    if (!library_is_ours(weir))
        return false;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    bool strikes = weir_rules_strikes(weir_engine_rules(lane->engine), status);
    weir_engine_slots_leave(lane);
    return strikes;
}

int weir_outcome(struct weir *weir, const struct weir_call *call, unsigned status)
{
    struct weir_request request;
    if (status < WEIR_STATUS_MIN || status > WEIR_STATUS_MAX)
        return WEIR_ERR_RANGE;
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    library_renew_standing(weir, lane);
    int err = fill_request(weir, lane, call, &request);
    if (err == 0) {
        struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
        err = weir_engine_apply_rules(lane->engine, decision, &request, NULL);
        if (err == 0) {
            decision->op = WEIR_OP_PEEK;
            decide(weir, lane, decision);
            (void)weir_engine_strike_outcome(lane->engine, decision, status);
        }
        weir_engine_release(lane->engine, decision);
    }
    weir_engine_slots_leave(lane);
    return err;
}

/* Whether the request of this place is the last in its queue. */
static bool is_last(struct weir *weir, struct weir_lane *lane, const struct weir_queue_place *place)
{
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    decision->checks[0] =
        (struct weir_check){.hash = {place->hash[0], place->hash[1]}, .rule = UINT32_MAX};
    decision->count = 1;
    decision->op = WEIR_OP_LOOK;
    decide(weir, lane, decision);
    bool last = decision->error == 0 && decision->verdict == WEIR_ALLOWED &&
                decision->now_ns + decision->outcomes[0].report.reset_after_ns == place->until_ns;
    weir_engine_release(lane->engine, decision);
    return last;
}

int weir_cancel(struct weir *weir, const struct weir_reservation_token *reservation)
{
    struct weir_settle how = {.how = WEIR_SETTLE_RELEASE};
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    for (unsigned i = 0; i < reservation->place_count && i < WEIR_LIMITS_MAX; i++)
        if (!is_last(weir, lane, &reservation->places[i]))
            how.keep |= UINT32_C(1) << reservation->places[i].part % WEIR_LIMITS_MAX;
    weir_engine_slots_leave(lane);
    return settle(weir, reservation, &how);
}

/* --- Leases that live with their process -------------------------------------------------------
 */

int weir_renew(struct weir *weir, const struct weir_lease_token *lease)
{
    struct weir_lease_fields fields;
    struct weir_bytes token = {lease->text, strnlen(lease->text, sizeof lease->text)};
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    int err = weir_lease_token_read(&fields, token);
    if (err < 0)
        return err;
    if (fields.place != WEIR_LEASE_TOKEN_TABLE) /* of the memory that decides while it is stopped */
        return WEIR_ERR_NOT_FOUND;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_table_owner *owner = weir_store_embedded_owner(lane->store);
    uint64_t now_ns = library_now(weir, lane);
    for (uint16_t i = 0; i < fields.count; i++) {
        int one = weir_table_renew(owner, now_ns, fields.hash[i], fields.id);
        if (err == 0)
            err = one;
    }
    weir_engine_slots_leave(lane);
    return err;
}

/* About 3 ms: a call is to hold up nobody. */
#define TEND_BUCKETS 65536

/* Whether an owner of a slot has died since the last look, at which `before` was alive (0: none
 * was) and `generation` was the slot's: one of then, or one that has come and gone meanwhile. */
static bool has_died(uint64_t before, uint32_t generation, uint64_t alive, uint32_t last)
{
    if (before != 0 && before != alive)
        return true;
    return last != generation && (alive == 0 || last != generation + 1);
}

/* Notes who is alive. Returns whether an owner is no more. The generations are read first: who
 * attaches meanwhile is new at the next look, too. */
static bool has_lost_owner(struct weir *weir)
{
    struct weir_lease_owners now;
    uint32_t generations[WEIR_LEASE_OWNERS];
    const struct weir_table *table = weir->table;
    bool lost = false, same = table == weir->looked_at;
    weir->looked_at = table;
    weir_table_owner_generations(table, generations);
    weir_table_lease_owners(table, &now);
    for (unsigned i = 0; i < WEIR_LEASE_OWNERS; i++) {
        if (now.id[i] != 0)
            generations[i] = (uint32_t)(now.id[i] / WEIR_LEASE_OWNERS);
        lost |=
            same && has_died(weir->owners.id[i], weir->generations[i], now.id[i], generations[i]);
        weir->generations[i] = generations[i];
    }
    weir->owners = now;
    return lost;
}

/* A death begins the walk anew: what it has left behind may be in front of it. */
long weir_tend(struct weir *weir)
{
    if (!library_is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    weir_engine_slots_renew_edge(&weir->lanes);
    bool lost = has_lost_owner(weir);
    if (!lost && weir->tended == 0)
        return 0;
    if (lost)
        weir->tended = 0;
    return (long)library_end_dead(weir, TEND_BUCKETS);
}
