/* SPDX-License-Identifier: Apache-2.0 */
/* see api.h
 *
 *   GET    /v1/standing[?kind=…&level=…]         entries in force, made by operators and penalties
 *   GET    /v1/standing?kind=…&value=…           what is in force for one value, and by what
 *   PUT    /v1/standing {"kind", "value", "level", "for_ms", "reason", "by", "ask", "yes"}
 *   GET    /v1/standing/radius?kind=…&value=…    whom refusing it would hit (radius.h)
 *   DELETE /v1/standing?kind=…&value=…&by=…&reason=…
 *   GET    /v1/standing/history[?kind=…&value=…]   changes, the newest first
 *
 * A refusal that would hit many, or those who are needed (WEIR_RADIUS_WIDE), is answered with 409,
 * why, and whom it would hit, and changes nothing, except with "yes": true. With "ask": true this
 * holds for whatever may be a slip. A change is in force before its job is queued, and answered
 * when the history has it, or after WEIR_KEEPER_LATE_MS: with 202 and "written": false, as it waits
 * for the history. Reading then answers 503. Where Redis is the history, a change is in force once
 * Redis has reported it, and is answered then.
 */
#include "feature/standing/server/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "core/text/shown.h"
#include "feature/identity/rules/keys.h"
#include "feature/penalties/server/daemon.h"
#include "feature/penalties/server/show.h"
#include "feature/standing/server/ask.h"
#include "feature/standing/server/daemon.h"
#include "feature/standing/server/json.h"
#include "feature/standing/server/service.h"
#include "feature/standing/server/sure.h"
#include "feature/use/server/daemon.h"
#include "feature/use/server/known.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* Keeps an answer within one buffer. */
#define PARAMETERS_MAX 8

static const char by_default[] = "operator";

/* A call that waits for its job. */
struct wait {
    struct weir_keeper *keeper;
    struct weir_slot *slot; /* NULL: its connection is gone */
    struct weir_keeper_job *job;
    bool history;  /* GET /v1/standing/history */
    bool cleared;  /* DELETE: the map had an entry */
    bool one;      /* GET of one value */
    bool in_force; /* `now` is */
    bool released; /* the slot does not wait any more */
    bool done;     /* nor does the job */
    struct weir_standing_entry now;
    struct weir_standing_service *service;
    struct weir_standing_kind kind; /* of the value: the rules may be replaced meanwhile */
    struct weir_standing_value value;
    struct weir_keeper_ladders ladders; /* of one value */
};

static struct weir_standing_service *service_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;

    return weir_daemon_standing(daemon);
}

/* Answers where there is no standing. */
static bool has_service(struct weir_http_call *call)
{
    if (service_of(call))
        return true;
    weir_http_problem(call, WEIR_HTTP_404, NULL,
                      "the rules have no `standing:`, or weir has not been restarted since");
    return false;
}

static const struct weir_standing_settings *settings_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;

    return weir_rules_settings(daemon->rules)->standing;
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* `shared`: the history is Redis, and what it does not keep is not in force. */
static void write_not_kept(struct weir_slot *slot, struct weir_output *output, bool shared,
                           const struct weir_reason *reason)
{
    char detail[WEIR_REASON_MAX + 100];

    if (shared) {
        weir_http_write_problem(slot, output, WEIR_HTTP_503, reason->text);
        return;
    }
    snprintf(detail, sizeof detail,
             "the change is in force, but only until weir restarts: the history does not keep it: "
             "%s",
             reason->text);
    weir_http_write_problem(slot, output, WEIR_HTTP_500, detail);
}

/* The value, and what is in force for it now. */
static json_t *value_json(const struct wait *wait)
{
    json_t *json = json_pack("{s:s%, s:s}", "kind", wait->value.kind->name.data,
                             wait->value.kind->name.size, "value", wait->value.shown);

    json_object_set_new(json, "in_force",
                        wait->in_force ? weir_standing_json(&wait->now) : json_null());
    return json;
}

static json_t *was_json(int was)
{
    return was < 0 ? json_null() : json_string(weir_standing_level_name((uint8_t)was));
}

