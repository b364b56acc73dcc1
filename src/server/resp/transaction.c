/* SPDX-License-Identifier: Apache-2.0 */
/* see transaction.h
 *
 * The queue is a buffer of commands, each a struct queued and its arguments, padded to a multiple
 * of 8 bytes:
 *
 *   | count, bytes | size, size, … | argument, argument, … | padding |
 */
#include "server/resp/transaction.h"

#include <string.h>

#include "server/resp/counters.h"
#include "server/resp/reply.h"

struct queued {
    uint32_t count, bytes; /* arguments; of all of it */
    uint32_t sizes[];
};

_Static_assert(WEIR_RESP_QUEUE_MAX + WEIR_RESP_QUEUE_ARGS_MAX / 16 <= WEIR_BATCH_MAX,
               "EXEC can take all decisions that it needs");

/* A size that says that the argument is null. */
#define NULL_SIZE UINT32_MAX

void weir_resp_transaction_end(struct weir_resp_workspace *redis, struct weir_resp_session *session)
{
    weir_buffer_give(&redis->worker->buffers, session->queue);
    session->queue = NULL;
    session->queued = session->queued_args = 0;
    session->multi = WEIR_RESP_MULTI_NONE;
}

/* --- Keeping -----------------------------------------------------------------------------------
 */

static size_t queued_bytes(const struct weir_resp_call *call)
{
    size_t bytes = sizeof(struct queued) + call->count * sizeof(uint32_t);
    for (uint32_t i = 0; i < call->count; i++)
        bytes += call->args[i].size;
    return (bytes + 7) / 8 * 8;
}

static void write_queued(struct queued *queued, const struct weir_resp_call *call, size_t bytes)
{
    char *at = (char *)&queued->sizes[call->count];
    queued->count = call->count;
    queued->bytes = (uint32_t)bytes;
    for (uint32_t i = 0; i < call->count; i++) {
        struct weir_bytes arg = call->args[i];
        queued->sizes[i] = arg.data ? (uint32_t)arg.size : NULL_SIZE;
        if (arg.data)
            memcpy(at, arg.data, arg.size);
        at += arg.size;
    }
}

/* False: it was answered. */
static bool keep(struct weir_resp_call *call)
{
    struct weir_resp_session *session = call->session;
    struct weir_buffers *buffers = &call->redis->worker->buffers;
    size_t bytes = queued_bytes(call), used = session->queue ? session->queue->used : 0;
    if (session->queued == WEIR_RESP_QUEUE_MAX || bytes > WEIR_RESP_QUEUE_BYTES_MAX - used ||
        session->queued_args + call->count > WEIR_RESP_QUEUE_ARGS_MAX) {
        weir_resp_error(call,
                        "ERR a transaction has at most %d commands, with %d arguments and %d bytes",
                        WEIR_RESP_QUEUE_MAX, WEIR_RESP_QUEUE_ARGS_MAX, WEIR_RESP_QUEUE_BYTES_MAX);
        return false;
    }
    struct weir_buffer *queue = session->queue ? weir_buffer_reserve(buffers, session->queue, bytes)
                                               : weir_buffer_take(buffers, bytes);
    if (!queue) {
        weir_resp_error(call, "ERR overloaded");
        return false;
    }
    session->queue = queue;
    write_queued((struct queued *)(void *)(queue->data + queue->used), call, bytes);
    queue->used += bytes;
    session->queued++;
    session->queued_args += (uint16_t)call->count;
    weir_resp_text(call, "QUEUED");
    return true;
}

bool weir_resp_transaction_keeps(struct weir_resp_call *call,
                                 const struct weir_resp_command *command)
{
    struct weir_resp_session *session = call->session;
    if (command->flags & WEIR_RESP_AT_ONCE)
        return false;
    if (session->multi == WEIR_RESP_MULTI_REFUSED) {
        if (command->flags & WEIR_RESP_NO_AUTH)
            return false;
        weir_resp_error(call, "ERR not run: MULTI was refused before it");
        return true;
    }
    bool kept = false;
    if (command->flags & WEIR_RESP_NO_AUTH)
        weir_resp_error(call, "ERR Command not allowed inside a transaction");
    else
        kept = keep(call);
    if (!kept)
        session->multi = WEIR_RESP_MULTI_ABORTED;
    return true;
}

