/* SPDX-License-Identifier: Apache-2.0 */
/* see front.h */
#include "feature/challenge/server/front.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "core/bytes.h"
#include "feature/challenge/puzzle.h"
#include "feature/challenge/return_path.h"
#include "feature/challenge/server/difficulty.h"
#include "feature/challenge/server/grant.h"
#include "rules/counted.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define PATH "/.weir/challenge"
#define NS_PER_S UINT64_C(1000000000)

/* Of a form: a path of which each byte is encoded with 3, a puzzle, a solution. */
#define FORM_MAX (3 * WEIR_RETURN_PATH_MAX + 512)

static const struct weir_challenge_settings *settings_of(const struct weir_http_call *call)
{
    return &weir_worker_settings(call->worker)->challenge;
}

static uint64_t now_s(const struct weir_http_call *call)
{
    return weir_worker_time(call->worker) / NS_PER_S;
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void refuse(struct weir_http_call *call, const struct weir_person *person, unsigned refusal,
                   const struct weir_address *client, struct weir_bytes to)
{
    const struct weir_person_trouble trouble = weir_challenge_refusal_trouble(refusal, to);
    weir_count(&call->http->challenge->refused[refusal], 1);
    weir_challenge_refusal_log(call->worker->log, refusal, client);
    weir_person_refuse(call, person, &trouble);
}

/* A path that is none of this site's. */
static void refuse_path(struct weir_http_call *call, const struct weir_person *person)
{
    const struct weir_person_trouble trouble = {
        .status = WEIR_HTTP_400,
        .reason = WEIR_WORDS_NO_PAGE,
        .label = WEIR_WORDS_HOME,
        .detail = "to: must be a path of this site, such as /a?b=c, of at most 2048 bytes",
        .link = weir_bytes_of("/"),
    };
    weir_person_refuse(call, person, &trouble);
}

static void refuse_busy(struct weir_http_call *call, const struct weir_person *person,
                        const char *detail, struct weir_bytes to)
{
    const struct weir_person_trouble trouble = {
        .status = WEIR_HTTP_503,
        .reason = WEIR_WORDS_BUSY,
        .label = WEIR_WORDS_AGAIN,
        .detail = detail,
        .link = to,
    };
    weir_person_refuse(call, person, &trouble);
}

static void refuse_client(struct weir_http_call *call, const struct weir_person *person,
                          const char *detail)
{
    const struct weir_person_trouble trouble = {
        .status = WEIR_HTTP_400,
        .reason = WEIR_WORDS_NO_ADDRESS,
        .label = WEIR_WORDS_AGAIN,
        .detail = detail,
        .link = weir_bytes_of("/"),
    };
    weir_person_refuse(call, person, &trouble);
}

/* --- Handing out ------------------------------------------------------------------------------ */

/* Where the client wants to go, as the query says; "/" where it does not. False after a reply. */
static bool read_path(struct weir_http_call *call, const struct weir_person *person,
                      char room[WEIR_HTTP1_HEAD_MAX], struct weir_bytes *path)
{
    struct weir_bytes to = weir_return_path_find(call->request->query);
    *path = to;
    if (!to.data) {
        *path = weir_bytes_of("/");
    } else if (to.size > 0 && to.data[0] == '%') { /* encoded; as a proxy inserts it, it is not */
        long size = weir_http_decode(to, room);
        *path = (struct weir_bytes){room, size < 0 ? 0 : (size_t)size};
    }
    if (weir_return_path_is_valid(*path))
        return true;
    refuse_path(call, person);
    return false;
}

static void serve_page(struct weir_http_call *call, const struct weir_person *person,
                       struct weir_bytes puzzle, uint8_t difficulty, struct weir_bytes to)
{
    struct weir_challenge_work *work = call->http->challenge;
    struct weir_bytes values[WEIR_PAGE_PLACES] = {{NULL, 0}};
    char fields[WEIR_PERSON_FIELDS_MAX], number[4];
    snprintf(number, sizeof number, "%u", difficulty);
    values[WEIR_PAGE_TO] = to;
    values[WEIR_PAGE_PUZZLE] = puzzle;
    values[WEIR_PAGE_DIFFICULTY] = weir_bytes_of(number);
    size_t size = weir_person_page(person, weir_challenge_parts, weir_challenge_part_count, values,
                                   work->page);
    weir_person_page_fields(person, fields);
    weir_count(&work->served, 1);
    weir_http_reply(call, WEIR_HTTP_200, fields, WEIR_PERSON_PAGE_TYPE, work->page, size);
}

static void serve_problem(struct weir_http_call *call, struct weir_bytes puzzle, uint8_t difficulty)
{
    struct weir_challenge_work *work = call->http->challenge;
    int size = snprintf(
        work->page, sizeof work->page,
        "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,"
        "\"detail\":\"find the number for which SHA-256(puzzle:number) begins with `difficulty` "
        "zero bits, POST puzzle and solution to " PATH " as a form, and send the token that comes "
        "back in the field X-Weir-Challenge\",\"puzzle\":\"%.*s\",\"difficulty\":%u,"
        "\"expires_in\":%u}\n",
        (int)puzzle.size, puzzle.data, difficulty, (unsigned)WEIR_CHALLENGE_PUZZLE_LIFE_S);
    weir_count(&work->served, 1);
    weir_http_reply(call, WEIR_HTTP_403, WEIR_PERSON_FIELDS, "application/problem+json", work->page,
                    (size_t)size);
}

/* Puzzles and tokens are bound to the address that the client counts by. */
static struct weir_address bound_to(const struct weir_http_call *call,
                                    const struct weir_address *client)
{
    struct weir_address inside;
    return *weir_rules_counted_by(weir_worker_rules(call->worker), client, &inside);
}

static void serve(struct weir_http_call *call, const struct weir_person *person,
                  const struct weir_address *client)
{
    const struct weir_challenge_settings *settings = settings_of(call);
    unsigned char nonce[WEIR_CHALLENGE_NONCE];
    char puzzle[WEIR_CHALLENGE_PUZZLE_SIZE], room[WEIR_HTTP1_HEAD_MAX];
    uint8_t difficulty = weir_challenge_difficulty(call, client);
    struct weir_bytes to = weir_bytes_of("/");
    if (person->page && !read_path(call, person, room, &to))
        return;
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        refuse_busy(call, person, "the system gives no random numbers", to);
        return;
    }
    const struct weir_address bound = bound_to(call, client);
    weir_challenge_puzzle_make(settings->keys, &bound, difficulty, now_s(call), nonce, puzzle);
    struct weir_bytes text = {puzzle, sizeof puzzle};
    if (person->page)
        serve_page(call, person, text, difficulty, to);
    else
        serve_problem(call, text, difficulty);
}

