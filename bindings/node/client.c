/* SPDX-License-Identifier: Apache-2.0 */
/* weir-client.node: libweir-client for JavaScript, as the class Client. client.js is the module
 * that programs see. An addon of its own, since libweir needs no libcurl.
 *
 * The client's thread hands what happens to the thread of Node through one threadsafe function a
 * client, in order. It keeps the program running while a request is in flight, and only then.
 *
 * Threads: an object belongs to the thread of Node that made it. What a thread has opened is closed
 * when it is collected, or when the thread ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <node_api.h>

#include <weir/client.h>

#include "client_copy.h"
#include "values.h"

#define HEADERS_MAX 64
#define NS_IN_MS 1e6
#define VALUES_MAX 10       /* of an event */
#define WINDOW (256 * 1024) /* bytes of a stream that JavaScript has not taken */

/* What an object of JavaScript wraps. */
struct client {
    struct weir_client *client;      /* NULL: closed */
    napi_threadsafe_function events; /* NULL: closed */
    napi_env env;
    size_t in_flight;    /* requests whose end JavaScript has not seen */
    unsigned references; /* the object, and the events until the last is delivered */
};

/* What JavaScript's function gets first. */
enum kind { ENDED, TRIED, BEGUN, PIECE };

/* A request in flight (ENDED), one try of one, or the head or a piece of its answer. Made by the
 * one thread, freed by the other. */
struct event {
    struct client *client;
    enum kind kind;
    uint32_t number; /* the request's name in JavaScript */
    bool no_memory;
    struct weir_client_answer answer; /* headers and body (of PIECE: the piece) are copies */
    struct weir_client_try try;       /* url and error are copies */
};

/* --- Values ----------------------------------------------------------------------------------- */

static napi_value null_of(napi_env env)
{
    napi_value result = NULL;
    napi_get_null(env, &result);
    return result;
}

static napi_value number(napi_env env, double value)
{
    napi_value result = NULL;
    napi_create_double(env, value, &result);
    return result;
}

static napi_value count(napi_env env, uint64_t value)
{
    return value == WEIR_CLIENT_UNKNOWN ? null_of(env) : number(env, (double)value);
}

static napi_value ms(napi_env env, uint64_t ns)
{
    return ns == WEIR_CLIENT_UNKNOWN ? null_of(env) : number(env, (double)ns / NS_IN_MS);
}

static napi_value text(napi_env env, const char *from)
{
    napi_value result = NULL;
    if (!from)
        return null_of(env);
    napi_create_string_utf8(env, from, NAPI_AUTO_LENGTH, &result);
    return result;
}

static napi_value as_limit(napi_env env, const struct weir_client_limit *limit)
{
    napi_value object = NULL;
    if (napi_create_object(env, &object) != napi_ok)
        return NULL;
    napi_set_named_property(env, object, "limit", count(env, limit->limit));
    napi_set_named_property(env, object, "remaining", count(env, limit->remaining));
    napi_set_named_property(env, object, "resetMs", ms(env, limit->reset_ns));
    napi_set_named_property(env, object, "intervalMs", ms(env, limit->interval_ns));
    return object;
}

/* Milliseconds of JavaScript; infinity is no limit. */
static bool ns_of(napi_env env, napi_value value, uint64_t *ns)
{
    double given;
    if (napi_get_value_double(env, value, &given) != napi_ok || !(given >= 0))
        return false;
    *ns = given < 1e12 ? (uint64_t)(given * NS_IN_MS) : WEIR_CLIENT_UNKNOWN;
    return true;
}

/* --- Events, from the client's thread to Node's ------------------------------------------------
 */

static void free_event(struct event *event)
{
    free(event->answer.headers);
    free(event->answer.body);
    free((void *)event->try.url);
    free((void *)event->try.error);
    free(event);
}

/* Hands an event over. The queue has no bound of its own: requests have. */
static void send(struct event *event)
{
    if (napi_call_threadsafe_function(event->client->events, event, napi_tsfn_nonblocking) !=
        napi_ok)
        free_event(event);
}

