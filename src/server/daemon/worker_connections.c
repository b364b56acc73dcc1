/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's connections and slots: its lists of them, and those that are free; see worker.h */
#include <stdlib.h>
#include <string.h>

#include "server/daemon/worker.h"

/* Slots are made in groups of this many. */
#define GROUP 64

struct weir_connection *weir_worker_connection(struct weir_worker *worker,
                                               struct weir_listener *listener)
{
    struct weir_connection *connection = worker->free_connections;
    if (connection)
        worker->free_connections = connection->next;
    else
        connection = malloc(sizeof *connection);
    if (!connection)
        return NULL;
    memset(connection, 0, sizeof *connection);
    connection->worker = worker;
    connection->listener = listener;
    connection->next = worker->all;
    if (worker->all)
        worker->all->previous = connection;
    worker->all = connection;
    atomic_fetch_add_explicit(&listener->pool->open, 1, memory_order_relaxed);
    weir_count(&worker->counters.connections, 1);
    weir_count(&worker->counters.accepted, 1);
    return connection;
}

/* Takes a connection off a list that it may stand in the middle of; rare, so the list is walked. */
static void dirty_remove(struct weir_worker *worker, struct weir_connection *connection)
{
    struct weir_connection **at = &worker->dirty;
    while (*at && *at != connection)
        at = &(*at)->next_dirty;
    if (*at)
        *at = connection->next_dirty;
    if (!*at)
        worker->dirty_end = at;
}

static void stalled_remove(struct weir_worker *worker, struct weir_connection *connection)
{
    struct weir_connection **at = &worker->stalled;
    while (*at && *at != connection)
        at = &(*at)->next_stalled;
    if (*at)
        *at = connection->next_stalled;
    if (!*at)
        worker->stalled_end = at;
}

void weir_worker_forget(struct weir_worker *worker, struct weir_connection *connection)
{
    if (connection->dirty)
        dirty_remove(worker, connection);
    if (connection->stalled)
        stalled_remove(worker, connection);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        worker->all = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    connection->next = worker->free_connections;
    worker->free_connections = connection;
    atomic_fetch_sub_explicit(&connection->listener->pool->open, 1, memory_order_relaxed);
    weir_count(&worker->counters.connections, (uint64_t)-1);
    weir_worker_stop_if_done(worker);
}

struct weir_slot *weir_worker_slot(struct weir_worker *worker)
{
    if (!worker->free_slots) {
        for (int i = 0; i < GROUP; i++) {
            struct weir_slot *slot = malloc(sizeof *slot);
            if (!slot)
                break;
            weir_worker_give_slot(worker, slot);
        }
    }
    struct weir_slot *slot = worker->free_slots;
    if (!slot)
        return NULL;
    worker->free_slots = slot->next;
    memset(slot, 0, sizeof *slot);
    return slot;
}

void weir_worker_give_slot(struct weir_worker *worker, struct weir_slot *slot)
{
    slot->next = worker->free_slots;
    worker->free_slots = slot;
}