/* --- Taking ----------------------------------------------------------------------------------- */

/* The reply to a solution that is being recorded, in the buffer of its slot. */
struct prepared {
    struct weir_address client;
    struct weir_person person;
    size_t fields, body; /* bytes in `text`, one behind the other */
    size_t to;           /* bytes of the path, which the fields end with: for a browser */
    char text[];
};
#define PREPARED_TEXT (WEIR_RETURN_PATH_MAX + 1024)
_Static_assert(WEIR_PAGE_MAX + WEIR_PERSON_FIELDS_MAX + WEIR_HTTP_HEAD_ROOM <= WEIR_REPLY_MAX,
               "a page fits into what a slot may write");

/* What a form says; data == NULL: nothing. */
struct form {
    struct weir_bytes puzzle, solution, to;
};

/* Values are decoded into `room`, which has as many bytes as the body. Errors: WEIR_ERR_SYNTAX. */
static int read_form(struct weir_bytes body, char *room, struct form *form)
{
    struct weir_bytes name, value;
    *form = (struct form){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    while (weir_http_next_parameter(&body, &name, &value)) {
        struct weir_bytes *field = weir_bytes_are(name, "puzzle")     ? &form->puzzle
                                   : weir_bytes_are(name, "solution") ? &form->solution
                                   : weir_bytes_are(name, "to")       ? &form->to
                                                                      : NULL;
        if (!field)
            continue;
        long size = weir_http_decode(value, room);
        if (size < 0 || field->data)
            return WEIR_ERR_SYNTAX;
        *field = (struct weir_bytes){room, (size_t)size};
        room += size;
    }
    return 0;
}

static bool is_form(const struct weir_http_call *call)
{
    static const char type[] = "application/x-www-form-urlencoded";
    struct weir_bytes field = weir_http1_field(call->request, "content-type");
    return field.size >= sizeof type - 1 && !strncasecmp(field.data, type, sizeof type - 1);
}

static void prepare(struct prepared *prepared, const struct weir_http_call *call,
                    const struct weir_address *client, uint8_t difficulty, struct weir_bytes to)
{
    const struct weir_challenge_settings *settings = settings_of(call);
    const struct weir_address bound = bound_to(call, client);
    const bool page = prepared->person.page;
    uint64_t life_s = settings->life_ns / NS_PER_S;
    struct weir_challenge_cookie cookie;
    char token[WEIR_CHALLENGE_TOKEN_SIZE];
    weir_challenge_token_make(settings->keys, &bound, difficulty, now_s(call) + life_s, token);
    prepared->client = *client;
    prepared->to = page ? to.size : 0;
    prepared->fields =
        (size_t)snprintf(prepared->text, PREPARED_TEXT,
                         WEIR_PERSON_FIELDS "Set-Cookie: %s\r\n"
                                            "%s%.*s%s",
                         weir_challenge_cookie_text(&cookie, settings, token),
                         page ? "Location: " : "", (int)prepared->to, to.data, page ? "\r\n" : "");
    prepared->body = 0;
    if (!page)
        prepared->body =
            (size_t)snprintf(prepared->text + prepared->fields, PREPARED_TEXT - prepared->fields,
                             "{\"token\":\"%.*s\",\"expires_in\":%llu}\n", (int)sizeof token, token,
                             (unsigned long long)life_s);
}

static void write_refused(struct weir_slot *slot, struct weir_output *output,
                          const struct prepared *prepared)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_challenge_work *work = http->challenge;
    const struct weir_person *person = &prepared->person;
    const struct weir_bytes to = {prepared->text + prepared->fields - 2 - prepared->to,
                                  prepared->to};
    const struct weir_person_trouble trouble =
        weir_challenge_refusal_trouble(WEIR_CHALLENGE_REPLAYED, to);
    const char *type = WEIR_PERSON_PAGE_TYPE;
    char fields[WEIR_PERSON_FIELDS_MAX];
    size_t size;
    weir_count(&work->refused[WEIR_CHALLENGE_REPLAYED], 1);
    weir_challenge_refusal_log(http->worker->log, WEIR_CHALLENGE_REPLAYED, &prepared->client);
    if (person->page) {
        weir_person_page_fields(person, fields);
        size = weir_person_trouble_page(person, &trouble, work->page);
    } else {
        snprintf(fields, sizeof fields, "%s", WEIR_PERSON_FIELDS);
        type = "application/problem+json";
        size = weir_problem_json_write(WEIR_PROBLEM_BLANK, 403, trouble.detail, NULL, http->json);
        memcpy(work->page, http->json, size);
    }
    weir_http_begin(http, output, trouble.status, slot->detail, slot->flags);
    weir_output_text(output, fields);
    weir_http_end(output, type, size);
    weir_output_put(output, work->page, size);
}

