/* SPDX-License-Identifier: Apache-2.0 */
/* see batch.h */
#include "server/http/batch.h"

#include <stdio.h>
#include <string.h>

#include "server/http/check_api.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/net/pieces.h"

/* An answer, what is before it, and the end of the array. */
#define ANSWER_ROOM (WEIR_CHECK_ANSWER_MAX + 2)

/* The first buffer has room for a short batch; with the others all answers of the longest one have
 * room, and little of it is left over. */
#define ANSWERS_BYTES (1u << 20)

enum batch_phase { BATCH_READ, BATCH_LOOKED, BATCH_QUEUE, BATCH_DECIDED };

/* In slot->buffer; slot->count checks are read. */
struct batch {
    struct weir_decision *decisions[WEIR_CHECK_JSON_BATCH_MAX]; /* first: see struct weir_slot */
    struct weir_check_cursor cursor;
    struct weir_buffer *body;                   /* the copy of it; NULL: all of it is read */
    struct weir_buffer *answers, *last_answers; /* as far as they are made; NULL: none are */
    size_t answers_size;
    enum batch_phase phase;
    uint32_t queued, answered; /* of the decisions */
    uint32_t held;             /* of them, as weir_worker_hold counts */
    int error;                 /* of the check `count`, which `reason` explains; 0: none */
    struct weir_reason reason;
};