static void write_change(struct weir_slot *slot, struct weir_output *output,
                         const struct wait *wait)
{
    const struct weir_keeper_job *job = wait->job;
    bool clears = job->op == WEIR_KEEPER_CLEAR;
    json_t *json;

    if (job->err < 0) {
        write_not_kept(slot, output, wait->service->sharing, &job->reason);
    } else if (clears && !job->found && !wait->cleared) {
        weir_http_write_problem(slot, output, WEIR_HTTP_404,
                                wait->in_force
                                    ? "no operator or penalty has set this value; a list has: "
                                      "change the list, or set another standing"
                                    : "this value has no standing of its own");
    } else {
        json = value_json(wait);
        json_object_set_new(json, "was", was_json(job->was));
        json_object_set_new(json, "written", json_true());
        weir_admin_write_json(slot, output, WEIR_HTTP_200, json);
    }
}

/* The job is not done yet: the history is locked, or its disk is slow. */
static void write_late(struct weir_slot *slot, struct weir_output *output, struct wait *wait)
{
    struct weir_keeper_state state;
    char detail[WEIR_REASON_MAX + 80];
    json_t *json;

    weir_keeper_state(wait->keeper, &state);
    if (wait->job->op > WEIR_KEEPER_CLEAR) {
        snprintf(detail, sizeof detail, "the history does not answer; try again: %s",
                 state.reason.text);
        weir_http_write_problem(slot, output, WEIR_HTTP_503, detail);
        return;
    }
    wait->service->tally.late++;
    json = value_json(wait);
    json_object_set_new(json, "written", json_false());
    json_object_set_new(json, "detail",
                        json_string(wait->value.hidden
                                        ? "only the history knows the value of this digest: it is "
                                          "cleared once the history answers"
                                        : "the change is in force, and waits for the history"));
    json_object_set_new(
        json, "reason",
        json_string(state.reason.text[0] ? state.reason.text : "other changes are before it"));
    weir_admin_write_json(slot, output, WEIR_HTTP_202, json);
}

/* Says of each entry of a network whether the kernel drops its packets. */
static void mark_kernel(const struct weir_standing_service *service, const json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);
        const char *value = json_string_value(json_object_get(entry, "value"));
        const char *kind = json_string_value(json_object_get(entry, "kind"));
        struct weir_cidr network;

        if (kind && value && strcmp(kind, "client.ip") == 0 &&
            weir_cidr_parse(&network, value, strlen(value)) == 0)
            json_object_set_new(entry, "kernel",
                                json_boolean(service->is_dropped(service->drops, &network)));
    }
}

static void write_read(struct weir_slot *slot, struct weir_output *output, const struct wait *wait)
{
    const struct weir_keeper_job *job = wait->job;
    json_t *json;

    if (job->err < 0) {
        weir_http_write_problem(slot, output, WEIR_HTTP_503, job->reason.text);
        return;
    }
    if (!wait->history && wait->service->is_dropped)
        mark_kernel(wait->service, job->answer);
    json = wait->one ? value_json(wait) : json_object();
    json_object_set(json, wait->history ? "changes" : "entries", job->answer);
    if (job->ladders) {
        struct weir_worker *worker = slot->connection->worker;

        json_object_set_new(
            json, "penalties",
            weir_penalties_json(weir_worker_rules(worker), job->ladders, weir_worker_time(worker)));
        json_object_set(json, "moves", job->moves);
    }
    weir_admin_write_json(slot, output, WEIR_HTTP_200, json);
}

static void wait_free(struct wait *wait)
{
    if (wait->job)
        weir_keeper_free(wait->keeper, wait->job);
    free(wait);
}

static void wait_write(struct weir_slot *slot, struct weir_output *output)
{
    struct wait *wait = slot->owner;

    if (!wait->done) {
        write_late(slot, output, wait);
        wait->slot = NULL; /* job_done frees it */
        return;
    }
    if (wait->job->op == WEIR_KEEPER_SET || wait->job->op == WEIR_KEEPER_CLEAR)
        write_change(slot, output, wait);
    else
        write_read(slot, output, wait);
    wait_free(wait);
}

/* The connection goes first; the job is freed when it is done, or is done already. */
static void wait_drop(struct weir_slot *slot)
{
    struct wait *wait = slot->owner;

    wait->slot = NULL;
    if (wait->done)
        wait_free(wait);
}

static void find_now(struct wait *wait, uint64_t now_ns)
{
    wait->in_force = wait->value.kind &&
                     weir_standing_service_find(wait->service, &wait->value, now_ns, &wait->now);
}

