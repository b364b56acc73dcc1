/* SPDX-License-Identifier: Apache-2.0 */
/* Pending decisions of the Redis store: their calls, the replies to them, and plans of several
 * calls.
 *
 *   pending_start ──▶ one call, or the calls of a plan ──▶ replies ──▶ `done` of the store
 *
 * The functions call_* also serve the calls of background.h: taking one from the slabs, writing and
 * queueing its command, accounting for its end.
 *
 * Memory and threads: see redis.h.
 */
#ifndef WEIR_STORE_REDIS_PENDING_H
#define WEIR_STORE_REDIS_PENDING_H

#include "store/redis/state.h"

/* --- Calls */

void call_append(struct call_list *list, struct store_call *call);
void call_unlink(struct store_call *call);

/* Takes a call with room for so many bytes. NULL: full. */
struct store_call *call_take(struct store *store, enum call_kind kind, size_t bytes);
void call_give(struct store *store, struct store_call *call);

/* Queues a call, which is in `list` until its end. Errors: as redis_client_send. */
int call_queue(struct store *store, struct store_call *call, struct call_list *list,
               uint64_t give_up_hr) __attribute__((warn_unused_result));

/* The same; after an error the call is given back. */
int call_send(struct store *store, struct store_call *call, struct call_list *list,
              uint64_t give_up_hr) __attribute__((warn_unused_result));

/* Gives a call back whose end nothing waits for any more. Returns whether it was perhaps executed.
 */
bool call_forget(struct store *store, struct store_call *call);

/* Writes the batch's command into a new call. NULL: full. */
struct store_call *call_write(struct store *store, enum call_kind kind,
                              const struct redis_batch *batch);

/* Writes a step of a plan into a new call. NULL: full. */
struct store_call *call_write_step(struct store *store, enum call_kind kind,
                                   const struct pending *pending, struct redis_step step);

enum call_end {
    CALL_ANSWERED,
    CALL_LATE, /* the server was silent */
    CALL_LOST, /* the connection was, or there is none */
};

/* Counts the end of a call for the breakers. */
void call_account(struct store *store, uint16_t cluster_slot, enum call_end end);

/* Counts and reports an error reply to a call of `count` checks. */
void call_refused(struct store *store, const struct weir_check *first, uint16_t count,
                  const struct weir_reason *reason);

/* --- Pending decisions */

/* Sends the calls that decide it. Errors: they could not be sent (the caller refuses or finishes
 * the decision). */
int pending_start(struct store *store, struct pending *pending) __attribute__((warn_unused_result));

/* Calls `done` with the decision, and frees `pending`. */
void pending_finish(struct store *store, struct pending *pending, int error);
void pending_free(struct store *store, struct pending *pending);

/* Forgets its calls, and undoes what they may have done. */
void pending_drop_calls(struct store *store, struct pending *pending);

#endif
