/* SPDX-License-Identifier: Apache-2.0 */
/* The admin listener: health, metrics, limits, the most denied keys, one key's state. See
 * http/http.h and docs/http-api.md. */
#include "server/admin/api.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/priority/rules/priority.h"
#include "feature/region/server/acted.h"
#include "feature/score/server/metrics.h"
#include "feature/standing/settings.h"
#include "feature/use/engine/top_denied.h"
#include "feature/use/server/consumers_api.h"
#include "feature/use/server/daemon.h"
#include "rules/match/key_values.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/admin/grant_api.h"
#include "server/admin/limit_json.h"
#include "server/admin/metrics.h"
#include "server/daemon/readiness.h"
#include "server/daemon/services/services.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/pressure/pressure_log.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

/* Keys that /top lists, and what ?count= may ask for. */
#define TOP_DEFAULT 20
#define TOP_MAX 1000
/* What /readyz says of keys that find no room: counts, and the names of a few limits. */
#define READYZ_ROOM_MAX 512

static struct weir_daemon *call_daemon(const struct weir_http_call *call)
{
    return call->http->server;
}

/* --- Health, metrics -------------------------------------------------------------------------- */

static void healthz_handle(struct weir_http_call *call)
{
    weir_http_reply(call, WEIR_HTTP_200, NULL, "text/plain", "ok\n", 3);
}

/* Adds who does not reach `what`, where anybody does not. */
static void readyz_tell(char *text, size_t room, const char *what, unsigned without, unsigned of)
{
    size_t used = strlen(text);
    if (without > 0)
        snprintf(text + used, room - used, "%s %s not reached by %u of %u workers",
                 text[used - 1] == ':' ? "" : ",", what, without, of);
}

/* This makes it no less ready. Everybody may ask, but not for the names of limits. */
static void readyz_tell_room(struct weir_http_call *call, char *text, size_t room)
{
    char more[READYZ_ROOM_MAX];
    size_t used = strlen(text);
    if (!weir_daemon_is_pressed(call_daemon(call)))
        return;
    weir_daemon_pressure_text(call_daemon(call), weir_admin_may_read(call), more, sizeof more);
    snprintf(text + used, room - used, "%s %s", strchr(text, ':') ? "," : ":", more);
}

static void readyz_handle(struct weir_http_call *call)
{
    char text[256 + WEIR_REASON_MAX + READYZ_ROOM_MAX] = "ready", refusal[WEIR_REASON_MAX] = "";
    struct weir_daemon *daemon = call_daemon(call);
    struct weir_readiness readiness;
    weir_daemon_readiness(daemon, daemon->rules, &readiness);
    bool store = readiness.without_store > 0, identities = readiness.without_identities > 0;
    bool ready = readiness.limits && readiness.envoy && !readiness.stopped;
    enum weir_http_status status = daemon->stopping || !ready ? WEIR_HTTP_503 : WEIR_HTTP_200;
    if (daemon->stopping) {
        snprintf(text, sizeof text, "stopping");
    } else if (readiness.stopped) {
        snprintf(text, sizeof text,
                 "not ready: a process that shares the state file is stopped (pid %u)",
                 readiness.stopped);
    } else if (store || identities) {
        snprintf(text, sizeof text, "%s:",
                 !ready        ? "not ready"
                 : !identities ? "ready, by on_store_error"
                 : !store      ? "ready, by on_error"
                               : "ready, by on_store_error and on_error");
        readyz_tell(text, sizeof text, "the store is", readiness.without_store, readiness.workers);
        if (store)
            weir_shared_store_refusal(weir_daemon_shared(daemon), refusal);
        if (refusal[0] != '\0')
            snprintf(text + strlen(text), sizeof text - strlen(text), " (%s)", refusal);
        readyz_tell(text, sizeof text, "identities are", readiness.without_identities,
                    daemon->worker_count);
    }
    weir_services_ready(daemon, text, sizeof text);
    readyz_tell_room(call, text, sizeof text);
    char line[sizeof text + 1];
    int size = snprintf(line, sizeof line, "%s\n", text);
    weir_http_reply(call, status, NULL, "text/plain", line, (size_t)size);
}