/* On the client's thread. */
static void on_done(void *context, const struct weir_client_answer *answer)
{
    struct event *event = context;
    event->answer = client_copy_answer(answer, &event->no_memory);
    send(event);
}

/* Another event of the request that `ended` will end; NULL: no memory. */
static struct event *new_event(const struct event *ended, enum kind kind)
{
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->client = ended->client;
    event->kind = kind;
    event->number = ended->number;
    return event;
}

static bool send_copied(struct event *event)
{
    bool good = event && !event->no_memory;
    if (good)
        send(event);
    else if (event)
        free_event(event);
    return good;
}

/* On the client's thread. */
static bool on_head(void *context, const struct weir_client_head *head)
{
    struct event *event = new_event(context, BEGUN);
    if (event) {
        event->answer = (struct weir_client_answer){
            .status = head->status, .tries = head->tries, .limit = head->limit};
        event->answer.headers = client_copy(
            head->headers, head->headers ? strlen(head->headers) : 0, &event->no_memory);
    }
    return send_copied(event);
}

/* On the client's thread. */
static bool on_body(void *context, int status, uint64_t offset, const void *data, size_t size)
{
    struct event *event = new_event(context, PIECE);
    if (event) {
        event->answer.body = client_copy(data, size, &event->no_memory);
        event->answer.body_size = size;
    }
    return send_copied(event);
}

/* On the client's thread. A try is not shown if there is no memory for it. */
static void on_try(void *context, const struct weir_client_try *one)
{
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return;
    event->client = context;
    event->kind = TRIED;
    event->try = *one;
    event->try.url = client_copy(one->url, strlen(one->url), &event->no_memory);
    event->try.error =
        client_copy(one->error, one->error ? strlen(one->error) : 0, &event->no_memory);
    (void)send_copied(event);
}

/* number, status, tries, limit, headers */
static size_t head_values(napi_env env, const struct event *event, napi_value *values)
{
    const struct weir_client_answer *head = &event->answer;
    size_t i = 0;
    values[i++] = number(env, event->number);
    values[i++] = number(env, head->status);
    values[i++] = number(env, head->tries);
    values[i++] = as_limit(env, &head->limit);
    return napi_create_string_latin1(env, head->headers ? head->headers : "", NAPI_AUTO_LENGTH,
                                     &values[i]) == napi_ok
               ? i + 1
               : 0;
}

/* number, piece */
static size_t piece_values(napi_env env, const struct event *event, napi_value *values)
{
    values[0] = number(env, event->number);
    return napi_create_buffer_copy(env, event->answer.body_size, event->answer.body, NULL,
                                   &values[1]) == napi_ok
               ? 2
               : 0;
}

/* url, number, status, error, waitedMs, tookMs, nextWaitMs, limit */
static size_t try_values(napi_env env, const struct weir_client_try *one, napi_value *values)
{
    size_t i = 0;
    values[i++] = text(env, one->url);
    values[i++] = number(env, one->number);
    values[i++] = number(env, one->status);
    values[i++] = text(env, one->error);
    values[i++] = ms(env, one->waited_ns);
    values[i++] = ms(env, one->took_ns);
    values[i++] = ms(env, one->next_wait_ns);
    values[i++] = as_limit(env, &one->limit);
    return i;
}

/* number, outcome, status, tries, limit, retryAfterMs, headers, body, reason */
static size_t done_values(napi_env env, const struct event *event, napi_value *values)
{
    const struct weir_client_answer *answer = &event->answer;
    const char *reason = event->no_memory ? "no memory for the answer" : answer->reason.text;
    enum weir_client_outcome outcome = event->no_memory ? WEIR_CLIENT_REFUSED : answer->outcome;
    size_t i = 0;
    values[i++] = number(env, event->number);
    values[i++] = text(env, weir_client_outcome_text(outcome));
    values[i++] = number(env, event->no_memory ? 0 : answer->status);
    values[i++] = number(env, answer->tries);
    values[i++] = as_limit(env, &answer->limit);
    values[i++] = outcome == WEIR_CLIENT_LIMITED ? ms(env, answer->retry_after_ns) : null_of(env);
    if (napi_create_string_latin1(env, answer->headers ? answer->headers : "", NAPI_AUTO_LENGTH,
                                  &values[i++]) != napi_ok ||
        napi_create_buffer_copy(env, answer->body ? answer->body_size : 0,
                                answer->body ? answer->body : "", NULL, &values[i++]) != napi_ok)
        return 0;
    values[i++] = text(env, reason);
    return i;
}

