/* SPDX-License-Identifier: Apache-2.0 */
/* see explain_api.h */
#include "server/explain/explain_api.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "feature/standing/server/daemon.h"
#include "feature/standing/server/service.h"
#include "server/admin/file_call.h"
#include "server/daemon/daemon.h"
#include "server/explain/caller.h"
#include "server/explain/limits.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* The longest name that rules can have, of a header field, with its NUL. */
#define NAME_TEXT_MAX 160

/* One explanation, from its call to its reply. */
struct ask {
    struct weir_file_call call; /* first; reads the steps of penalties */
    struct weir_explained *explained;
    struct weir_decision *peek; /* the slot's */
    struct weir_decision *candidates[WEIR_CHECKS_MAX];
    uint32_t candidate_count;
    bool matched;    /* what is waited for next is a candidate, or the thread */
    json_t *answer;  /* except `penalties` */
    char *penalties; /* what the thread has printed */
    int error;       /* which `reason` explains; 0: none */
    struct weir_reason reason;
    struct weir_decision shown; /* of the peek, what the thread needs */
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_check_json given; /* its texts are in `text` */
    char text[WEIR_EXPLAIN_BODY_MAX];
};

static void ask_free(struct weir_file_call *call)
{
    struct ask *ask = (struct ask *)(void *)call;
    weir_explained_close(ask->explained);
    json_decref(ask->answer);
    free(ask->penalties);
    free(ask);
}

/* --- Text ------------------------------------------------------------------------------------- */

