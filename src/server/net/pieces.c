/* SPDX-License-Identifier: Apache-2.0 */
/* see pieces.h */
#include "server/net/pieces.h"

#include "server/daemon/worker_state.h"

void weir_connection_list_init(struct weir_connection_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

void weir_connection_list_put(struct weir_connection_list *list, struct weir_connection *connection)
{
    if (connection->stalled)
        return;
    connection->stalled = true;
    connection->next_stalled = NULL;
    *list->end = connection;
    list->end = &connection->next_stalled;
}

struct weir_connection *weir_connection_list_take(struct weir_connection_list *list)
{
    struct weir_connection *connection = list->first;
    if (!connection)
        return NULL;
    list->first = connection->next_stalled;
    if (!list->first)
        list->end = &list->first;
    connection->stalled = false;
    return connection;
}

void weir_connection_list_remove(struct weir_connection_list *list,
                                 struct weir_connection *connection)
{
    struct weir_connection **at = &list->first;
    while (*at && *at != connection)
        at = &(*at)->next_stalled;
    if (!*at)
        return;
    *at = connection->next_stalled;
    if (!*at)
        list->end = at;
    connection->stalled = false;
}

void weir_pieces_init(struct weir_pieces *pieces)
{
    weir_connection_list_init(&pieces->lined);
    weir_connection_list_init(&pieces->going);
}

/* With decisions for it, and for one more request beside it where another has begun already. */
static bool pieces_may_begin(const struct weir_worker_state *worker)
{
    const struct weir_pieces *pieces = &worker->pieces;
    uint32_t asked = worker->taken + pieces->promised + WEIR_BATCH_MAX;
    return pieces->begun == 0
               ? asked <= worker->decisions
               : pieces->begun < WEIR_PIECES_BEGUN && asked + WEIR_BATCH_MAX <= worker->decisions;
}

/* Lets the first in the line begin that is not being closed, if it may. */
static void pieces_begin(struct weir_worker_state *worker)
{
    struct weir_pieces *pieces = &worker->pieces;
    struct weir_connection *connection = NULL;
    if (!pieces_may_begin(worker))
        return;
    while (!connection && pieces->lined.first) {
        connection = weir_connection_list_take(&pieces->lined);
        if (!connection->begun)
            connection = NULL;
    }
    if (!connection)
        return;
    pieces->begun++;
    connection->going = true;
    connection->promised = WEIR_BATCH_MAX;
    pieces->promised += WEIR_BATCH_MAX;
    weir_connection_list_put(&pieces->going, connection);
}

bool weir_pieces_step(struct weir_worker_state *worker)
{
    struct weir_pieces *pieces = &worker->pieces;
    if (!pieces->going.first) /* two side by side would need twice the cache */
        pieces_begin(worker);
    struct weir_connection *connection = weir_connection_list_take(&pieces->going);
    if (!connection)
        return false;
    if (connection->begun) /* else it is being closed */
        connection->begun->more(connection->begun);
    return true;
}

void weir_pieces_line_up(struct weir_worker *worker, struct weir_connection *connection)
{
    weir_connection_list_put(&weir_worker_state_of(worker)->pieces.lined, connection);
}

void weir_pieces_go_on(struct weir_worker *worker, struct weir_connection *connection)
{
    weir_connection_list_put(&weir_worker_state_of(worker)->pieces.going, connection);
}

void weir_pieces_taken(struct weir_connection *connection, uint32_t decisions)
{
    connection->promised -= decisions;
    weir_worker_state_of(connection->worker)->pieces.promised -= decisions;
}

void weir_pieces_worked(struct weir_worker *worker, uint32_t decisions)
{
    weir_worker_state_of(worker)->spent += decisions;
}

void weir_pieces_end(struct weir_connection *connection)
{
    struct weir_pieces *pieces = &weir_worker_state_of(connection->worker)->pieces;
    if (connection->going) {
        pieces->begun--;
        pieces->promised -= connection->promised;
    }
    connection->going = false;
    connection->promised = 0;
    connection->begun = NULL;
}

void weir_pieces_leave(struct weir_connection *connection)
{
    struct weir_pieces *pieces = &weir_worker_state_of(connection->worker)->pieces;
    weir_connection_list_remove(&pieces->lined, connection);
    weir_connection_list_remove(&pieces->going, connection);
    weir_pieces_end(connection);
    weir_worker_mark(connection->worker, connection);
}