/* Lets the slot be written. */
static void release(struct wait *wait)
{
    if (wait->released)
        return;
    wait->released = true;
    find_now(wait, weir_worker_time(wait->slot->connection->worker));
    wait->slot->waiting--;
    weir_worker_mark(wait->slot->connection->worker, wait->slot->connection);
}

static void job_done(struct weir_keeper_job *job)
{
    struct wait *wait = job->context;

    if (job->op == WEIR_KEEPER_CLEAR && wait->value.hidden && job->err == 0 && job->found &&
        !wait->service->sharing) {
        /* The history knew the id of what was named by its digest. */
        memcpy(wait->value.id, job->entry.id, sizeof wait->value.id);
        wait->value.hidden = false;
        wait->cleared = weir_standing_service_clear(
            wait->service, &wait->value, job->entry.by,
            (struct weir_bytes){job->entry.entry.reason, job->entry.entry.reason_size});
    }
    wait->done = true;
    if (wait->slot)
        release(wait);
    else
        wait_free(wait);
}

static void job_late(struct weir_keeper_job *job)
{
    struct wait *wait = job->context;

    if (wait->slot)
        release(wait);
}

/* The keeper is closed, after all connections. */
static void job_dropped(struct weir_keeper_job *job)
{
    wait_free(job->context);
}

/* A slot that waits for the job; takes both over. */
static void wait_for(struct weir_http_call *call, struct wait *wait)
{
    struct weir_slot *slot = weir_http_slot(call);

    wait->job->done = job_done;
    wait->job->late = job_late;
    wait->job->drop = job_dropped;
    wait->job->context = wait;
    wait->slot = slot;
    if (slot) {
        slot->owner = wait;
        slot->detail = call->route;
        slot->write = wait_write;
        slot->drop = wait_drop;
        slot->waiting++;
    }
    weir_keeper_start(wait->keeper, wait->job);
}

/* What waits for a job; NULL after a problem. */
static struct wait *wait_new(struct weir_http_call *call, enum weir_keeper_op op,
                             const struct weir_standing_ask *ask, struct weir_bytes value)
{
    struct weir_standing_service *service = service_of(call);
    struct wait *wait = calloc(1, sizeof *wait);

    if (wait && service->keeper)
        wait->job = weir_keeper_take(service->keeper, op, ask->kind, value, ask->by);
    if (!wait || !wait->job) {
        free(wait);
        service->tally.queue_full++;
        weir_http_problem(call, WEIR_HTTP_503, NULL,
                          service->keeper ? "the history is behind; try again"
                                          : "standing.file is not set: there is no history");
        return NULL;
    }
    wait->keeper = service->keeper;
    wait->service = service;
    wait->job->now_ns = weir_worker_time(call->worker);
    wait->job->filter = (struct weir_history_filter){.kind = wait->job->entry.kind,
                                                     .value = wait->job->entry.value,
                                                     .level = -1,
                                                     .now_ns = wait->job->now_ns,
                                                     .count = ask->count,
                                                     .skip = ask->skip};
    if (ask->kind.size == 0)
        wait->job->filter.kind.data = NULL;
    if (value.size == 0)
        wait->job->filter.value.data = NULL;
    return wait;
}

/* Whether the history has room for a change, before that is in force; false after a problem. */
static bool has_room(struct weir_http_call *call)
{
    struct weir_standing_service *service = service_of(call);

    if (!service->keeper || weir_keeper_has_room(service->keeper))
        return true;
    service->tally.queue_full++;
    weir_http_problem(call, WEIR_HTTP_503, NULL,
                      "nothing is changed: too many changes wait for the history; try again");
    return false;
}

/* Forgets the steps of penalties of a value, where they are in memory. */
static bool forget_steps(struct weir_http_call *call, const struct weir_standing_value *value)
{
    const struct weir_daemon *daemon = call->http->server;

    return weir_daemon_penalties(daemon) &&
           weir_penalties_forget(weir_daemon_penalties(daemon), value->kind->name,
                                 weir_bytes_of(value->shown));
}

/* Gives it the value that it is about, with a kind of its own. */
static void wait_about(struct wait *wait, const struct weir_standing_value *value)
{
    wait->value = *value;
    if (!value->kind)
        return;
    wait->kind = *value->kind;
    wait->kind.name = wait->job->entry.kind;
    wait->value.kind = &wait->kind;
}