/* Prints into a text of its own; NULL: no memory. `part` UINT32_MAX: `print` takes no part. */
static char *printed(struct weir_explained *explained, void (*print)(const struct weir_explained *),
                     void (*print_part)(const struct weir_explained *, uint32_t), uint32_t part)
{
    char *text = NULL;
    size_t size = 0;
    explained->to = (struct weir_print){.out = open_memstream(&text, &size), .utf8 = true};
    if (!explained->to.out)
        return NULL;
    if (print)
        print(explained);
    else
        print_part(explained, part);
    bool failed = ferror(explained->to.out) != 0;
    if (fclose(explained->to.out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

static json_t *limit_json(struct weir_explained *explained, uint32_t rule)
{
    struct weir_rule_info info;
    weir_rules_info(explained->rules, rule, &info);
    char *text = printed(explained, NULL, weir_explain_limit, rule);
    json_t *json = json_pack("{s:s, s:b, s:s}", "name", info.name, "applies",
                             weir_explained_applies(explained, rule), "text", text);
    free(text);
    return json;
}

/* NULL: no memory. */
static json_t *limits_json(struct weir_explained *explained, uint32_t *left_out)
{
    json_t *list = json_array();
    uint32_t others = 0;
    for (uint32_t i = 0; list && i < weir_rules_count(explained->rules); i++) {
        others += !weir_explained_applies(explained, i);
        if (!weir_explained_applies(explained, i) && others > WEIR_EXPLAIN_OTHERS_MAX) {
            ++*left_out;
        } else if (json_array_append_new(list, limit_json(explained, i)) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static bool is_hidden(const struct weir_rules *rules, const char *family, struct weir_bytes name,
                      char text[NAME_TEXT_MAX])
{
    int size = snprintf(text, NAME_TEXT_MAX, "%s%.*s", family, (int)name.size, name.data);
    if (size < 0 || size >= NAME_TEXT_MAX)
        return false;                                  /* the rules have no such name */
    bool folds = strncasecmp(text, "header.", 7) == 0; /* also as an attribute: of any case */
    for (char *at = text; folds && *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 'a' - 'A') : *at;
    return weir_rules_hides(rules, (struct weir_bytes){text, (size_t)size});
}

/* The names of what was given and is secret, so that no link has it: "header.authorization";
 * attributes as they were given. */
static json_t *secrets_json(const struct ask *ask)
{
    const struct weir_check_json *given = &ask->given;
    json_t *list = json_array();
    char text[NAME_TEXT_MAX];
    for (uint16_t i = 0; i < given->header_count; i++)
        if (is_hidden(ask->explained->rules, "header.", given->headers[i].name, text))
            json_array_append_new(list, json_string(text));
    for (uint16_t i = 0; i < given->attribute_count; i++)
        if (is_hidden(ask->explained->rules, "", given->attributes[i].name, text))
            json_array_append_new(
                list, json_stringn(given->attributes[i].name.data, given->attributes[i].name.size));
    return list;
}

static void write_answer(struct ask *ask)
{
    uint32_t left_out = 0;
    json_t *limits = limits_json(ask->explained, &left_out);
    char *caller = printed(ask->explained, weir_explain_caller, NULL, 0);
    char *verdict = printed(ask->explained, weir_explain_verdict, NULL, 0);
    ask->answer =
        json_pack("{s:b, s:s, s:s, s:o, s:o, s:I}", "denied", weir_explained_denied(ask->explained),
                  "verdict", verdict, "caller", caller, "secret", secrets_json(ask), "limits",
                  limits, "left_out", (json_int_t)left_out);
    free(caller);
    free(verdict);
    if (!ask->answer)
        ask->error = WEIR_ERR_MEMORY;
}

/* --- Steps of penalties, on the background thread ----------------------------------------------
 */

static void steps_read(struct weir_file_call *call)
{
    struct ask *ask = (struct ask *)(void *)call;
    ask->penalties = printed(ask->explained, weir_explain_strikes, NULL, 0);
    if (!ask->penalties)
        ask->error = WEIR_ERR_MEMORY;
}

/* Returns whether the thread was given something to do. */
static bool steps_start(struct ask *ask)
{
    if (!weir_explained_has_strikes(ask->explained))
        return false;
    if (!weir_file_call_has_room(ask->call.daemon)) {
        ask->error = WEIR_ERR_STORE;
        snprintf(ask->reason.text, sizeof ask->reason.text, WEIR_FILE_CALL_FULL);
        return false;
    }
    /* The engine may be closed while the thread reads. */
    memcpy(ask->checks, ask->peek->checks, ask->peek->count * sizeof *ask->checks);
    ask->shown = *ask->peek;
    ask->shown.checks = ask->checks;
    ask->explained->decision = &ask->shown;
    weir_file_call_read(&ask->call);
    return true;
}

/* --- Peeks -------------------------------------------------------------------------------------
 */

static void ask_candidates(struct ask *ask, int count)
{
    struct weir_worker *worker = ask->call.slot->connection->worker;
    struct weir_explained *explained = ask->explained;
    struct weir_decision *decision;
    for (int i = 0; i < count && (decision = weir_worker_take(worker)); i++) {
        if (!weir_engine_apply_candidate(decision, ask->peek, &explained->checks[i])) {
            weir_worker_give(worker, decision);
            continue;
        }
        decision->op = WEIR_OP_PEEK;
        explained->candidates[i] = decision;
        ask->candidates[ask->candidate_count++] = decision;
        weir_slot_wait(ask->call.slot, decision);
    }
}

/* Errors: those of the match; WEIR_ERR_STORE where the peek says nothing. */
static int match(struct ask *ask)
{
    struct weir_worker *worker = ask->call.slot->connection->worker;
    const struct weir_standing_service *standing = weir_daemon_standing(ask->call.daemon);
    const struct weir_explained_with with = {
        .secret = weir_table_secret(ask->call.daemon->table),
        .map = standing ? standing->map : NULL,
        .directory = weir_engine_directory(worker->engine),
        .now_ns = weir_worker_time(worker),
    };
    if (ask->peek->error != 0) {
        snprintf(ask->reason.text, sizeof ask->reason.text, "the store: %s",
                 weir_error_text(ask->peek->error));
        return WEIR_ERR_STORE;
    }
    if (ask->peek->count > 0 && weir_decision_rules(ask->peek) != ask->explained->rules) {
        snprintf(ask->reason.text, sizeof ask->reason.text,
                 "the rules have just been changed; try again");
        return WEIR_ERR_STORE;
    }
    ask->explained->decision = ask->peek;
    ask->explained->hides = true;
    int count = weir_explained_match(ask->explained, &with, &ask->reason);
    if (count == WEIR_ERR_PENDING)
        snprintf(ask->reason.text, sizeof ask->reason.text,
                 "who is calling is being looked up; try again");
    return count == WEIR_ERR_PENDING ? WEIR_ERR_STORE : count;
}

/* What it waited for is there: waits for the next, or is ready to be written. */
static bool ask_again(struct weir_slot *slot)
{
    struct ask *ask = slot->owner;
    if (!ask->matched) {
        int count = weir_engine_refusal(ask->peek) ? WEIR_ERR_STORE : match(ask);
        ask->matched = true;
        ask->error = count < 0 ? count : 0;
        if (count > 0 && ask->peek->count > 0) /* else its standing has changed since the peek */
            ask_candidates(ask, count);
        if (slot->waiting > 0)
            return true;
    }
    if (ask->error != 0)
        return false;
    write_answer(ask);
    return ask->error == 0 && steps_start(ask);
}

static void give_back(struct ask *ask, struct weir_worker *worker,
                      void (*give)(struct weir_worker *, struct weir_decision *))
{
    for (uint32_t i = 0; i < ask->candidate_count; i++)
        give(worker, ask->candidates[i]);
    ask->candidate_count = 0;
}

static void ask_drop(struct weir_slot *slot)
{
    struct ask *ask = slot->owner;
    give_back(ask, slot->connection->worker, weir_worker_cancel);
    weir_file_call_leave(&ask->call);
}

/* --- Reply -------------------------------------------------------------------------------------
 */

static void send_answer(struct ask *ask, struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    json_object_set_new(ask->answer, "penalties",
                        json_string(ask->penalties ? ask->penalties : ""));
    char *text = json_dumps(ask->answer, JSON_COMPACT);
    if (!text) {
        weir_http_write_problem(slot, output, WEIR_HTTP_500, "out of memory");
        return;
    }
    weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
    weir_output_text(output, "Cache-Control: no-store\r\n");
    weir_http_end(output, "application/json", strlen(text));
    weir_connection_send(slot->connection, output, text, strlen(text));
    free(text);
}

static void ask_write(struct weir_slot *slot, struct weir_output *output)
{
    struct ask *ask = slot->owner;
    struct weir_worker *worker = slot->connection->worker;
    if (weir_engine_refusal(ask->peek))
        weir_http_write_refusal(slot, output, ask->peek);
    else if (ask->error != 0)
        weir_http_write_refused(slot, output, ask->error,
                                ask->reason.text[0] ? ask->reason.text
                                                    : weir_error_text(ask->error));
    else
        send_answer(ask, slot, output);
    give_back(ask, worker, weir_worker_give);
    weir_worker_give(worker, ask->peek);
    ask_free(&ask->call);
}

/* --- Request -----------------------------------------------------------------------------------
 */

/* Reads the body into ask->given. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE, WEIR_ERR_TOO_LARGE. */
static int ask_read(struct ask *ask, struct weir_bytes body, struct weir_reason *reason)
{
    struct weir_check_cursor cursor;
    const struct weir_check_json *given = &ask->given;
    memcpy(ask->text, body.data, body.size);
    weir_check_cursor_init(&cursor, ask->text, body.size);
    int got = weir_check_cursor_next(&cursor, &ask->given, reason);
    if (got < 0)
        return got;
    if (got == 0 || cursor.array) {
        snprintf(reason->text, sizeof reason->text, "one request is required, not a list");
        return WEIR_ERR_SYNTAX;
    }
    if (!given->has_t && !given->has_life && !given->dry_run && !given->idempotency_key.data &&
        given->status == 0 && given->latency_ms == 0)
        return 0;
    snprintf(
        reason->text, sizeof reason->text,
        "t, life, status, latency_ms, dry_run, idempotency_key: not allowed in an explanation");
    return WEIR_ERR_SYNTAX;
}

/* Queues the peek. Errors: as weir_engine_apply_rules. */
static int ask_begin(struct ask *ask, struct weir_http_call *call, struct weir_reason *reason)
{
    int error = ask_read(ask, call->request->body, reason);
    if (error == 0)
        error = weir_explained_open(&ask->explained, weir_worker_rules(call->worker), &ask->given,
                                    reason);
    if (error < 0)
        return error;
    struct weir_decision *peek = weir_worker_take(call->worker);
    if (!peek)
        return WEIR_ERR_MEMORY; /* not after weir_worker_has_room */
    peek->op = WEIR_OP_PEEK;
    error = weir_engine_apply_rules(call->worker->engine, peek, &ask->explained->request, reason);
    if (error < 0) {
        weir_worker_give(call->worker, peek);
        return error;
    }
    ask->peek = peek;
    ask->call.slot =
        weir_http_wait(call, peek, ask_write); /* NULL: it has given the decision back */
    return 0;
}

static void explain_handle(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    if (!weir_http_json_post(call))
        return;
    if (call->request->body.size > WEIR_EXPLAIN_BODY_MAX) {
        weir_http_problem(call, WEIR_HTTP_413, NULL, "a request to explain has at most 64 KiB");
        return;
    }
    struct ask *ask = calloc(1, sizeof *ask);
    if (!ask) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, weir_error_text(WEIR_ERR_MEMORY));
        return;
    }
    ask->call = (struct weir_file_call){.daemon = call->http->server,
                                        .what = "the steps of penalties, for an explanation",
                                        .read = steps_read,
                                        .release = ask_free};
    int error = ask_begin(ask, call, &reason);
    if (error < 0)
        weir_http_refuse(call, error, &reason);
    if (!ask->call.slot) {
        ask_free(&ask->call);
        return;
    }
    ask->call.slot->owner = ask;
    ask->call.slot->again = ask_again;
    ask->call.slot->drop = ask_drop;
}

const struct weir_http_route weir_explain_routes[] = {
    {"/v1/explain", "explain", "POST", "what the rules make of a request, without charging it",
     explain_handle, 0},
    {.path = NULL},
};