static struct batch *batch_of(const struct weir_slot *slot)
{
    return (struct batch *)(void *)slot->buffer->data;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void batch_unhold(struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    weir_worker_unhold(slot->connection->worker, batch->held);
    batch->held = 0;
}

static void answers_give(struct weir_buffers *buffers, struct weir_buffer *first)
{
    while (first) {
        struct weir_buffer *next = first->next;
        weir_buffer_give(buffers, first);
        first = next;
    }
}

/* Gives back all but the decisions. */
static void batch_drop(struct weir_slot *slot)
{
    struct weir_buffers *buffers = &slot->connection->worker->buffers;
    struct batch *batch = batch_of(slot);
    batch_unhold(slot);
    weir_buffer_give(buffers, batch->body);
    answers_give(buffers, batch->answers);
    batch->body = batch->answers = batch->last_answers = NULL;
}

static void batch_give(struct weir_slot *slot)
{
    struct weir_worker *worker = slot->connection->worker;
    batch_drop(slot);
    for (uint32_t i = 0; i < slot->count; i++)
        weir_worker_give(worker, batch_of(slot)->decisions[i]);
    weir_buffer_give(&worker->buffers, slot->buffer);
    slot->buffer = NULL;
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* The buffer for the next answer. NULL: no memory. */
static struct weir_buffer *answers_room(struct weir_buffers *buffers, struct batch *batch)
{
    struct weir_buffer *last = batch->last_answers;
    if (last && last->size - last->used >= ANSWER_ROOM)
        return last;
    struct weir_buffer *next = weir_buffer_take(buffers, last ? ANSWERS_BYTES : ANSWER_ROOM);
    if (!next)
        return NULL;
    if (last)
        last->next = next;
    else
        batch->answers = next;
    batch->last_answers = next;
    return next;
}

/* Appends up to `most` of the answers to the array. False: no memory. */
static bool batch_answer(struct weir_http *http, struct weir_slot *slot, uint32_t most)
{
    struct weir_buffers *buffers = &http->worker->buffers;
    struct batch *batch = batch_of(slot);
    uint32_t end = batch->answered + smaller(most, slot->count - batch->answered);
    for (; batch->answered < end; batch->answered++) {
        struct weir_buffer *body = answers_room(buffers, batch);
        if (!body)
            return false;
        size_t before = body->used;
        body->data[body->used++] = batch->answered ? ',' : '[';
        weir_engine_answer(batch->decisions[batch->answered], &http->answer, http->lease);
        body->used += weir_check_answer_write(&http->answer, http->denial, body->data + body->used);
        batch->answers_size += body->used - before;
    }
    return true;
}

/* The whole array, of *size bytes; the caller gives it back. NULL: no memory. */
static struct weir_buffer *batch_take_answers(struct weir_http *http, struct weir_slot *slot,
                                              size_t *size)
{
    struct batch *batch = batch_of(slot);
    if (!batch_answer(http, slot, slot->count) ||
        (!slot->count && !answers_room(&http->worker->buffers, batch)))
        return NULL;
    struct weir_buffer *answers = batch->answers, *last = batch->last_answers;
    batch->answers = batch->last_answers = NULL;
    if (!slot->count)
        last->data[last->used++] = '[';
    last->data[last->used++] = ']';
    *size = batch->answers_size + (slot->count ? 1 : 2);
    return answers;
}

static void batch_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    size_t size = 0;
    struct weir_buffer *answers = batch_take_answers(http, slot, &size);
    batch_give(slot);
    if (!answers) {
        weir_connection_close(slot->connection);
        return;
    }
    weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
    weir_http_end(output, "application/json", size);
    while (answers) {
        struct weir_buffer *next = answers->next;
        weir_connection_send(slot->connection, output, answers->data, answers->used);
        weir_buffer_give(&http->worker->buffers, answers);
        answers = next;
    }
}

static void batch_write_refusal(struct weir_slot *slot, struct weir_output *output)
{
    struct batch *batch = batch_of(slot);
    weir_http_write_refused(slot, output, batch->error, batch->reason.text);
    batch_give(slot);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static void batch_refuse(struct weir_slot *slot, uint32_t i, int error,
                         const struct weir_reason *reason)
{
    struct batch *batch = batch_of(slot);
    batch->error = error;
    snprintf(batch->reason.text, sizeof batch->reason.text, "[%u] %.240s", i,
             reason->text[0] ? reason->text : weir_error_text(error));
    slot->write = batch_write_refusal;
}

/* Reads one more check, and asks who its caller is where that is not known. Returns 1, 0 at the
 * end, or the error. */
static int batch_read_one(struct weir_http_call *call, struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    struct weir_reason reason = {{0}};
    int more = weir_check_cursor_next(&batch->cursor, &call->http->check, &batch->reason);
    if (more < 0) { /* whose reason names the check */
        batch->error = more;
        slot->write = batch_write_refusal;
    }
    if (more <= 0)
        return more;
    struct weir_decision *decision = NULL;
    int err = weir_check_only_decision(call, &decision, &reason);
    if (err < 0) {
        batch_refuse(slot, slot->count, err, &reason);
        return err;
    }
    batch->decisions[slot->count++] = decision;
    if (weir_engine_looks(decision)) /* at once: the answer may come before the next piece */
        weir_slot_look(slot, decision);
    return 1;
}

/* Nothing that was read is decided. */
static void batch_cancel(struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    while (slot->count > 0)
        weir_worker_cancel(slot->connection->worker, batch->decisions[--slot->count]);
    slot->waiting = batch->body ? 1 : 0; /* for its own end */
}

/* Reads up to `most` checks. Returns 1 when more may follow, 0 at the end, or the error of one, for
 * which the batch is refused. */
static int batch_read(struct weir_http_call *call, struct weir_slot *slot, uint32_t most)
{
    int more = 1;
    for (uint32_t i = 0; i < most && more > 0; i++)
        more = batch_read_one(call, slot);
    if (more < 0)
        batch_cancel(slot);
    return more;
}

/* --- Deciding --------------------------------------------------------------------------------- */

/* Refuses the batch for the first check that was refused since it was read. Returns whether one
 * was. */
static bool batch_refused(struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct weir_reason *reason = weir_engine_refusal(batch->decisions[i]);
        if (!reason)
            continue;
        batch_refuse(slot, i, batch->decisions[i]->error, reason);
        return true;
    }
    return false;
}

static void batch_queue(struct weir_slot *slot, uint32_t most)
{
    struct batch *batch = batch_of(slot);
    uint32_t end = batch->queued + smaller(most, slot->count - batch->queued);
    while (batch->queued < end)
        weir_slot_wait(slot, batch->decisions[batch->queued++]);
}

/* --- At once ---------------------------------------------------------------------------------- */

/* The callers of all checks of a batch are known: now all checks are queued, or none is. */
static bool batch_looked(struct weir_slot *slot)
{
    slot->again = NULL;
    batch_unhold(slot);
    if (batch_refused(slot))
        return false;
    batch_queue(slot, slot->count);
    return slot->waiting > 0;
}

static void batch_begin(struct weir_http_call *call, struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    if (batch_read(call, slot, WEIR_CHECK_JSON_BATCH_MAX + 1) < 0)
        return;
    if (!slot->waiting) {
        batch_queue(slot, slot->count);
        return;
    }
    slot->again = batch_looked;
    batch->held = slot->count;
    weir_worker_hold(call->worker, batch->held);
}

/* --- In pieces -------------------------------------------------------------------------------- */

static void piece_read(struct weir_slot *slot)
{
    struct weir_connection *connection = slot->connection;
    struct batch *batch = batch_of(slot);
    struct weir_http_call call = {.http = weir_connection_workspace(connection),
                                  .connection = connection,
                                  .worker = connection->worker,
                                  .route = slot->detail};
    uint32_t before = slot->count;
    int more = batch_read(&call, slot, WEIR_PIECE_MAX);
    weir_pieces_worked(connection->worker, WEIR_PIECE_MAX);
    if (more < 0) {
        weir_slot_end(slot);
        return;
    }
    uint32_t taken = slot->count - before;
    weir_pieces_taken(connection, taken);
    weir_worker_hold(connection->worker, taken);
    batch->held += taken;
    if (more > 0) {
        weir_pieces_go_on(connection->worker, connection);
        return;
    }
    weir_pieces_taken(connection, connection->promised);
    batch->phase = BATCH_LOOKED;
    if (slot->waiting > 1) /* for callers, beside its own end */
        weir_slot_pause(slot);
    else
        weir_pieces_go_on(connection->worker, connection);
}

static void piece_queue(struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    uint32_t before = batch->queued;
    batch_queue(slot, WEIR_PIECE_MAX);
    weir_worker_unhold(slot->connection->worker, batch->queued - before);
    batch->held -= batch->queued - before;
    if (batch->queued < slot->count) {
        weir_pieces_go_on(slot->connection->worker, slot->connection);
        return;
    }
    batch->phase = BATCH_DECIDED;
    weir_slot_pause(slot);
}

static void piece_answer(struct weir_slot *slot)
{
    struct weir_connection *connection = slot->connection;
    weir_pieces_worked(connection->worker, WEIR_PIECE_MAX);
    if (batch_answer(weir_connection_workspace(connection), slot, WEIR_PIECE_MAX) &&
        batch_of(slot)->answered < slot->count)
        weir_pieces_go_on(connection->worker, connection);
    else
        weir_slot_end(slot);
}

static void batch_more(struct weir_slot *slot)
{
    struct batch *batch = batch_of(slot);
    switch (batch->phase) {
    case BATCH_READ:
        piece_read(slot);
        return;
    case BATCH_LOOKED:
        if (!slot->count || batch_refused(slot)) {
            weir_slot_end(slot);
            return;
        }
        batch->phase = BATCH_QUEUE;
        piece_queue(slot);
        return;
    case BATCH_QUEUE:
        piece_queue(slot);
        return;
    case BATCH_DECIDED:
        piece_answer(slot);
        return;
    }
}

/* --- The handler ------------------------------------------------------------------------------ */

static void batch_without_memory(struct weir_http_call *call)
{
    weir_http_problem(call, WEIR_HTTP_503, NULL, "out of memory for the batch");
}

/* A slot with an empty batch, and a copy of the body for what is done in pieces; NULL: it is
 * answered. */
static struct weir_slot *batch_open(struct weir_http_call *call, struct weir_check_cursor *cursor,
                                    size_t size)
{
    struct weir_buffers *buffers = &call->worker->buffers;
    struct weir_buffer *list = weir_buffer_take(buffers, sizeof(struct batch)), *body = NULL;
    bool pieces = size > WEIR_BATCH_SMALL;
    if (list && pieces && !(body = weir_buffer_take(buffers, size))) {
        weir_buffer_give(buffers, list);
        list = NULL;
    }
    if (!list) {
        batch_without_memory(call);
        return NULL;
    }
    struct weir_slot *slot = weir_http_slot(call);
    if (!slot) {
        weir_buffer_give(buffers, body);
        weir_buffer_give(buffers, list);
        return NULL;
    }
    if (body) {
        memcpy(body->data, cursor->text, size);
        weir_check_cursor_move(cursor, body->data);
    }
    slot->buffer = list;
    slot->detail = call->route;
    slot->write = batch_write;
    slot->drop = batch_drop;
    struct batch *batch = batch_of(slot);
    batch->cursor = *cursor;
    batch->body = body;
    batch->answers = batch->last_answers = NULL;
    batch->answers_size = 0;
    batch->phase = BATCH_READ;
    batch->queued = batch->answered = batch->held = 0;
    batch->error = 0;
    batch->reason = (struct weir_reason){{0}};
    return slot;
}

void weir_check_batch_handle(struct weir_http_call *call, struct weir_check_cursor *cursor)
{
    if (weir_http1_field(call->request, "idempotency-key").data) {
        weir_http_problem(
            call, WEIR_HTTP_400, NULL,
            "Idempotency-Key: not allowed with a batch; give each check an idempotency_key");
        return;
    }
    struct weir_slot *slot = batch_open(call, cursor, call->request->body.size);
    if (slot && batch_of(slot)->body)
        weir_slot_begin(slot, batch_more);
    else if (slot)
        batch_begin(call, slot);
}
