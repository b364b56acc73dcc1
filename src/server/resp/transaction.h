/* SPDX-License-Identifier: Apache-2.0 */
/* MULTI, EXEC, DISCARD, WATCH. See resp.h.
 *
 * Between MULTI and EXEC commands are checked, as Redis checks them, and kept. EXEC runs them in
 * their order. Neighbours that are commands of counters (counters.h) are one decision, up to
 * WEIR_CHECKS_MAX keys and WEIR_RESP_STEPS_MAX steps: another client sees all of it or nothing.
 * Other commands are a decision each, between which those of other clients may come.
 *
 * Where MULTI itself was refused, nothing runs until EXEC, DISCARD or RESET: a client library sends
 * MULTI, its commands and EXEC in one write, before it reads the answer.
 *
 * Memory: what was queued, in a buffer of the worker's, from the first command to EXEC.
 */
#ifndef WEIR_SERVER_RESP_TRANSACTION_H
#define WEIR_SERVER_RESP_TRANSACTION_H

#include "server/resp/commands.h"
#include "server/resp/resp.h"

/* What one transaction may be; more is refused, and EXEC aborts. EXEC takes a decision for each
 * command, and one more for each 16 keys: at most WEIR_BATCH_MAX. */
#define WEIR_RESP_QUEUE_MAX 500
#define WEIR_RESP_QUEUE_ARGS_MAX 8000
#define WEIR_RESP_QUEUE_BYTES_MAX (256 * 1024)

enum weir_resp_multi {
    WEIR_RESP_MULTI_NONE,
    WEIR_RESP_MULTI_QUEUES,
    WEIR_RESP_MULTI_ABORTED, /* a command was wrong: EXEC runs nothing */
    WEIR_RESP_MULTI_REFUSED, /* MULTI was not allowed */
};

void weir_resp_multi(struct weir_resp_call *call);
void weir_resp_exec(struct weir_resp_call *call);
void weir_resp_discard(struct weir_resp_call *call);
void weir_resp_watch(struct weir_resp_call *call);
void weir_resp_unwatch(struct weir_resp_call *call);

/* Within a transaction: keeps a command that may be called, or answers it. False: it runs at once.
 */
bool weir_resp_transaction_keeps(struct weir_resp_call *call,
                                 const struct weir_resp_command *command);
/* A command (NULL: an unknown one) was answered with an error before it was run or kept. */
void weir_resp_transaction_notes(struct weir_resp_call *call,
                                 const struct weir_resp_command *command);

/* Forgets what is queued. */
void weir_resp_transaction_end(struct weir_resp_workspace *redis,
                               struct weir_resp_session *session);

#endif