static void metrics_handle(struct weir_http_call *call)
{
    struct weir_buffer *text = weir_buffer_take(&call->worker->buffers, WEIR_BUFFER_SIZE_MIN);
    if (text)
        text = weir_metrics_write(call_daemon(call), text);
    if (!text) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "out of memory for the metrics");
        return;
    }
    weir_http_reply(call, WEIR_HTTP_200, NULL, "text/plain; version=0.0.4; charset=utf-8",
                    text->data, text->used);
    weir_buffer_give(&call->worker->buffers, text);
}

/* A number, or one for each class of clients. */
static json_t *difficulty_json(const struct weir_challenge_settings *challenge)
{
    if (!challenge->by_class)
        return json_integer(challenge->difficulty[0]);
    json_t *classes = json_object();
    for (unsigned i = 0; i < WEIR_CLASSES; i++)
        json_object_set_new(classes, weir_class_name((uint8_t)i),
                            json_integer(challenge->difficulty[i]));
    return classes;
}

/* --- Limits ----------------------------------------------------------------------------------- */

static json_t *score_json(const struct weir_daemon *daemon)
{
    uint64_t requests[WEIR_CLASSES];
    json_t *classes = json_object();
    weir_score_requests(daemon, requests);
    for (unsigned i = 0; i < WEIR_CLASSES; i++)
        json_object_set_new(classes, weir_class_name((uint8_t)i),
                            json_integer((json_int_t)requests[i]));
    return json_pack("{s:o}", "requests", classes);
}

static void limits_list(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call_daemon(call);
    struct weir_table_stats table;
    json_t *list = json_array();
    for (uint32_t i = 0; i < weir_rules_count(daemon->rules); i++)
        json_array_append_new(list, weir_limit_json(daemon, i));
    if (weir_rules_settings(daemon->rules)->standing->kinds_count > 0)
        json_array_append_new(list, weir_standing_limit_json(daemon));
    weir_table_stats(daemon->table, weir_worker_time(call->worker), &table);
    json_t *answer =
        json_pack("{s:o, s:I, s:I}", "limits", list, "evictions", (json_int_t)table.evictions,
                  "overflows", (json_int_t)table.overflows);
    if (answer && weir_rules_priority(daemon->rules))
        json_object_set_new(answer, "priority", weir_priority_json(daemon->rules));
    const struct weir_challenge_settings *challenge =
        &weir_rules_settings(daemon->rules)->challenge;
    if (answer && challenge->keys)
        json_object_set_new(answer, "challenge",
                            json_pack("{s:o, s:I}", "difficulty", difficulty_json(challenge),
                                      "life_s", (json_int_t)(challenge->life_ns / 1000000000)));
    if (answer && weir_daemon_use(daemon))
        json_object_set_new(answer, "requests", weir_use_requests_json(weir_daemon_use(daemon)));
    if (answer && weir_rules_score(daemon->rules))
        json_object_set_new(answer, "score", score_json(daemon));
    weir_admin_reply_json(call, answer);
}

/* --- The most denied keys --------------------------------------------------------------------- */

/* The path, and each byte of what is shown of a key encoded. */
#define STATE_PATH_MAX (64 + WEIR_HEAVY_NAME_MAX + 8 * WEIR_SHOWN_MAX)

static size_t put_encoded(char *out, struct weir_bytes text)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = c > 0x20 && c < 0x7f && !strchr("%&#+?\"<>", c) &&
                     !(c == '-' && text.size == 1); /* which says that a value is missing */
        if (plain)
            out[size++] = (char)c;
        else
            size += (size_t)snprintf(out + size, 4, "%%%02X", c);
    }
    return size;
}

/* The parameters that put one key's state into the address of its own resource. False: some value
 * is not known whole, or would be read as an address. */