/* --- Questions -------------------------------------------------------------------------------- */

/* What is named by its SHA-256 has an id if it was seen of late: a secret, or a long value. */
static void find_hidden(struct weir_http_call *call, const struct weir_standing_ask *ask,
                        struct weir_standing_value *value)
{
    const struct weir_daemon *daemon = call->http->server;
    struct weir_sighting known;

    if (value->kind->address || !weir_daemon_use(daemon) || !weir_standing_value_hidden(ask->value))
        return;
    weir_use_known(weir_daemon_use(daemon), ask->kind, ask->value, weir_worker_time(call->worker),
                   &known);
    if (known.id[0] == 0 && known.id[1] == 0)
        return;
    memcpy(value->id, known.id, sizeof value->id);
    value->hidden = false;
}

/* Reads kind and value. False after a problem. */
static bool read_value(struct weir_http_call *call, const struct weir_standing_ask *ask,
                       struct weir_standing_value *value)
{
    struct weir_reason reason = {""};
    int err = weir_standing_value_read(service_of(call), settings_of(call), ask->kind, ask->value,
                                       value, &reason);

    if (err < 0)
        weir_http_refuse(call, err, &reason);
    else
        find_hidden(call, ask, value);
    return err == 0;
}

/* Whether who and why are short enough, and given where they are missing. A session with a name
 * says who, whatever the request does. */
static bool read_why(struct weir_http_call *call, struct weir_standing_ask *ask)
{
    ask->by = weir_admin_who(call, ask->by);
    if (ask->by.size == 0)
        ask->by = (struct weir_bytes){by_default, sizeof by_default - 1};
    if (ask->by.size <= WEIR_KEEPER_BY_MAX && ask->reason.size <= WEIR_STANDING_REASON_MAX)
        return true;
    weir_http_problem(call, WEIR_HTTP_400, NULL, "by: up to 64 bytes; reason: up to 127 bytes");
    return false;
}

static void set_reason(struct weir_standing_entry *entry, struct weir_bytes reason)
{
    entry->reason_size = (uint8_t)reason.size;
    if (reason.size > 0)
        memcpy(entry->reason, reason.data, reason.size);
}

/* Reads the question of a list; a kind without a value is checked, too. False: it has answered. */
static bool read_list(struct weir_http_call *call, struct weir_standing_ask *ask,
                      struct weir_standing_value *value)
{
    struct weir_reason reason = {""};
    int err = 0;

    if (!has_service(call) || !weir_standing_ask_read(call, ask, false))
        return false;
    if (ask->value.data)
        return read_value(call, ask, value);
    if (ask->kind.size > 0)
        err = weir_standing_kind_check(settings_of(call), ask->kind, &reason);
    if (err < 0)
        weir_http_refuse(call, err, &reason);
    return err == 0;
}

static void list(struct weir_http_call *call)
{
    struct weir_standing_value value = {.kind = NULL};
    struct wait *wait;
    struct weir_standing_ask ask;
    int level = -1;

    if (!read_list(call, &ask, &value))
        return;
    if (ask.level.data && (level = weir_standing_level_of(ask.level)) < 0) {
        weir_http_problem(call, WEIR_HTTP_400, NULL, WEIR_STANDING_LEVEL_WANTED);
        return;
    }
    wait = wait_new(call, WEIR_KEEPER_ENTRIES, &ask, weir_bytes_of(value.shown));
    if (!wait)
        return;
    wait_about(wait, &value);
    wait->one = value.kind;
    if (wait->one)
        wait->job->ladders = &wait->ladders;
    wait->job->filter.level = level;
    wait_for(call, wait);
}

static void history(struct weir_http_call *call)
{
    struct weir_standing_value value = {.kind = NULL};
    struct wait *wait;
    struct weir_standing_ask ask;

    if (!read_list(call, &ask, &value))
        return;
    wait = wait_new(call, WEIR_KEEPER_ROWS, &ask, weir_bytes_of(value.shown));
    if (!wait)
        return;
    wait->history = true;
    wait_for(call, wait);
}

/* --- Changes ---------------------------------------------------------------------------------- */