/* Whether the record of the solution was there before. Where the table has no room for it, it is
 * left out: a cell that it shares with others says nothing of this one, and a client that repeats
 * its solution gets one more token for the same network. */
static bool is_replayed(const struct weir_decision *decision)
{
    return decision->verdict == WEIR_DENIED && !decision->outcomes[0].overflow;
}

/* The record of the solution has been made, or was there before. */
static void take_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct prepared *prepared = (struct prepared *)(void *)slot->buffer->data;
    struct weir_worker *worker = slot->connection->worker;
    if (is_replayed(slot->decision)) {
        write_refused(slot, output, prepared);
    } else {
        weir_count(&http->challenge->solved, 1);
        weir_http_begin(http, output, prepared->person.page ? WEIR_HTTP_303 : WEIR_HTTP_200,
                        slot->detail, slot->flags);
        weir_output_put(output, prepared->text, prepared->fields);
        weir_http_end(output, prepared->person.page ? NULL : "application/json", prepared->body);
        weir_output_put(output, prepared->text + prepared->fields, prepared->body);
    }
    weir_worker_give(worker, slot->decision);
    weir_buffer_give(&worker->buffers, slot->buffer);
}

/* Records the solution; the reply waits for that. */
static void record(struct weir_http_call *call, const struct weir_person *person,
                   const struct weir_address *client, const struct weir_challenge_solved *solved,
                   struct weir_bytes to)
{
    struct weir_decision *decision = weir_worker_take(call->worker);
    struct weir_buffer *buffer =
        weir_buffer_take(&call->worker->buffers, sizeof(struct prepared) + PREPARED_TEXT);
    if (!decision || !buffer) {
        if (decision)
            weir_worker_give(call->worker, decision);
        weir_buffer_give(&call->worker->buffers, buffer);
        refuse_busy(call, person, "overloaded", to);
        return;
    }
    weir_engine_apply_solution(call->worker->engine, decision, solved->nonce);
    struct prepared *prepared = (struct prepared *)(void *)buffer->data;
    prepared->person = *person;
    prepare(prepared, call, client, solved->difficulty, to);
    struct weir_slot *slot = weir_http_slot(call);
    if (!slot) {
        weir_worker_give(call->worker, decision);
        weir_buffer_give(&call->worker->buffers, buffer);
        return;
    }
    slot->decision = decision;
    slot->buffer = buffer;
    slot->detail = call->route;
    slot->write = take_write;
    weir_slot_weigh(slot, buffer->size);
    weir_slot_wait(slot, decision);
}

