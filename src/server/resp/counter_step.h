/* SPDX-License-Identifier: Apache-2.0 */
/* What one command does to one counter, as Redis 7 does it; no arguments, no replies. See
 * counters.h.
 *
 * Differences from Redis, all because a counter is a 64-bit integer with a life: values are
 * integers, and a counter ends in 2116 at the latest.
 *
 * Source: t_string.c and expire.c of Redis 7.0. Threads: pure. */
#ifndef WEIR_SERVER_RESP_COUNTER_STEP_H
#define WEIR_SERVER_RESP_COUNTER_STEP_H

#include "core/check.h"

enum weir_counter_op {
    WEIR_COUNTER_ADD,
    WEIR_COUNTER_GET,
    WEIR_COUNTER_SET,
    WEIR_COUNTER_EXPIRE,
    WEIR_COUNTER_TTL,
    WEIR_COUNTER_PERSIST,
    WEIR_COUNTER_DELETE,
    WEIR_COUNTER_EXISTS,
    WEIR_COUNTER_REFUSED, /* its arguments were wrong: `error` is the reply */
};

enum weir_counter_flag {
    WEIR_COUNTER_NX = 1,
    WEIR_COUNTER_XX = 2,
    WEIR_COUNTER_GT = 4,
    WEIR_COUNTER_LT = 8,
    WEIR_COUNTER_RETURN = 16,    /* SET: the old value; GET: it goes (GETDEL) */
    WEIR_COUNTER_KEEP = 32,      /* SET: the life stays as it is */
    WEIR_COUNTER_LIVES = 64,     /* SET: `time` is given */
    WEIR_COUNTER_ABSOLUTE = 128, /* `time` is since 1970, else from now */
    WEIR_COUNTER_SECONDS = 256,  /* `time`, or the reply of TTL, in seconds; else ms */
    WEIR_COUNTER_TELLS = 512,    /* SET: the reply is 1 or 0 (SETNX) */
    WEIR_COUNTER_JOINS = 1024,   /* the reply is added to that of the next step (DEL a b) */
};

enum weir_counter_reply {
    WEIR_COUNTER_INTEGER,
    WEIR_COUNTER_STRING, /* the number as a string */
    WEIR_COUNTER_NULL,
    WEIR_COUNTER_OK,
    WEIR_COUNTER_ERROR,
};

struct weir_counter_step {
    uint8_t op, state; /* which of the edit's states */
    uint8_t bucket; /* the one of the key's bucket, for steps on keys of any kind; else `state` */
    uint16_t flags;
    int64_t value, time;
    const char *bad_time; /* the error for a time out of range; static */
    /* out */
    uint8_t reply;
    int64_t number;
    const char *error; /* static; in, for WEIR_COUNTER_REFUSED */
};

/* Whether a step is on keys of any kind, buckets too: DEL, EXISTS, TTL. */
static inline bool weir_counter_step_any(enum weir_counter_op op)
{
    return op == WEIR_COUNTER_DELETE || op == WEIR_COUNTER_EXISTS || op == WEIR_COUNTER_TTL;
}

/* Does a step on the states of its edit. */
void weir_counter_step_run(struct weir_counter_step *step, struct weir_edit_state *states,
                           uint64_t now_ns);

/* The end of a counter whose life is `time`, in ms since 1970, by the flags of a step. False: it is
 * out of range. */
bool weir_counter_ends(const struct weir_counter_step *step, uint64_t now_ns, int64_t *ends_ms);

/* What PTTL answers of a counter: ms, -1 without an end, -2 for none. */
int64_t weir_counter_pttl(const struct weir_edit_state *state, uint64_t now_ns);

/* --- For scripts: the same on one state, without replies -------------------------------------- */

static inline bool weir_counter_exists(const struct weir_edit_state *state)
{
    return state->cell.a != 0;
}

/* Writes a counter that ends at `ends_ms`, or at once where that is not later than now. */
void weir_counter_put(struct weir_edit_state *state, int64_t value, int64_t ends_ms,
                      uint64_t now_ns);
/* False: it would overflow, and nothing was added. A new counter has no end. */
bool weir_counter_add(struct weir_edit_state *state, int64_t by, uint64_t now_ns);
/* Gives an existing counter an end. */
void weir_counter_expire(struct weir_edit_state *state, int64_t ends_ms, uint64_t now_ns);
/* Takes a counter's end from it; whether it had one. */
bool weir_counter_persist(struct weir_edit_state *state, uint64_t now_ns);

#endif
