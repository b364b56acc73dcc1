/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, who may call, slots, replies that are ready. See resp.h. */
#include "server/resp/front.h"

#include <openssl/sha.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "server/adhoc/daemon.h"
#include "server/admin/exposition.h"
#include "server/daemon/addresses.h"
#include "server/daemon/daemon.h"
#include "server/resp/reply.h"
#include "server/resp/transaction.h"

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
        if (__builtin_expect(call->session->multi == WEIR_RESP_MULTI_NONE, 1) ||
            !weir_resp_transaction_keeps(call, command))
            command->run(call);
        return;
    }
    weir_resp_transaction_notes(call, command);
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
        [WEIR_CUT_TIMEOUT] = "-ERR the command took too long to arrive\r\n",
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
    redis->remote = worker->remote_store;
    redis->on_store_error = WEIR_FAIL_LOCAL;
    if (redis->remote) {
        const struct weir_store_settings *store = &weir_worker_settings(worker)->store;
        redis->flags = store->leased ? WEIR_CHECK_LEASED : 0;
        redis->on_store_error = store->on_store_error;
    }
    derive_secrets(redis);
    return redis;
}

/* It is being closed. */
static void redis_end(struct weir_connection *connection)
{
    struct weir_resp_session *session = (struct weir_resp_session *)(void *)connection->front_state;
    weir_resp_transaction_end(weir_connection_workspace(connection), session);
}

static void *redis_server(struct weir_daemon *daemon)
{
    return weir_daemon_redis(daemon);
}

const struct weir_front weir_resp_front = {
    .name = "redis",
    .request_max = WEIR_RESP_BUFFER_MAX,
    .idle_ms = WEIR_RESP_IDLE_MS,
    .kind = WEIR_LISTENER_REDIS,
    .setting = "server.redis",
    .settings = offsetof(struct weir_settings, redis),
    .option = offsetof(struct weir_server_options, redis),
    .server = redis_server,
    .open = redis_open,
    .close = free,
    .parse = redis_parse,
    .cut = redis_cut,
    .end = redis_end,
};

/* --- Metrics ---------------------------------------------------------------------------------- */

struct numbers {
    uint64_t limits, commands, errors, unknown_scripts;
};
#define AT(member) .at = offsetof(struct numbers, member)

static void add_workspace(struct numbers *sum, const struct weir_resp_workspace *redis)
{
    sum->commands += weir_counted(&redis->commands);
    sum->errors += weir_counted(&redis->errors);
    sum->unknown_scripts += weir_counted(&redis->unknown_scripts);
}

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    if (!weir_daemon_listens(daemon, &weir_resp_front))
        return false;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++)
            if (listener->kind == WEIR_LISTENER_REDIS)
                add_workspace(read, listener->workspace);
    }
    return true;
}

static bool read_limits(struct weir_daemon *daemon, void *read)
{
    *(uint64_t *)read = weir_adhoc_limits_count(weir_daemon_given_limits(daemon));
    return true;
}

static const struct weir_metric limit_rows[] = {
    {"weir_adhoc_limits", "gauge", NULL, "Distinct limits that requests and commands have given.",
     .at = 0},
    {.name = NULL},
};
static const struct weir_metric rows[] = {
    {"weir_redis_commands_total", "counter", NULL, "Commands of the Redis protocol.", AT(commands)},
    {"weir_redis_errors_total", "counter", NULL, "Errors that commands were answered with.",
     AT(errors)},
    {"weir_redis_unknown_scripts_total", "counter", NULL,
     "Calls of scripts that weir does not know, which failed.", AT(unknown_scripts)},
    {.name = NULL},
};
static const struct weir_metric_table resp_metrics[] = {
    {limit_rows, read_limits, sizeof(uint64_t)},
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};

static const struct weir_front *const resp_fronts[] = {&weir_resp_front, NULL};

const struct weir_service weir_service_resp = {
    .name = "redis",
    .fronts = resp_fronts,
    .metrics = resp_metrics,
};
