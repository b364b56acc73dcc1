/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of strikes: how processes that decide with libweir hand strikes to the `weir serve` that
 * keeps standing. A file of fixed size beside the state file.
 *
 *   | header: magic, version, beat, posted, lost | a word a slot | a strike a slot |
 *
 *   writer: word FREE ─(compare and swap)─▶ WRITING ─▶ copies the strike ─(the same)─▶ READY
 *   keeper: READY ─▶ copies it, sets FREE, checks the copy; WRITING for STUCK_NS ─▶ FREE, lost
 *
 * The words are in no order, so a writer that is killed or stopped holds up one slot, and nothing
 * in the file is an index. The keeper writes the time into `beat`; writers put nothing where it is
 * old. Strikes that move nothing use one half of the slots, so that a flood of them leaves room for
 * moves. What finds no room is counted, and put returns false. A strike that the keeper has no
 * room for stays in its slot, and comes again with the next look.
 *
 * Trust: who may write the state may pardon or deny anyone, and may write here as well. But no byte
 * of the file can harm the keeper: it only reads and writes with system calls at offsets of its
 * own, so a file that is cut short is an error and no signal; it looks at WEIR_STRIKE_SLOTS words
 * at most each time, and checks a copy that nobody else can change. A writer maps the file, and
 * looks at its size before it touches it.
 *
 * With a move comes the hash of its count of strikes in the state: the keeper ends the count once
 * the move is in force.
 *
 * Memory: 1.1 MiB, as a file. Threads: a handle has one owner at a time; any number of writers, and
 * one keeper (a lock on the file, which the kernel drops with the process). Times are those of
 * CLOCK_BOOTTIME, unless they say otherwise.
 */
#ifndef WEIR_FEATURE_STANDING_STRIKE_RING_H
#define WEIR_FEATURE_STANDING_STRIKE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/limit.h>

#include "core/text/address.h"

#define WEIR_STRIKE_SLOTS 1024
#define WEIR_STRIKE_TEXT_MAX 1024 /* the longest value that a standing may be set for */

/* From then on a writer takes the keeper for gone. It beats once a second or more. */
#define WEIR_STRIKE_BEAT_OLD_NS UINT64_C(10000000000)
/* A writer that has been writing for this long is dead or stopped. */
#define WEIR_STRIKE_STUCK_NS UINT64_C(5000000000)

struct weir_ring_strike {
    uint64_t penalty;                /* which one, and all that it says: weir_penalty_print */
    uint64_t now_ns;                 /* of weir's timeline */
    uint64_t id[2];                  /* of an exact value, as the map of standing has it */
    uint64_t count[2];               /* the hash of the state that counts its strikes */
    struct weir_cidr network;        /* of a kind of addresses */
    uint8_t moves;                   /* the ladder */
    uint16_t size;                   /* of the text */
    char text[WEIR_STRIKE_TEXT_MAX]; /* as it is shown; of a secret kind "sha256:…" */
};

struct weir_strike_ring;

/* The keeper's: makes the file beside a state file, with the same owner, group and mode, or takes
 * the one that is there. A damaged one is replaced. Errors: WEIR_ERR_BUSY (it has a keeper),
 * WEIR_ERR_MEMORY, WEIR_ERR_IO; *reason names the file. */
int weir_strike_ring_keep(struct weir_strike_ring **ring, const char *state_file,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Writes that there is a keeper. Errors: WEIR_ERR_IO (the file was cut short or removed: close it
 * and keep it anew). */
int weir_strike_ring_beat(struct weir_strike_ring *ring, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* Takes all strikes that are ready: calls `take` with a copy of each, which is good for the call;
 * false: there is no room for it now. `again`: it had none at the last look either. A text has no
 * more than `size` bytes, and a network is one; nothing else is certain. Without a new strike it
 * costs one system call. Errors: as weir_strike_ring_beat. */
typedef bool (*weir_strike_ring_take)(void *context, const struct weir_ring_strike *strike,
                                      bool again);
int weir_strike_ring_poll(struct weir_strike_ring *ring, uint64_t now_ns,
                          weir_strike_ring_take take, void *context)
    __attribute__((warn_unused_result));

/* How many were lost, and how many moves writers had to put off for want of room, as far as keeper
 * and writers know. */
uint64_t weir_strike_ring_lost(const struct weir_strike_ring *ring);
uint64_t weir_strike_ring_deferred(const struct weir_strike_ring *ring);

/* A writer's. Errors: WEIR_ERR_NOT_FOUND (no file), WEIR_ERR_FORMAT (of another version),
 * WEIR_ERR_MEMORY, WEIR_ERR_IO; *reason names the file. */
int weir_strike_ring_open(struct weir_strike_ring **ring, const char *state_file,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether a keeper has beaten lately. */
bool weir_strike_ring_kept(const struct weir_strike_ring *ring, uint64_t now_ns);

/* False: there is no room, no keeper, or no whole file. */
bool weir_strike_ring_put(struct weir_strike_ring *ring, const struct weir_ring_strike *strike,
                          uint64_t now_ns);

/* Of either kind. The keeper's last beat is taken back. NULL is allowed. */
void weir_strike_ring_close(struct weir_strike_ring *ring);

#endif