/* The program may end while no request is in flight. */
static void count_in_flight(struct client *client, bool more)
{
    client->in_flight = more ? client->in_flight + 1 : client->in_flight - 1;
    if (!client->events)
        return;
    if (more && client->in_flight == 1)
        napi_ref_threadsafe_function(client->env, client->events);
    else if (client->in_flight == 0)
        napi_unref_threadsafe_function(client->env, client->events);
}

static size_t values_of(napi_env env, const struct event *event, napi_value *values)
{
    switch (event->kind) {
    case TRIED:
        return try_values(env, &event->try, values);
    case BEGUN:
        return head_values(env, event, values);
    case PIECE:
        return piece_values(env, event, values);
    case ENDED:
    default:
        return done_values(env, event, values);
    }
}

/* On Node's thread, calls function(kind, ...values). Without an env, that thread is ending. */
static void deliver(napi_env env, napi_value function, void *context, void *data)
{
    struct event *event = data;
    napi_value values[VALUES_MAX], undefined;
    if (env) {
        if (event->kind == ENDED)
            count_in_flight(event->client, false);
        size_t given = values_of(env, event, values + 1);
        values[0] = number(env, event->kind);
        if (given != 0 && napi_get_undefined(env, &undefined) == napi_ok)
            napi_call_function(env, undefined, function, given + 1, values, NULL);
    }
    free_event(event);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

/* Ends the client's thread; events that it has sent are delivered still. */
static void end_client(void *data)
{
    struct client *client = data;
    if (!client->client)
        return;
    weir_client_close(client->client);
    client->client = NULL;
    napi_threadsafe_function events = client->events;
    client->events = NULL;
    napi_release_threadsafe_function(events, napi_tsfn_release);
}

static void close_client(struct client *client)
{
    if (client->client)
        napi_remove_env_cleanup_hook(client->env, end_client, client);
    end_client(client);
}

static void forget(struct client *client)
{
    if (--client->references == 0)
        free(client);
}

static void collected(napi_env env, void *data, void *hint)
{
    close_client(data);
    forget(data);
}

static void all_delivered(napi_env env, void *data, void *hint)
{
    forget(data);
}

enum argument {
    STATE,
    USER_AGENT,
    RATE,
    CONCURRENCY,
    HOST_CONCURRENCY,
    ADAPTIVE,
    TRIES,
    JITTER,
    BODY_MOST,
    QUEUE_MOST,
    FOLLOW,
    SEED,
    TIME_MS,
    TRY_MS,
    BASE_MS,
    CAP_MS,
    SHOWS_TRIES,
    RETRY_ON,
    RETRY_STATUSES,
    FACTOR,
    FUNCTION,
    ARGUMENTS
};

/* An array of statuses. */
static int read_statuses(napi_env env, napi_value list, uint16_t statuses[])
{
    uint32_t length = 0;
    uint64_t status;
    napi_value value;
    if (napi_get_array_length(env, list, &length) != napi_ok || length > WEIR_CLIENT_RETRY_ON_MOST)
        return WEIR_ERR_RANGE;
    for (uint32_t i = 0; i < length; i++) {
        if (napi_get_element(env, list, i, &value) != napi_ok ||
            !values_number(env, value, &status) || status > UINT16_MAX)
            return WEIR_ERR_RANGE;
        statuses[i] = status > 0 ? (uint16_t)status : UINT16_MAX; /* 0 would end the list */
    }
    return 0;
}

/* Texts of the options are the caller's to free. */
static int read_options(napi_env env, const napi_value *args, struct weir_client_options *options,
                        char *texts[RATE + 1])
{
    uint64_t numbers[ARGUMENTS] = {0};
    int err = 0;
    for (int i = STATE; err == 0 && i <= RATE; i++)
        err = values_text_copy(env, args[i], &texts[i]);
    if (err < 0)
        return err;
    for (int i = CONCURRENCY; i <= SHOWS_TRIES; i++)
        if (i >= TIME_MS && i <= CAP_MS ? !ns_of(env, args[i], &numbers[i])
                                        : !values_number(env, args[i], &numbers[i]))
            return WEIR_ERR_RANGE;
    *options = (struct weir_client_options){
        .state_file = texts[STATE],
        .user_agent = texts[USER_AGENT],
        .rate = texts[RATE],
        .concurrency = (uint32_t)numbers[CONCURRENCY],
        .host_concurrency = (uint32_t)numbers[HOST_CONCURRENCY],
        .adaptive = numbers[ADAPTIVE] != 0,
        .tries = (uint32_t)numbers[TRIES],
        .jitter = (enum weir_client_jitter)numbers[JITTER],
        .body_most = numbers[BODY_MOST],
        .queue_most = (uint32_t)numbers[QUEUE_MOST],
        .follow = numbers[FOLLOW] != 0,
        .seed = numbers[SEED],
        .time_ns = numbers[TIME_MS],
        .try_ns = numbers[TRY_MS],
        .backoff_base_ns = numbers[BASE_MS],
        .backoff_cap_ns = numbers[CAP_MS],
        .on_try = numbers[SHOWS_TRIES] != 0 ? on_try : NULL,
    };
    if (napi_get_value_double(env, args[FACTOR], &options->backoff_factor) != napi_ok)
        return WEIR_ERR_RANGE;
    err = read_statuses(env, args[RETRY_ON], options->retry_on);
    return err < 0 ? err : read_statuses(env, args[RETRY_STATUSES], options->retry_statuses);
}

static bool make_events(napi_env env, struct client *client, napi_value function)
{
    napi_value name;
    return napi_create_string_utf8(env, "weir.client", NAPI_AUTO_LENGTH, &name) == napi_ok &&
           napi_create_threadsafe_function(env, function, NULL, name, 0, 1, client, all_delivered,
                                           client, deliver, &client->events) == napi_ok &&
           ++client->references == 1 &&
           napi_unref_threadsafe_function(env, client->events) == napi_ok;
}

static napi_value construct(napi_env env, napi_callback_info info)
{
    napi_value self, args[ARGUMENTS];
    size_t given = ARGUMENTS;
    struct weir_reason reason = {""};
    struct weir_client_options options;
    char *texts[RATE + 1] = {NULL};
    if (napi_get_cb_info(env, info, &given, args, &self, NULL) != napi_ok || given < ARGUMENTS)
        return values_misused(env);
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return values_fail(env, WEIR_ERR_MEMORY, NULL);
    client->env = env;
    if (!make_events(env, client, args[FUNCTION])) {
        free(client);
        return values_misused(env);
    }
    int err = read_options(env, args, &options, texts);
    options.context = client;
    if (err == 0)
        err = weir_client_open(&client->client, &options, &reason);
    for (int i = STATE; i <= RATE; i++)
        free(texts[i]);
    if (err == 0 && napi_add_env_cleanup_hook(env, end_client, client) == napi_ok &&
        napi_wrap(env, self, client, collected, NULL, NULL) == napi_ok) {
        client->references++;
        return self;
    }
    if (client->client)
        close_client(client);
    else
        napi_release_threadsafe_function(client->events, napi_tsfn_release);
    return values_fail(env, err < 0 ? err : WEIR_ERR_MEMORY, reason.text);
}

/* The object that a method is called on, and its arguments; NULL: an exception is pending. */
static struct client *enter(napi_env env, napi_callback_info info, size_t wanted, napi_value *args)
{
    napi_value self;
    void *client = NULL;
    size_t given = wanted;
    if (napi_get_cb_info(env, info, &given, args, &self, NULL) != napi_ok ||
        napi_unwrap(env, self, &client) != napi_ok || !client || given < wanted) {
        values_misused(env);
        return NULL;
    }
    if (!((struct client *)client)->client) {
        values_fail(env, WEIR_ERR_CANCELLED, "the session is closed: open another");
        return NULL;
    }
    return client;
}

static napi_value close_method(napi_env env, napi_callback_info info)
{
    struct client *client = enter(env, info, 0, NULL);
    if (client)
        close_client(client);
    return NULL;
}

/* --- Requests --------------------------------------------------------------------------------- */

enum field {
    NUMBER,
    METHOD,
    URL,
    HEADERS,
    BODY,
    KEY,
    PRIORITY,
    SCOPE,
    TRY_COUNT,
    TIME,
    STREAMS,
    FIELDS
};

/* What a request needs until it is submitted. */
struct texts {
    char *method, *url, *scope, *headers[HEADERS_MAX];
    size_t header_count;
};

static void free_texts(struct texts *texts)
{
    free(texts->method);
    free(texts->url);
    free(texts->scope);
    for (size_t i = 0; i < texts->header_count; i++)
        free(texts->headers[i]);
}

static int read_headers(napi_env env, napi_value list, struct texts *texts)
{
    uint32_t length = 0;
    napi_value line;
    if (napi_get_array_length(env, list, &length) != napi_ok)
        return WEIR_ERR_SYNTAX;
    if (length > HEADERS_MAX)
        return WEIR_ERR_TOO_LARGE;
    for (uint32_t i = 0; i < length; i++) {
        if (napi_get_element(env, list, i, &line) != napi_ok)
            return WEIR_ERR_SYNTAX;
        int err = values_text_copy(env, line, &texts->headers[i]);
        if (err < 0)
            return err;
        texts->header_count = i + 1;
    }
    return 0;
}

static int read_body(napi_env env, napi_value body, struct weir_client_request *request)
{
    bool is_buffer = false;
    void *data = NULL;
    if (napi_is_buffer(env, body, &is_buffer) != napi_ok)
        return WEIR_ERR_SYNTAX;
    if (!is_buffer)
        return 0;
    if (napi_get_buffer_info(env, body, &data, &request->body_size) != napi_ok)
        return WEIR_ERR_SYNTAX;
    request->body = data ? data : "";
    return 0;
}

static int read_request(napi_env env, const napi_value *args, struct texts *texts,
                        struct weir_client_request *request, uint32_t *number)
{
    uint64_t tries;
    bool streams;
    int err = values_text_copy(env, args[METHOD], &texts->method);
    if (err == 0)
        err = values_text_copy(env, args[URL], &texts->url);
    if (err == 0)
        err = values_text_copy(env, args[SCOPE], &texts->scope);
    if (err == 0)
        err = read_headers(env, args[HEADERS], texts);
    if (err == 0)
        err = read_body(env, args[BODY], request);
    if (err < 0)
        return err;
    if (napi_get_value_uint32(env, args[NUMBER], number) != napi_ok ||
        napi_get_value_bool(env, args[KEY], &request->idempotency_key) != napi_ok ||
        napi_get_value_int32(env, args[PRIORITY], &request->priority) != napi_ok ||
        !values_number(env, args[TRY_COUNT], &tries) ||
        !ns_of(env, args[TIME], &request->time_ns) ||
        napi_get_value_bool(env, args[STREAMS], &streams) != napi_ok)
        return WEIR_ERR_RANGE;
    if (streams) {
        request->on_head = on_head;
        request->on_body = on_body;
        request->body_window = WINDOW;
    }
    request->method = texts->method;
    request->url = texts->url;
    request->scope = texts->scope;
    request->headers = (const char *const *)texts->headers;
    request->header_count = texts->header_count;
    request->tries = (uint32_t)tries;
    return 0;
}

/* submit(number, method, url, headers, body, key, priority, scope, tries, timeMs, streams): a
 * bigint for cancel and consumed. The end of the request comes as an event with the number. */
static napi_value submit(napi_env env, napi_callback_info info)
{
    napi_value args[FIELDS], result = NULL;
    struct texts texts = {0};
    struct weir_client_request request = {.on_done = on_done};
    uint32_t name;
    uint64_t id;
    struct client *client = enter(env, info, FIELDS, args);
    if (!client)
        return NULL;
    struct event *event = calloc(1, sizeof *event);
    int err = event ? read_request(env, args, &texts, &request, &name) : WEIR_ERR_MEMORY;
    if (err == 0) {
        event->client = client;
        event->number = name;
        request.context = event;
        err = weir_client_submit(client->client, &request, &id);
    }
    free_texts(&texts);
    if (err < 0) {
        free(event);
        return values_fail(
            env, err,
            err == WEIR_ERR_SYNTAX ? "the URL, the method or a header field is invalid" : NULL);
    }
    count_in_flight(client, true);
    napi_create_bigint_uint64(env, id, &result);
    return result;
}

static napi_value cancel(napi_env env, napi_callback_info info)
{
    napi_value args[1];
    uint64_t id;
    bool lossless;
    struct client *client = enter(env, info, 1, args);
    if (!client)
        return NULL;
    if (napi_get_value_bigint_uint64(env, args[0], &id, &lossless) != napi_ok)
        return values_misused(env);
    weir_client_cancel(client->client, id);
    return NULL;
}

/* consumed(id, bytes) of a stream */
static napi_value consumed(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    uint64_t id, bytes;
    bool lossless;
    struct client *client = enter(env, info, 2, args);
    if (!client)
        return NULL;
    if (napi_get_value_bigint_uint64(env, args[0], &id, &lossless) != napi_ok ||
        !values_number(env, args[1], &bytes))
        return values_misused(env);
    int err = weir_client_consumed(client->client, id, bytes);
    return err < 0 ? values_fail(env, err, NULL) : NULL;
}

/* known(url, scope): the limit, or null */
static napi_value known(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    char *url = NULL, *scope = NULL;
    struct weir_client_limit limit = {0};
    struct client *client = enter(env, info, 2, args);
    if (!client)
        return NULL;
    int err = values_text_copy(env, args[0], &url);
    if (err == 0)
        err = values_text_copy(env, args[1], &scope);
    if (err == 0)
        err = url ? weir_client_known(client->client, url, scope, &limit) : WEIR_ERR_SYNTAX;
    free(url);
    free(scope);
    if (err == WEIR_ERR_NOT_FOUND)
        return null_of(env);
    return err < 0 ? values_fail(env, err, err == WEIR_ERR_SYNTAX ? "the URL is invalid" : NULL)
                   : as_limit(env, &limit);
}

static napi_value expect(napi_env env, napi_callback_info info)
{
    napi_value args[1];
    uint64_t requests;
    struct client *client = enter(env, info, 1, args);
    if (!client)
        return NULL;
    if (!values_number(env, args[0], &requests))
        return values_fail(env, WEIR_ERR_RANGE, NULL);
    weir_client_expect(client->client, requests);
    return NULL;
}

/* --- The module ------------------------------------------------------------------------------- */

#define METHOD_OF(name, function)                                                                  \
    {                                                                                              \
        name, NULL, function, NULL, NULL, NULL, napi_default, NULL                                 \
    }

static napi_value init(napi_env env, napi_value exports)
{
    const napi_property_descriptor methods[] = {
        METHOD_OF("cancel", cancel),     METHOD_OF("close", close_method),
        METHOD_OF("consumed", consumed), METHOD_OF("expect", expect),
        METHOD_OF("known", known),       METHOD_OF("submit", submit),
    };
    napi_value class;
    if (napi_define_class(env, "Client", NAPI_AUTO_LENGTH, construct, NULL,
                          sizeof methods / sizeof methods[0], methods, &class) != napi_ok ||
        napi_set_named_property(env, exports, "Client", class) != napi_ok)
        return NULL;
    return exports;
}

NAPI_MODULE(weir_client, init)