/* Without a history there is nothing to wait for. */
static void answer_now(struct weir_http_call *call, struct wait *wait)
{
    char *text;
    json_t *json;

    find_now(wait, weir_worker_time(call->worker));
    json = value_json(wait);
    text = json_dumps(json, JSON_COMPACT);
    if (text)
        weir_http_reply(call, WEIR_HTTP_200, NULL, "application/json", text, strlen(text));
    else
        weir_http_problem(call, WEIR_HTTP_500, NULL, weir_error_text(WEIR_ERR_MEMORY));
    free(text);
    json_decref(json);
}

static struct weir_bytes text_of(const json_t *body, const char *field)
{
    const json_t *value = json_object_get(body, field);

    return (struct weir_bytes){json_string_value(value), json_string_length(value)};
}

/* Whether all members are read: another one may be a misspelt end, and the ban for good. */
static bool members_are_known(const json_t *body)
{
    static const char known[] = " kind value level for_ms reason by yes ask ";
    char member[32];
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, name, value)
    {
        int size = snprintf(member, sizeof member, " %s ", name);
        if (size >= (int)sizeof member || strchr(name, ' ') || !strstr(known, member))
            return false;
    }
    return true;
}

/* Reads the body into `ask` and `entry`. False after a problem. */
static bool read_body(struct weir_http_call *call, json_t *body, struct weir_standing_ask *ask,
                      struct weir_standing_entry *entry)
{
    const json_t *duration = json_object_get(body, "for_ms");
    uint64_t now_ns = weir_worker_time(call->worker);
    json_int_t for_ms = json_integer_value(duration);
    int level;

    *ask = (struct weir_standing_ask){.kind = text_of(body, "kind"),
                                      .value = text_of(body, "value"),
                                      .level = text_of(body, "level"),
                                      .by = text_of(body, "by"),
                                      .reason = text_of(body, "reason")};
    level = weir_standing_level_of(ask->level);
    if (!json_is_object(body) || !ask->kind.data || !ask->value.data || level < 0) {
        weir_http_problem(
            call, WEIR_HTTP_400, NULL,
            "send {\"kind\", \"value\", \"level\"}, and \"for_ms\", \"reason\" and "
            "\"by\" where they are known; level: good, warned, throttled, challenged, "
            "suspended, revoked or trusted");
        return false;
    }
    if (!members_are_known(body)) {
        weir_http_problem(
            call, WEIR_HTTP_400, NULL,
            "a member is none of kind, value, level, for_ms, reason, by, yes and ask");
        return false;
    }
    if (duration && (for_ms <= 0 || for_ms > INT64_MAX / 4000000)) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "for_ms: a number of milliseconds above 0; without it there is no end");
        return false;
    }
    if (duration && level == WEIR_STANDING_REVOKED) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "for_ms: revoked has no end; suspended has one");
        return false;
    }
    *entry = (struct weir_standing_entry){
        .since_ns = now_ns,
        .until_ns = duration ? now_ns + (uint64_t)for_ms * 1000000 : WEIR_NEVER,
        .level = (uint8_t)level,
        .origin = WEIR_STANDING_BY_OPERATOR,
    };
    return read_why(call, ask);
}

static void show_radius(struct weir_http_call *call)
{
    struct weir_standing_value value;
    struct weir_radius radius;
    struct weir_standing_ask ask;

    if (!has_service(call) || !weir_standing_ask_read(call, &ask, false) ||
        !read_value(call, &ask, &value))
        return;
    if (weir_standing_radius(call, &value, ask.value, &radius))
        weir_admin_reply_json(call, weir_radius_json(&radius));
    else
        weir_http_problem(call, WEIR_HTTP_503, NULL, "nothing is known of use");
}

static void refuse_set(struct weir_http_call *call, int err)
{
    const struct weir_reason full = {
        "the map of standing is full of entries that may not go: clear "
        "some, or raise standing.entries"};

    weir_http_problem(call, err == WEIR_ERR_FULL ? WEIR_HTTP_503 : WEIR_HTTP_500, NULL,
                      err == WEIR_ERR_FULL ? full.text : weir_error_text(err));
}