void weir_resp_transaction_notes(struct weir_resp_call *call,
                                 const struct weir_resp_command *command)
{
    struct weir_resp_session *session = call->session;
    if (session->multi == WEIR_RESP_MULTI_QUEUES)
        session->multi = WEIR_RESP_MULTI_ABORTED;
    else if (session->multi == WEIR_RESP_MULTI_NONE && command && command->run == weir_resp_multi)
        session->multi = WEIR_RESP_MULTI_REFUSED;
}

/* --- MULTI, EXEC, DISCARD -----------------------------------------------------------------------
 */

void weir_resp_multi(struct weir_resp_call *call)
{
    if (call->session->multi != WEIR_RESP_MULTI_NONE) {
        weir_resp_error(call, "ERR MULTI calls can not be nested");
        return;
    }
    if (!call->session->authenticated) {
        call->session->multi = WEIR_RESP_MULTI_REFUSED;
        weir_resp_error(call, "NOAUTH Authentication required.");
        return;
    }
    call->session->multi = WEIR_RESP_MULTI_QUEUES;
    weir_resp_text(call, "OK");
}

void weir_resp_discard(struct weir_resp_call *call)
{
    if (call->session->multi == WEIR_RESP_MULTI_NONE) {
        weir_resp_error(call, "ERR DISCARD without MULTI");
        return;
    }
    weir_resp_transaction_end(call->redis, call->session);
    weir_resp_text(call, "OK");
}

/* Points `call` at a queued command. Returns where the next one begins. */
static const char *read_queued(struct weir_resp_call *call, const char *data,
                               struct weir_bytes *args)
{
    const struct queued *queued = (const struct queued *)(const void *)data;
    const char *at = (const char *)&queued->sizes[queued->count];
    for (uint32_t i = 0; i < queued->count; i++) {
        uint32_t size = queued->sizes[i];
        if (size == NULL_SIZE) {
            args[i] = (struct weir_bytes){NULL, 0};
            continue;
        }
        args[i] = (struct weir_bytes){at, size};
        at += size;
    }
    call->args = args;
    call->count = queued->count;
    return data + queued->bytes;
}

/* Runs one command; those of counters gather in `steps`. */
static void run_queued(struct weir_resp_call *call, struct weir_resp_steps *steps)
{
    if (weir_resp_steps_add(steps, call))
        return;
    weir_resp_command_find(call->args[0])->run(call);
}

static void run_queue(struct weir_resp_call *call, const struct weir_buffer *queue, uint32_t count)
{
    struct weir_resp_steps steps = {.edit = NULL};
    char *out = weir_resp_begin(call, WEIR_RESP_HEAD_MAX);
    if (!out)
        return;
    weir_resp_end(call, weir_resp_write_array(out, count));
    const char *at = queue ? queue->data : NULL;
    for (uint32_t i = 0; at && i < count && !call->close; i++) {
        /* EXEC has no arguments, so the worker's request is free; a command that was cut has its
         * own. */
        at = read_queued(call, at, call->redis->request.args);
        run_queued(call, &steps);
    }
    weir_resp_steps_end(&steps);
}

void weir_resp_exec(struct weir_resp_call *call)
{
    struct weir_resp_session *session = call->session;
    struct weir_buffer *queue = session->queue;
    uint32_t count = session->queued;
    uint8_t multi = session->multi;
    session->queue = NULL;
    weir_resp_transaction_end(call->redis, session);
    if (multi == WEIR_RESP_MULTI_QUEUES)
        run_queue(call, queue, count);
    else if (multi == WEIR_RESP_MULTI_NONE)
        weir_resp_error(call, "ERR EXEC without MULTI");
    else
        weir_resp_error(call, "EXECABORT Transaction discarded because of previous errors.");
    weir_buffer_give(&call->redis->worker->buffers, queue);
}

void weir_resp_watch(struct weir_resp_call *call)
{
    if (call->session->multi != WEIR_RESP_MULTI_NONE)
        weir_resp_error(call, "ERR WATCH inside MULTI is not allowed");
    else
        weir_resp_error(call, "ERR WATCH is not served: MULTI and EXEC are one decision without "
                              "it (docs/redis-protocol.md, Transactions)");
}

void weir_resp_unwatch(struct weir_resp_call *call)
{
    weir_resp_text(call, "OK");
}
