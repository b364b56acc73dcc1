/* SPDX-License-Identifier: Apache-2.0 */
/* Counters with a life: INCR, GET, SET, EXPIRE and their like. See resp.h.
 *
 * Each command becomes steps (counter_step.h), one for each of its keys. A command by itself is an
 * edit of one step; what MULTI has queued is one edit of many.
 */
#ifndef WEIR_SERVER_RESP_COUNTERS_H
#define WEIR_SERVER_RESP_COUNTERS_H

#include "server/resp/counter_step.h"
#include "server/resp/edit.h"

/* INCR, INCRBY, DECR, DECRBY, GET, GETDEL, SET, SETEX, PSETEX, SETNX, EXPIRE, PEXPIRE, EXPIREAT,
 * PEXPIREAT, PERSIST. */
void weir_resp_counter(struct weir_resp_call *call);

/* Steps of one edit, at most: their replies fit one write. */
#define WEIR_RESP_STEPS_MAX 256

/* An edit that takes commands one after the other. */
struct weir_resp_steps {
    struct weir_resp_build build;
    struct steps_edit *edit; /* NULL: not begun */
};

/* Adds a command of counters, or DEL, UNLINK, EXISTS, TTL or PTTL, which here see counters and
 * windows only; where the edit is full, it is queued and another one begins. True: it was added, or
 * answered. False: it is another command, or has too many keys for one edit, and is to be run; the
 * edit was queued. */
bool weir_resp_steps_add(struct weir_resp_steps *steps, struct weir_resp_call *call);
/* Queues the edit, if one was begun; its replies follow each other. */
void weir_resp_steps_end(struct weir_resp_steps *steps);

#endif