static void take(struct weir_http_call *call, const struct weir_person *person,
                 const struct weir_address *client)
{
    const struct weir_challenge_settings *settings = settings_of(call);
    struct weir_challenge_solved solved;
    struct form form;
    char room[FORM_MAX];
    if (!is_form(call)) {
        weir_http_problem(call, WEIR_HTTP_415, WEIR_PERSON_FIELDS,
                          "use Content-Type: application/x-www-form-urlencoded");
        return;
    }
    if (call->request->body.size > sizeof room || read_form(call->request->body, room, &form) < 0) {
        refuse(call, person, WEIR_CHALLENGE_MALFORMED, client, weir_bytes_of("/"));
        return;
    }
    if (!form.to.data)
        form.to = weir_bytes_of("/");
    if (!weir_return_path_is_valid(form.to)) {
        refuse_path(call, person);
        return;
    }
    const struct weir_address bound = bound_to(call, client);
    enum weir_challenge_verdict verdict = weir_challenge_puzzle_check(
        settings->keys, &bound, now_s(call), form.puzzle, form.solution, &solved);
    if (verdict == WEIR_CHALLENGE_GOOD)
        record(call, person, client, &solved, form.to);
    else
        refuse(call, person, verdict, client, form.to);
}

static void handle(struct weir_http_call *call)
{
    struct weir_address client;
    struct weir_person person;
    struct weir_reason reason = {{0}};
    bool get = weir_http_method_is(call, "GET") || weir_http_method_is(call, "HEAD");
    if (!settings_of(call)->keys) { /* the rules no longer have a challenge */
        weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
        return;
    }
    if (!get && !weir_http_allow(call, "GET", "POST"))
        return;
    weir_person_read(call, &person);
    if (weir_http_find_client(call, &client, &reason) < 0)
        refuse_client(call, &person, reason.text);
    else if (client.family == 0)
        refuse_client(call, &person,
                      "the client's address is unknown: have the proxy send X-Forwarded-For");
    else if (get)
        serve(call, &person, &client);
    else
        take(call, &person, &client);
}

/* Any other path. */
static void handle_other(struct weir_http_call *call)
{
    const struct weir_person_trouble trouble = {
        .status = WEIR_HTTP_404,
        .reason = WEIR_WORDS_NO_PAGE,
        .label = WEIR_WORDS_HOME,
        .link = weir_bytes_of("/"),
    };
    struct weir_person person;
    weir_person_read(call, &person);
    weir_person_refuse(call, &person, &trouble);
}

const struct weir_http_route weir_challenge_routes[WEIR_CHALLENGE_ROUTES] = {
    {PATH, "challenge", NULL, NULL, handle, WEIR_ROUTE_PUBLIC},
    {"", "other", NULL, NULL, handle_other, WEIR_ROUTE_PREFIX | WEIR_ROUTE_PUBLIC},
};
