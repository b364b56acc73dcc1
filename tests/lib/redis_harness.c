/* SPDX-License-Identifier: Apache-2.0 */
/* see redis_harness.h */
#include "redis_harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/open.h"
#include "server/resp/front.h"
#include "table/table.h"

#define START_NS UINT64_C(1700000000123456789) /* no round number in any unit */

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void decided(void *context, struct weir_decision *decision)
{
    struct weir_slot *slot = decision->owner;
    (void)context;
    slot->waiting--;
}

static uint64_t harness_clock(struct weir_worker *worker)
{
    return ((struct redis_harness *)(void *)worker)->now_ns;
}

/* A table gives a place to a limit for every 32 KiB; twice as many as the commands may have. */
#define TABLE_BYTES_A_LIMIT 65536
#define DECISIONS (WEIR_OWED_MAX + WEIR_CHECKS_MAX) /* more are never owed at one time */

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct weir_reason reason;
    (void)name;
    return weir_store_prepare(context, NULL, limit, &reason);
}

static void open_engine(struct redis_harness *harness, const char *rules, uint32_t limits_max)
{
    static const char no_rules[] = "version: 1\nlimits: []\n";
    struct weir_worker *worker = harness->worker;
    struct weir_problems problems = {0};
    struct weir_table_options table = {
        .bytes = (limits_max + 8) * TABLE_BYTES_A_LIMIT, .wall_ns = START_NS, .secret = {1, 2}};
    rules = rules ? rules : no_rules;
    check(weir_rules_parse(&harness->rules, "rules", ".", rules, strlen(rules), &problems) == 0);
    weir_problems_free(&problems);
    check(weir_table_open(&worker->table, &table, NULL) == 0);
    check(weir_store_embedded_open(&worker->store, worker->table) == 0);
    check(weir_rules_prepare(harness->rules, prepare_limit, worker->store) == 0);
    harness->state.decisions = DECISIONS;
    struct weir_engine_options engine = {.store = worker->store,
                                         .rules = harness->rules,
                                         .secret = weir_table_secret(worker->table),
                                         .decisions = harness->state.decisions,
                                         .done = decided};
    check(weir_engine_open(&worker->engine, &engine) == 0);
}

struct redis_harness *redis_harness_open(const char *rules, uint32_t limits_max)
{
    struct redis_harness *harness = calloc(1, sizeof *harness);
    check(harness != NULL);
    struct weir_worker *worker = harness->worker = &harness->state.base;
    harness->now_ns = START_NS;
    weir_log_init(&harness->log, open("/dev/null", O_WRONLY | O_CLOEXEC), WEIR_LOG_TEXT);
    worker->log = &harness->log;
    open_engine(harness, rules, limits_max);
    weir_buffers_init(&worker->buffers);
    harness->state.dirty_end = &harness->state.dirty;
    worker->output.size = WEIR_OUTPUT_MAX + WEIR_REPLY_MAX;
    worker->output.data = malloc(worker->output.size);
    check(worker->output.data != NULL);
    check(weir_adhoc_limits_open(&harness->shared.limits, limits_max, NULL, 0) == 0);
    harness->shared.workers = &harness->worker;
    harness->shared.worker_count = 1;
    harness->listener = (struct weir_listener){
        .worker = worker, .front = &weir_resp_front, .kind = WEIR_LISTENER_REDIS, .local = true};
    struct weir_resp_workspace *redis = weir_resp_front.open(worker, &harness->shared);
    check(redis != NULL);
    redis->clock = harness_clock;
    harness->listener.workspace = redis;
    redis_harness_connect(harness);
    return harness;
}