static bool top_state_path(const struct weir_heavy_entry *entry, char out[STATE_PATH_MAX])
{
    struct weir_bytes packed = {entry->text, entry->text_size};
    struct weir_shown value;
    size_t used = (size_t)snprintf(out, STATE_PATH_MAX, "/v1/limits/%.*s/state",
                                   (int)entry->name_size, entry->name);
    for (char before = '?'; weir_shown_next(&packed, &value); before = '&') {
        const char *prefix = value.form == WEIR_SHOWN_MISSING   ? "-"
                             : value.form == WEIR_SHOWN_ADDRESS ? "ip:"
                                                                : "";
        bool like_address = value.form == WEIR_SHOWN_WHOLE && value.value.size > 3 &&
                            !memcmp(value.value.data, "ip:", 3);
        if (value.form > WEIR_SHOWN_ADDRESS || like_address)
            return false;
        used += (size_t)snprintf(out + used, STATE_PATH_MAX - used, "%ckey=%s", before, prefix);
        used += put_encoded(out + used, value.value);
    }
    out[used] = 0;
    return true;
}

static json_t *top_entry(const struct weir_heavy_entry *entry, bool has_state)
{
    char path[STATE_PATH_MAX];
    json_t *object = json_pack("{s:I, s:I}", "denied", (json_int_t)entry->count, "error",
                               (json_int_t)entry->error);
    if (object)
        weir_consumers_name(object, entry);
    if (object && has_state && top_state_path(entry, path))
        json_object_set_new(object, "state", json_string(path));
    return object;
}

static uint64_t top_count(struct weir_bytes query)
{
    struct weir_bytes name, value;
    uint64_t count = TOP_DEFAULT;
    while (weir_http_next_parameter(&query, &name, &value)) {
        if (!weir_bytes_are(name, "count"))
            continue;
        count = 0;
        for (size_t i = 0; i < value.size && count <= TOP_MAX; i++) {
            if (value.data[i] < '0' || value.data[i] > '9')
                return 0;
            count = count * 10 + (uint64_t)(value.data[i] - '0');
        }
    }
    return count > TOP_MAX ? TOP_MAX : count;
}

/* `has_state`: it is a limit; else the standing of callers. */
static void top_reply(struct weir_http_call *call, struct weir_bytes name, bool has_state)
{
    struct weir_daemon *daemon = call_daemon(call);
    size_t max = (size_t)WEIR_TOP_DENIED_KEYS * daemon->worker_count, count = 0;
    struct weir_heavy_entry *list = calloc(max, sizeof *list);
    json_t *keys = json_array();
    for (unsigned i = 0; list && i < daemon->worker_count; i++)
        count = weir_top_denied_collect(weir_engine_top_denied(daemon->workers[i]->engine), name,
                                        list, count, max);
    if (list)
        weir_top_denied_sort(list, count);
    uint64_t wanted = top_count(call->request->query);
    for (size_t i = 0; i < count && i < wanted; i++)
        json_array_append_new(keys, top_entry(&list[i], has_state));
    free(list);
    weir_admin_reply_json(call,
                          json_pack("{s:s%, s:o}", "limit", name.data, name.size, "keys", keys));
}

/* The limit that the path names; -1: none, which it has answered. */
static int limit_of(struct weir_http_call *call)
{
    int rule = weir_rules_find(weir_worker_rules(call->worker), call->part.data, call->part.size);
    if (rule < 0)
        weir_admin_refuse_limit(call, call->part);
    return rule;
}

static void limit_handle(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    int rule = weir_rules_find(daemon->rules, call->part.data, call->part.size);
    if (rule >= 0)
        weir_admin_reply_json(call, weir_limit_json(daemon, (uint32_t)rule));
    else if (weir_bytes_are(call->part, WEIR_ANSWER_BY_STANDING) &&
             weir_rules_settings(daemon->rules)->standing->kinds_count > 0)
        weir_admin_reply_json(call, weir_standing_limit_json(daemon));
    else
        weir_admin_refuse_limit(call, call->part);
}

static void top_handle(struct weir_http_call *call)
{
    const struct weir_rules *rules = weir_worker_rules(call->worker);
    bool is_limit = weir_rules_find(rules, call->part.data, call->part.size) >= 0;
    bool standing = weir_bytes_are(call->part, WEIR_ANSWER_BY_STANDING) &&
                    weir_rules_settings(rules)->standing->kinds_count > 0;
    if (is_limit || standing)
        top_reply(call, call->part, is_limit);
    else
        weir_admin_refuse_limit(call, call->part);
}

