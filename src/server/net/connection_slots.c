/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that are owed; see connection.h */
#include "server/daemon/worker.h"

struct weir_slot *weir_connection_slot(struct weir_connection *connection)
{
    struct weir_slot *slot = weir_worker_slot(connection->worker);
    if (!slot)
        return NULL;
    slot->connection = connection;
    if (connection->last)
        connection->last->next = slot;
    else
        connection->first = slot;
    connection->last = slot;
    slot->weight = 1;
    connection->owed++;
    return slot;
}

void weir_slot_wait(struct weir_slot *slot, struct weir_decision *decision)
{
    struct weir_worker *worker = slot->connection->worker;
    slot->waiting++;
    slot->weight++;
    slot->connection->owed++;
    decision->owner = slot;
    worker->queued++;
    weir_engine_queue(worker->engine, decision);
}

void weir_slot_look(struct weir_slot *slot, struct weir_decision *decision)
{
    slot->waiting++;
    decision->owner = slot;
    weir_engine_look(slot->connection->worker->engine, decision);
}

void weir_slot_weigh(struct weir_slot *slot, size_t bytes)
{
    uint32_t weight = (uint32_t)(bytes / 256);
    slot->weight += weight;
    slot->connection->owed += weight;
}

static void slot_drop(struct weir_worker *worker, struct weir_slot *slot)
{
    if (slot->drop)
        slot->drop(slot);
    worker->run_wanted = true; /* leases may have to end */
    if (slot->decision) {
        weir_engine_cancel(worker->engine, slot->decision);
        worker->taken--;
    }
    if (slot->buffer) {
        struct weir_decision **decisions = (struct weir_decision **)(void *)slot->buffer->data;
        for (uint32_t i = 0; i < slot->count; i++) {
            weir_engine_cancel(worker->engine, decisions[i]);
            worker->taken--;
        }
        weir_buffer_give(&worker->buffers, slot->buffer);
    }
    weir_worker_give_slot(worker, slot);
}

void weir_connection_drop_slots(struct weir_connection *connection)
{
    while (connection->first) {
        struct weir_slot *slot = connection->first;
        connection->first = slot->next;
        slot_drop(connection->worker, slot);
    }
    connection->last = NULL;
}

/* Unlinks a slot; `link` is what points at it. */
static void connection_unlink(struct weir_connection *connection, struct weir_slot **link,
                              struct weir_slot *before)
{
    struct weir_slot *slot = *link;
    *link = slot->next;
    if (connection->last == slot)
        connection->last = before;
    connection->owed -= slot->weight;
}

struct weir_slot *weir_connection_take_ready(struct weir_connection *connection)
{
    struct weir_slot **link = &connection->first, *before = NULL, *slot;
    bool unordered = connection->listener->front->unordered;
    while ((slot = *link) && slot->waiting && unordered) {
        before = slot;
        link = &slot->next;
    }
    if (!slot || slot->waiting)
        return NULL;
    connection_unlink(connection, link, before);
    return slot;
}

void weir_connection_drop_slot(struct weir_connection *connection, struct weir_slot *slot)
{
    struct weir_slot **link = &connection->first, *before = NULL;
    while (*link != slot) {
        before = *link;
        link = &before->next;
    }
    connection_unlink(connection, link, before);
    weir_worker_give_slot(connection->worker, slot);
}
