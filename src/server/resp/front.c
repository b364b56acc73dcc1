/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, who may call, slots, replies that are ready. See resp.h. */
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "core/siphash.h"
#include "server/resp/resp.h"

/* --- Replies that are ready ------------------------------------------------------------------- */

static void text_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_buffer *text = slot->buffer;
    if (!text)
        return;
    if (text->used <= WEIR_REPLY_MAX) {
        memcpy(output->data + output->used, text->data, text->used);
        output->used += text->used;
    } else {
        weir_connection_send(slot->connection, output, text->data, text->used);
    }
    weir_buffer_give(&slot->connection->worker->buffers, text);
}

/* Replies that follow each other share a slot and its buffer. */
char *weir_resp_begin(struct weir_resp_call *call, size_t room)
{
    struct weir_connection *connection = call->connection;
    struct weir_slot *slot = connection->last;
    if (slot && slot->write == text_write && slot->buffer &&
        slot->buffer->size - slot->buffer->used >= room) {
        weir_slot_weigh(slot, room);
        return slot->buffer->data + slot->buffer->used;
    }
    slot = weir_connection_slot(connection);
    if (slot) {
        slot->write = text_write;
        slot->buffer = weir_buffer_take(&connection->worker->buffers, room);
        weir_slot_weigh(slot, room);
    }
    if (slot && slot->buffer)
        return slot->buffer->data;
    call->close = true;
    return NULL;
}

void weir_resp_end(struct weir_resp_call *call, const char *end)
{
    struct weir_buffer *text = call->connection->last->buffer;
    text->used = (size_t)(end - text->data);
}

void weir_resp_text(struct weir_resp_call *call, const char *simple)
{
    size_t size = strlen(simple);
    char *out = weir_resp_begin(call, WEIR_RESP_LINE_TEXT_MAX(size));
    if (out)
        weir_resp_end(call, weir_resp_write_simple(out, simple, size));
}

void weir_resp_integer(struct weir_resp_call *call, int64_t value)
{
    char *out = weir_resp_begin(call, WEIR_RESP_INTEGER_MAX);
    if (out)
        weir_resp_end(call, weir_resp_write_integer(out, value));
}

void weir_resp_bulk(struct weir_resp_call *call, struct weir_bytes bytes)
{
    char *out = weir_resp_begin(call, WEIR_RESP_BULK_MAX(bytes.size));
    if (out)
        weir_resp_end(call, weir_resp_write_bulk(out, bytes.data, bytes.size));
}

void weir_resp_error(struct weir_resp_call *call, const char *format, ...)
{
    char text[WEIR_RESP_ERROR_MAX];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (size < 0 || (size_t)size >= sizeof text)
        size = (int)strlen(text);
    weir_count(&call->redis->errors, 1);
    char *out = weir_resp_begin(call, WEIR_RESP_LINE_TEXT_MAX(sizeof text));
    if (out)
        weir_resp_end(call, weir_resp_write_error(out, text, (size_t)size));
}

bool weir_resp_write_refusal(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    const struct weir_reason *reason = weir_engine_refusal(slot->decision);
    char text[WEIR_RESP_ERROR_MAX];
    if (!reason)
        return false;
    int size = snprintf(text, sizeof text, "ERR %.*s", WEIR_RESP_ERROR_MAX - 8, reason->text);
    char *out = output->data + output->used;
    weir_count(&redis->errors, 1);
    output->used = (size_t)(weir_resp_write_error(out, text, (size_t)size) - output->data);
    weir_worker_give(redis->worker, slot->decision);
    return true;
}

void weir_resp_write_count(struct weir_slot *slot, struct weir_output *output, int64_t count,
                           int error)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    char *out = output->data + output->used;
    if (error) {
        char text[WEIR_RESP_ERROR_MAX];
        int size = snprintf(text, sizeof text, "ERR store: %s", weir_error_text(error));
        weir_count(&redis->errors, 1);
        out = weir_resp_write_error(out, text, (size_t)size);
    } else {
        out = weir_resp_write_integer(out, count);
    }
    output->used = (size_t)(out - output->data);
}