/* --- One key's state -------------------------------------------------------------------------- */

static void bought_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    if (!slot->decision->error) {
        weir_admin_write_bought(slot, output, "{");
        return;
    }
    weir_http_write_problem(slot, output, WEIR_HTTP_503, weir_error_text(slot->decision->error));
    weir_worker_give(http->worker, slot->decision);
}

static void state_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    weir_engine_answer(slot->decision, &http->answer, http->lease);
    size_t size = weir_answer_json_write(&http->answer, http->json);
    if (slot->decision->error) /* what on_store_error would say is not this key's state */
        weir_http_write_problem(slot, output, WEIR_HTTP_503,
                                weir_error_text(slot->decision->error));
    else
        weir_http_write(slot, output, WEIR_HTTP_200, "application/json", http->json, size);
    weir_worker_give(http->worker, slot->decision);
}

static void removed_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    char acted[WEIR_ACTED_MAX], removed[WEIR_ACTED_MAX + 32];
    if (weir_acted_problem(decision, acted)) {
        weir_http_write_problem(slot, output, WEIR_HTTP_503, acted);
        weir_worker_give(slot->connection->worker, slot->decision);
        return;
    }
    weir_acted_json(decision, acted);
    int size = snprintf(removed, sizeof removed, "{%s\"removed\":true}", acted);
    if (decision->error)
        weir_http_write_problem(slot, output, WEIR_HTTP_503, weir_error_text(decision->error));
    else if (decision->verdict == WEIR_DENIED)
        weir_http_write_problem(slot, output, WEIR_HTTP_404, "this key has no state");
    else
        weir_http_write(slot, output, WEIR_HTTP_200, "application/json", removed, (size_t)size);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* The state of a key: read, or removed. */
static void state_ask(struct weir_http_call *call, bool remove)
{
    struct weir_reason reason = {{0}};
    int rule = limit_of(call);
    if (rule < 0 || (remove && !weir_admin_may_change(call)))
        return;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    struct weir_admin_ask ask = {.grants = false};
    int err = weir_admin_read_key(call, (uint32_t)rule, decision, &ask, &reason);
    if (err < 0) {
        weir_worker_give(call->worker, decision);
        weir_http_refuse(call, err, &reason);
        return;
    }
    decision->op = remove ? WEIR_OP_RESET : WEIR_OP_PEEK;
    if (remove)
        weir_engine_reach_homes(decision);
    weir_http_wait(call, decision, remove ? removed_write : ask.above ? bought_write : state_write);
}

static void state_handle(struct weir_http_call *call)
{
    state_ask(call, false);
}

static void remove_handle(struct weir_http_call *call)
{
    state_ask(call, true);
}

static void grant_handle(struct weir_http_call *call)
{
    int rule = limit_of(call);
    if (rule >= 0)
        weir_grant_handle(call, (uint32_t)rule);
}

const struct weir_http_route weir_admin_routes[] = {
    {"/healthz", "healthz", "GET, HEAD", "200 while the process lives", healthz_handle,
     WEIR_ROUTE_PUBLIC},
    {"/readyz", "readyz", "GET, HEAD", "200 while it serves, 503 while it should not be asked",
     readyz_handle, WEIR_ROUTE_PUBLIC},
    {"/metrics", "metrics", "GET, HEAD", "metrics for Prometheus", metrics_handle,
     WEIR_ROUTE_METRICS},
    {"/v1/limits", "limits", "GET, HEAD", "the limits in use, with their verdicts", limits_list,
     WEIR_ROUTE_SLASH},
    {"/v1/limits/{name}", "limits", "GET, HEAD", "one of them", limit_handle, 0},
    {"/v1/limits/{name}/top", "limits", "GET, HEAD", "the keys denied most", top_handle, 0},
    {"/v1/limits/{name}/state", "limits", "GET",
     "what a request with this key would be answered now", state_handle, 0},
    {"/v1/limits/{name}/state", "limits", "DELETE", "forgets what a key has used", remove_handle,
     0},
    {"/v1/limits/{name}/grant", "limits", "POST", "gives units to a key", grant_handle, 0},
    {.path = NULL},
};
