/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a worker does in pieces, so that a long one does not keep all other connections of
 * the worker waiting: a batch of 1,000 checks takes as long as 1,000 requests.
 *
 *   lined ──may begin──▶ going ──a piece──▶ going … or it waits for decisions ──▶ going … ──▶ ended
 *
 * A turn does one piece after the decisions of all other connections, then again; and it ends after
 * WEIR_TURN_MAX decisions, so that the loop polls and reads what has come meanwhile. At most
 * WEIR_PIECES_BEGUN requests have begun at a time: each may hold WEIR_BATCH_MAX decisions of the
 * pool from its first piece to its last, and the others of the worker need some too. The rest waits
 * in the order in which it came.
 *
 * A connection has one such request at a time (connection->begun), and reads nothing meanwhile.
 *
 * Threads: one owner, the worker.
 */
#ifndef WEIR_SERVER_NET_PIECES_H
#define WEIR_SERVER_NET_PIECES_H

#include <stdbool.h>
#include <stdint.h>

struct weir_connection;
struct weir_worker;
struct weir_worker_state;

struct weir_connection_list {
    struct weir_connection *first, **end; /* linked by next_stalled */
};

void weir_connection_list_init(struct weir_connection_list *list);
/* To its end; nothing, if the connection is on this list or another one already (`stalled`). */
void weir_connection_list_put(struct weir_connection_list *list,
                              struct weir_connection *connection);
/* The first of it; NULL: it is empty. */
struct weir_connection *weir_connection_list_take(struct weir_connection_list *list);
/* From any place in it; rare, so the list is walked. Nothing, if it is not there. */
void weir_connection_list_remove(struct weir_connection_list *list,
                                 struct weir_connection *connection);

struct weir_pieces {
    struct weir_connection_list lined; /* that wait until they may begin */
    struct weir_connection_list going; /* that have another piece to do */
    uint32_t begun;                    /* requests that have begun and not ended */
    uint32_t promised;                 /* decisions that those may yet take */
};

void weir_pieces_init(struct weir_pieces *pieces);

/* Does the next piece. Returns whether there was one. */
bool weir_pieces_step(struct weir_worker_state *worker);

/* --- For connections and front ends ----------------------------------------------------------- */

/* connection->begun is to begin when it may; then its `more` is called for each piece. */
void weir_pieces_line_up(struct weir_worker *worker, struct weir_connection *connection);
/* It has another piece to do. */
void weir_pieces_go_on(struct weir_worker *worker, struct weir_connection *connection);
/* It has taken so many of the decisions that it was promised, or needs no more of them. */
void weir_pieces_taken(struct weir_connection *connection, uint32_t decisions);
/* It has done as much work as so many decisions are. */
void weir_pieces_worked(struct weir_worker *worker, uint32_t decisions);
/* It is given up, and its connection continues. */
void weir_pieces_leave(struct weir_connection *connection);
/* It has ended, or its connection is being closed: connection->begun is NULL afterwards. */
void weir_pieces_end(struct weir_connection *connection);

#endif