void weir_resp_wrong_arity(struct weir_resp_call *call)
{
    char name[32];
    size_t size = call->args[0].size < sizeof name ? call->args[0].size : sizeof name;
    for (size_t i = 0; i < size; i++) {
        char c = call->args[0].data[i];
        name[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    weir_resp_error(call, "ERR wrong number of arguments for '%.*s' command", (int)size, name);
}

void weir_resp_syntax_error(struct weir_resp_call *call)
{
    weir_resp_error(call, "ERR syntax error");
}

/* --- Arguments and keys ----------------------------------------------------------------------- */

bool weir_resp_number_any(struct weir_bytes arg, int64_t *value)
{
    if (!arg.size)
        return false;
    const char *at = arg.data, *end = at + arg.size;
    bool negative = *at == '-';
    at += negative || *at == '+';
    if (at == end)
        return false;
    uint64_t number = 0, most = (uint64_t)INT64_MAX + negative;
    for (; at < end; at++) {
        unsigned digit = (unsigned char)(*at - '0');
        if (digit > 9 || number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *value = (int64_t)(negative ? 0 - number : number);
    return true;
}

/* Longer keys are sent as their SHA-256. */
#define KEY_SENT_MAX 256

static struct weir_bytes key_text(const struct weir_resp_call *call, enum weir_resp_kind kind,
                                  struct weir_bytes key, char text[KEY_SENT_MAX + 8])
{
    static const char kinds[WEIR_RESP_KINDS] = {'b', 'w'};
    unsigned char digest[SHA256_DIGEST_LENGTH];
    bool whole = !key.data || key.size <= KEY_SENT_MAX;
    int size = snprintf(text, 8, "%c%u%c", kinds[kind], call->session->database, whole ? ':' : '#');
    char *at = text + size;
    if (whole) {
        if (key.data)
            memcpy(at, key.data, key.size);
        return (struct weir_bytes){text, (size_t)size + key.size};
    }
    SHA256((const unsigned char *)key.data, key.size, digest);
    at = weir_hex_write(at, digest, sizeof digest);
    return (struct weir_bytes){text, (size_t)(at - text)};
}

/* The rare part of weir_resp_fill_check. */
static __attribute__((noinline)) bool keep_text(struct weir_resp_call *call,
                                                struct weir_decision *decision, uint16_t i,
                                                enum weir_resp_kind kind, struct weir_bytes key)
{
    /* Names the state of an operation, whose limit nobody knows. */
    static const struct weir_limit any[WEIR_RESP_KINDS] = {
        [WEIR_RESP_BUCKETS] = {.spec = {.algorithm = WEIR_GCRA}},
        [WEIR_RESP_WINDOWS] = {.spec = {.algorithm = WEIR_FIXED_WINDOW}},
    };
    struct weir_check *check = &decision->checks[i];
    char text[KEY_SENT_MAX + 8];
    if (!check->limit)
        check->limit = &any[kind];
    check->key = weir_decision_keep(decision, key_text(call, kind, key, text));
    if (check->key.data)
        return true;
    weir_resp_error(call, "ERR the keys are too long together");
    return false;
}

bool weir_resp_fill_check(struct weir_resp_call *call, struct weir_decision *decision, uint16_t i,
                          enum weir_resp_kind kind, struct weir_bytes key,
                          const struct weir_limit *limit)
{
    const struct weir_resp_workspace *redis = call->redis;
    struct weir_check *check = &decision->checks[i];
    weir_siphash128(redis->secrets[kind][call->session->database], key.data ? key.data : "",
                    key.size, check->hash);
    check->limit = limit;
    check->key = (struct weir_bytes){"", 0};
    check->tag = 0;
    check->rule = UINT32_MAX;
    check->flags = redis->flags;
    check->on_store_error = redis->on_store_error;
    return __builtin_expect(!redis->remote, 1) || keep_text(call, decision, i, kind, key);
}

/* --- Decisions -------------------------------------------------------------------------------- */

void weir_resp_wait(struct weir_resp_call *call, struct weir_decision *decision,
                    void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_slot *slot = weir_connection_slot(call->connection);
    if (!slot) {
        weir_worker_give(call->redis->worker, decision);
        call->close = true;
        return;
    }
    slot->decision = decision;
    slot->write = write;
    slot->flags = call->session->version;
    weir_slot_wait(slot, decision);
}

void weir_resp_decide(struct weir_resp_call *call, enum weir_resp_kind kind, struct weir_bytes key,
                      const struct weir_limit *limit, enum weir_op op, uint64_t cost,
                      void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_decision *decision = weir_worker_take(call->redis->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return;
    }
    if (!weir_resp_fill_check(call, decision, 0, kind, key, limit)) {
        weir_worker_give(call->redis->worker, decision);
        return;
    }
    decision->checks[0].cost = cost;
    decision->count = 1;
    decision->op = (uint8_t)op;
    weir_resp_wait(call, decision, write);
}

uint64_t weir_resp_settle(struct weir_resp_call *call)
{
    uint64_t now_ns = call->redis->clock(call->redis->worker);
    weir_worker_settle(call->redis->worker, now_ns);
    return now_ns;
}

/* --- Requests --------------------------------------------------------------------------------- */

static void session_begin(struct weir_resp_workspace *redis, struct weir_connection *connection,
                          struct weir_resp_session *session)
{
    session->id =
        atomic_fetch_add_explicit(&redis->shared->next_client, 1, memory_order_relaxed) + 1;
    session->version = 2;
    session->authenticated = !weir_listener_settings(connection->listener)->token;
    session->parser.unauthenticated = !session->authenticated;
}

static void unknown_command(struct weir_resp_call *call)
{
    char args[160];
    size_t used = 0;
    for (uint32_t i = 1; i < call->count && i < WEIR_RESP_ARGS_MAX && used < 128; i++) {
        struct weir_bytes arg = call->args[i];
        int room = (int)(128 - used);
        int size = arg.size < (size_t)room ? (int)arg.size : room;
        int n =
            snprintf(args + used, sizeof args - used, "'%.*s' ", size, arg.data ? arg.data : "");
        used += n > 0 ? (size_t)n : 0;
    }
    weir_resp_error(call, "ERR unknown command '%.*s', with args beginning with: %.*s",
                    WEIR_RESP_SHOWN(call->args[0]), (int)used, args);
}

static bool arity_fits(const struct weir_resp_command *command, uint32_t count)
{
    if (command->flags & WEIR_RESP_OWN_ARITY)
        return true;
    return command->arity >= 0 ? count == (uint32_t)command->arity
                               : count >= (uint32_t)-command->arity;
}

static void call_run(struct weir_resp_call *call)
{
    const struct weir_resp_command *command = weir_resp_command_find(call->args[0]);
    weir_count(&call->redis->commands, 1);
    if (__builtin_expect(!command || call->session->refused_multi, 0) &&
        weir_resp_transaction(call, command))
        return;
    if (!command) {
        /* A web page can have a browser send these; Redis closes too (networking, CVE-2017-15047).
         */
        if (weir_resp_is(call->args[0], "POST") || weir_resp_is(call->args[0], "HOST:"))
            call->close = true;
        else
            unknown_command(call);
    } else if (call->count > WEIR_RESP_ARGS_MAX) {
        weir_resp_error(call, "ERR more than %d arguments", WEIR_RESP_ARGS_MAX);
    } else if (!arity_fits(command, call->count)) {
        weir_resp_wrong_arity(call);
    } else if (!call->session->authenticated && !(command->flags & WEIR_RESP_NO_AUTH)) {
        weir_resp_error(call, "NOAUTH Authentication required.");
    } else {
        command->run(call);
    }
}

/* Part of a request is there. Its arguments so far move from the worker's memory to the
 * connection's. */
static long redis_wait(struct weir_connection *connection, const struct weir_resp_session *session,
                       const struct weir_resp_request *request)
{
    if (connection->aside || !session->parser.have)
        return 0;
    connection->aside = weir_buffer_take(&connection->worker->buffers, sizeof *request);
    if (!connection->aside)
        return -1;
    uint32_t have =
        session->parser.have < WEIR_RESP_ARGS_MAX ? session->parser.have : WEIR_RESP_ARGS_MAX;
    memcpy(connection->aside->data, request,
           offsetof(struct weir_resp_request, args) + have * sizeof *request->args);
    return 0;
}

static long redis_parse(struct weir_connection *connection, char *data, size_t size)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(connection);
    struct weir_resp_session *session = (struct weir_resp_session *)(void *)connection->front_state;
    struct weir_resp_request *request = &redis->request;
    if (!session->id)
        session_begin(redis, connection, session);
    if (connection->aside)
        request = (struct weir_resp_request *)(void *)connection->aside->data;
    struct weir_resp_call call = {
        .redis = redis, .connection = connection, .session = session, .args = request->args};
    long n = weir_resp_parse(&session->parser, data, size, request);
    if (n == 0)
        return redis_wait(connection, session, request);
    if (n < 0) {
        weir_count(&connection->worker->counters.protocol_errors, 1);
        weir_resp_error(&call, "ERR %s", session->parser.problem);
        call.close = true;
    } else if (request->count) {
        call.count = request->count;
        call_run(&call);
        if (__builtin_expect(call.hold_ms > 0, 0) && connection->last)
            weir_connection_hold(connection, call.hold_ms);
    }
    if (connection->aside) {
        weir_buffer_give(&connection->worker->buffers, connection->aside);
        connection->aside = NULL;
    }
    return call.close ? -1 : n;
}

static void redis_cut(struct weir_connection *connection, enum weir_cut why,
                      struct weir_output *output)
{
    static const char *const words[] = {
        [WEIR_CUT_TIMEOUT] = "-ERR the command did not come in time\r\n",
        [WEIR_CUT_BUSY] = "-ERR max number of clients reached\r\n",
        [WEIR_CUT_TOO_LARGE] = "-ERR Protocol error: too big request\r\n",
    };
    size_t size = strlen(words[why]);
    memcpy(output->data + output->used, words[why], size);
    output->used += size;
}

/* --- The front end ---------------------------------------------------------------------------- */

/* One secret a kind and database, by hashing their numbers with the region's. */
static void derive_secrets(struct weir_resp_workspace *redis)
{
    const uint64_t *secret = weir_table_secret(redis->worker->table);
    for (unsigned kind = 0; kind < WEIR_RESP_KINDS; kind++) {
        for (unsigned database = 0; database < WEIR_RESP_DATABASES; database++) {
            char label[32];
            int size = snprintf(label, sizeof label, "weir redis %u %u", kind, database);
            weir_siphash128(secret, label, (size_t)size, redis->secrets[kind][database]);
        }
    }
}

static void *redis_open(struct weir_worker *worker, void *server)
{
    struct weir_resp_workspace *redis = calloc(1, sizeof *redis);
    if (!redis)
        return NULL;
    redis->worker = worker;
    redis->shared = server;
    redis->clock = weir_worker_time;
    redis->remote = worker->shared != NULL;
    redis->on_store_error = WEIR_FAIL_LOCAL;
    if (redis->remote) {
        const struct weir_store_settings *store = &weir_worker_settings(worker)->store;
        redis->flags = store->leased ? WEIR_CHECK_LEASED : 0;
        redis->on_store_error = store->on_store_error;
    }
    derive_secrets(redis);
    return redis;
}

const struct weir_front weir_resp_front = {
    .name = "redis",
    .request_max = WEIR_RESP_BUFFER_MAX,
    .idle_ms = WEIR_RESP_IDLE_MS,
    .open = redis_open,
    .close = free,
    .parse = redis_parse,
    .cut = redis_cut,
};
