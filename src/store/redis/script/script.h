/* SPDX-License-Identifier: Apache-2.0 */
/* From checks to script calls, and from replies to outcomes: no sockets, no clock.
 *
 * A script call decides up to WEIR_CHECKS_MAX checks whose keys share a slot, atomically: all is
 * read and tested before anything is written, and only a script's first write can fail, so an error
 * of any kind charges nothing. There is one script per algorithm for the common single check, one
 * for any mixture, and one for WEIR_OP_RELEASE, RESET and LOOK; the build puts them together from
 * the same files (lua/start.lua, one file per algorithm, lua/decide.lua; meson.build says of
 * which).
 *
 * Numbers. Scripts count in whole microseconds of the server's own clock (TIME), buckets in units
 * of 1/denom ns beside them; the few products above 2^53 are taken in digits (lua/number.lua).
 * Replies carry the state after the decision and that time, so that outcomes can be reported later
 * by the core, or the figures of which reports are made here. Decisions and reports equal the
 * core's for times that are whole microseconds from 2^50 us (September 2005) to 2^62 ns (2116),
 * within what redis_script_accepts.
 *
 * Keys: see key.h. Every key has an expiry: when its state equals a fresh one, rounded up to
 * a millisecond. A limit that has changed keeps what was used, as weir_limit_converts has it.
 *
 * Reservations live for 60 s, as does what a roll-back leaves behind; a call that comes later than
 * that after its roll-back would not be refused.
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_SCRIPT_H
#define WEIR_STORE_REDIS_SCRIPT_SCRIPT_H

#include "core/check.h"
#include "store/redis/client/client.h"

enum redis_action {
    REDIS_DECIDE,    /* decision->op says which: decide, peek, debit, refund */
    REDIS_RESERVE,   /* decide, and remember under `id` what was charged, for REDIS_ROLL_BACK; an id
                        that was used before is refused */
    REDIS_ROLL_BACK, /* give back what reservation `id` charged, once; a reservation of that id that
                        comes later is refused. The same checks, in the same order */
    REDIS_PEEK,      /* whatever decision->op: outcomes, nothing charged */
};

/* Some checks of a decision, all of one slot. */
struct redis_batch {
    const struct weir_decision *decision;
    const uint16_t *checks; /* indexes, `count` of them; those with a state only */
    uint16_t count;
    uint8_t action; /* enum redis_action */
    uint64_t id;    /* of the reservation */
    const char *prefix;
    uint64_t now_ns;      /* about the server's time: within a calendar's period of it */
    uint64_t test_now_us; /* tests only; 0: the server's TIME */
};

/* The most bytes that a call of `count` checks takes, for keys of the texts given. */
size_t redis_script_size(const struct redis_batch *batch);

/* Writes the EVALSHA at `out` (redis_script_size bytes), sets *script and *slot (NULL: it is no
 * Cluster, where the slot is worth knowing). Returns its size. */
size_t redis_script_write(const struct redis_batch *batch, char *out,
                          const struct redis_script **script, uint16_t *slot);

/* Fills the outcomes of the batch's checks from a reply, *now_ns from the server's time in it, and
 * *repeated when the idempotency record was there. Returns WEIR_ALLOWED or WEIR_DENIED (these
 * checks together, as the decision's policy says); of REDIS_ROLL_BACK always WEIR_ALLOWED, and
 * nothing is filled. After an error, outcomes mean nothing. Errors: WEIR_ERR_STORE (an error reply,
 * with its text in `reason`, or a reservation that was refused), WEIR_ERR_SYNTAX (no reply of
 * ours). */
int redis_script_read(const struct redis_batch *batch, struct weir_decision *into,
                      const struct weir_resp_node *nodes, uint32_t count, uint64_t *now_ns,
                      bool *repeated, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether a limit can live in Redis: its window (S > 1: its segment) is whole microseconds, those
 * of a quota's calendar too, and of a leaky_queue all that may wait and one more take at most 2^62
 * ns. All else that weir_limit_init takes can. Errors: WEIR_ERR_RANGE, with the field and the bound
 * in `reason` (may be NULL). */
int redis_script_accepts(const struct weir_limit *limit, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* All scripts, for redis_client_options. */
extern const struct redis_script *const redis_scripts[];
extern const unsigned redis_script_count;

#endif