static void set_read(struct weir_http_call *call, json_t *body)
{
    struct weir_standing_service *service = service_of(call);
    struct weir_standing_entry entry;
    struct wait *wait, now = {.service = service};
    struct weir_standing_ask ask;
    int err;

    if (!read_body(call, body, &ask, &entry) || !read_value(call, &ask, &now.value))
        return;
    if (now.value.hidden) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "value: no recent denial or request has a value of this SHA-256; give "
                          "the value itself");
        return;
    }
    if (!weir_standing_is_sure(call, &now.value, ask.value, entry.level, body))
        return;
    set_reason(&entry, ask.reason);
    if (!has_room(call))
        return;
    err = service->sharing ? 0 : weir_standing_service_set(service, &now.value, &entry, ask.by);
    if (err < 0) {
        refuse_set(call, err);
        return;
    }
    if (!service->keeper) {
        answer_now(call, &now);
        return;
    }
    wait = wait_new(call, WEIR_KEEPER_SET, &ask, weir_bytes_of(now.value.shown));
    if (!wait)
        return;
    wait_about(wait, &now.value);
    wait->job->entry.network = now.value.kind->address;
    memcpy(wait->job->entry.id, now.value.id, sizeof now.value.id);
    wait->job->entry.entry = entry;
    wait_for(call, wait);
}

static void set(struct weir_http_call *call)
{
    struct weir_bytes text = call->request->body;
    json_t *body;

    if (!has_service(call) || !weir_admin_may_change(call))
        return;
    body = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, NULL);
    set_read(call, body);
    json_decref(body);
}

/* A long value may have been set by its SHA-256, under which the history has it then. False after a
 * problem. */
static bool clear_hidden(struct weir_http_call *call, const struct weir_standing_ask *ask,
                         const struct weir_standing_value *value)
{
    static const char digest[] = "sha256:";
    char shown[sizeof digest + 64];
    uint8_t bytes[WEIR_DIGEST_BYTES];
    struct wait *wait;

    if (value->kind->secret || value->kind->address || ask->value.size <= WEIR_SHOWN_WHOLE_MAX)
        return true;
    rules_sha256(ask->value, bytes);
    memcpy(shown, digest, sizeof digest - 1);
    *weir_hex_write(shown + sizeof digest - 1, bytes, sizeof bytes) = '\0';
    wait = wait_new(call, WEIR_KEEPER_CLEAR, ask, weir_bytes_of(shown));
    if (!wait)
        return false;
    set_reason(&wait->job->entry.entry, ask->reason);
    wait->released = true;
    wait->job->done = job_done;
    wait->job->late = job_late;
    wait->job->drop = job_dropped;
    wait->job->context = wait;
    weir_keeper_start(wait->keeper, wait->job);
    return true;
}

static void clear(struct weir_http_call *call)
{
    struct weir_standing_service *service = service_of(call);
    struct wait *wait, now = {.service = service};
    struct weir_standing_ask ask;
    bool forgotten;

    if (!has_service(call) || !weir_admin_may_change(call) ||
        !weir_standing_ask_read(call, &ask, false) || !read_why(call, &ask) ||
        !read_value(call, &ask, &now.value) || !has_room(call))
        return;
    forgotten = forget_steps(call, &now.value);
    if (!now.value.hidden && !service->sharing)
        now.cleared = weir_standing_service_clear(service, &now.value, ask.by, ask.reason);
    now.cleared |= forgotten;
    if (!service->keeper) {
        if (now.cleared)
            answer_now(call, &now);
        else
            weir_http_problem(call, WEIR_HTTP_404, NULL, "this value has no standing of its own");
        return;
    }
    if (!clear_hidden(call, &ask, &now.value))
        return;
    wait = wait_new(call, WEIR_KEEPER_CLEAR, &ask, weir_bytes_of(now.value.shown));
    if (!wait)
        return;
    wait_about(wait, &now.value);
    wait->cleared = now.cleared;
    set_reason(&wait->job->entry.entry, ask.reason);
    wait_for(call, wait);
}

const struct weir_http_route weir_standing_routes[] = {
    {"/v1/standing", "standing", "GET, HEAD", "whom standing is known of, and what it is", list,
     WEIR_ROUTE_SLASH},
    {"/v1/standing", "standing", "PUT", "sets the standing of a value", set, WEIR_ROUTE_SLASH},
    {"/v1/standing", "standing", "DELETE", "ends what was set", clear, WEIR_ROUTE_SLASH},
    {"/v1/standing/history", "standing", "GET, HEAD", "changes, the newest first", history, 0},
    {"/v1/standing/radius", "standing", "GET, HEAD", "whom refusing a value would hit", show_radius,
     0},
    {.path = NULL},
};