/* Writes what is ready, as weir_connection_flush does. */
static void flush(struct redis_harness *harness)
{
    struct weir_connection *connection = &harness->connection;
    struct weir_output *output = &harness->worker->output;
    while (connection->first && !connection->first->waiting) {
        struct weir_slot *slot = connection->first;
        connection->first = slot->next;
        if (!slot->next)
            connection->last = NULL;
        connection->owed -= slot->weight;
        output->used = 0;
        slot->write(slot, output);
        weir_worker_give_slot(harness->worker, slot);
        check(output->used <= WEIR_REPLY_MAX);
        check(harness->raw_size + output->used < sizeof harness->raw);
        memcpy(harness->raw + harness->raw_size, output->data, output->used);
        harness->raw_size += output->used;
    }
    harness->raw[harness->raw_size] = '\0';
}

static void turn(struct redis_harness *harness)
{
    weir_count(&harness->worker->counters.decisions, harness->state.queued);
    harness->state.queued = 0;
    weir_engine_run(harness->worker->engine, harness->now_ns);
    flush(harness);
}

void redis_harness_connect(struct redis_harness *harness)
{
    turn(harness);
    if (harness->connection.worker)
        weir_resp_front.end(&harness->connection);
    if (harness->connection.aside)
        weir_buffer_give(&harness->worker->buffers, harness->connection.aside);
    memset(&harness->connection, 0, sizeof harness->connection);
    harness->connection.worker = harness->worker;
    harness->connection.listener = &harness->listener;
    harness->connection.state = WEIR_CONNECTION_OPEN;
    harness->closed = false;
    harness->waiting = 0;
}

const char *redis_harness_send(struct redis_harness *harness, const char *data, size_t size)
{
    check(harness->waiting + size <= sizeof harness->input);
    memcpy(harness->input + harness->waiting, data, size);
    size += harness->waiting;
    harness->raw_size = 0;
    size_t done = 0;
    while (done < size && !harness->closed) {
        if (harness->connection.owed >= WEIR_OWED_MAX)
            turn(harness);
        long n = weir_resp_front.parse(&harness->connection, harness->input + done, size - done);
        if (n == 0)
            break;
        harness->closed = n < 0;
        done = n < 0 ? size : done + (size_t)n;
    }
    harness->waiting = size - done;
    memmove(harness->input, harness->input + done, harness->waiting);
    turn(harness);
    return harness->raw;
}

/* Leaves out lines that tell a length, the type of all others but errors, and line ends. */
static void flatten(struct redis_harness *harness)
{
    char *out = harness->text;
    for (const char *at = harness->raw, *end; *at; at = end + 2) {
        end = strstr(at, "\r\n");
        check(end != NULL);
        bool nothing = !strncmp(at, "$-1", 3) || *at == '_';
        if (strchr("*%$~=", *at) && !nothing)
            continue;
        if (out > harness->text)
            *out++ = ' ';
        if (nothing) {
            memcpy(out, "nil", 3);
            out += 3;
            continue;
        }
        at += *at == ':' || *at == '+' || *at == '#';
        memcpy(out, at, (size_t)(end - at));
        out += end - at;
    }
    *out = '\0';
}

const char *redis_harness_ask(struct redis_harness *harness, uint64_t t_ms, const char *command)
{
    char line[4096];
    size_t size = strlen(command);
    check(size + 2 <= sizeof line);
    memcpy(line, command, size);
    memcpy(line + size, "\r\n", 2);
    harness->now_ns = START_NS + t_ms * 1000000;
    redis_harness_send(harness, line, size + 2);
    flatten(harness);
    return harness->text;
}

void redis_harness_close(struct redis_harness *harness)
{
    struct weir_worker *worker = harness->worker;
    redis_harness_connect(harness);
    weir_resp_front.close(harness->listener.workspace);
    weir_adhoc_limits_close(harness->shared.limits);
    weir_engine_close(worker->engine);
    worker->store->ops->close(worker->store);
    weir_table_close(worker->table);
    weir_rules_unref(harness->rules);
    while (harness->state.free_slots) {
        struct weir_slot *slot = harness->state.free_slots;
        harness->state.free_slots = slot->next;
        free(slot);
    }
    weir_buffers_free(&worker->buffers);
    free(worker->output.data);
    close(harness->log.fd);
    free(harness);
}
