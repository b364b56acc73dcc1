/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's sets should hold, what they hold, and what has to be done next: a state machine
 * without I/O and without a clock.
 *
 *   standing ─want─▶ plan ─next─▶ messages of up to 1,000 elements ─▶ helper ─▶ kernel
 *                     ▲                                                 │
 *                     └───────────── done, lost ◀───────────────────────┘
 *
 * - One transaction at a time is in flight. It begins 100 ms after the last one began, or at once
 *   when it is full.
 * - At the start, after an error, and when the kernel's table was lost, everything is sent in one
 *   transaction that makes the table anew. The old table counts until the new one does, so there is
 *   no moment without bans, nor one with all allowed addresses missing.
 * - An element leaves the kernel by itself at its end; the plan forgets it then.
 * - Networks of one length are in one set, so nested networks need not be merged, and each has its
 *   own end.
 *
 * Time is weir's timeline in nanoseconds. An end is cut to whole milliseconds. The kernel counts a
 * term from the moment when it takes the element, so an element stays longer than its ban by what
 * its transaction waits: some milliseconds, and half a second when 60,000 are sent anew.
 *
 * Memory: 64 bytes for each of WEIR_PLAN_MAX networks, and 8 of an index: 5 MB. A ban that finds no
 * room is left to weir itself, and counted. Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_PLAN_H
#define WEIR_FEATURE_KERNEL_PLAN_H

#include "feature/kernel/message.h"

#define WEIR_PLAN_MAX 65536
/* Bans leave room for what is allowed: without it, the kernel would drop packets of a trusted
 * caller within a banned network. */
#define WEIR_PLAN_BANS_MAX (WEIR_PLAN_MAX - 4096)
/* Between the beginnings of two transactions that are not full. */
#define WEIR_PLAN_PACE_NS UINT64_C(100000000)
/* After an error: the first wait, which doubles up to the last. */
#define WEIR_PLAN_RETRY_NS UINT64_C(100000000)
#define WEIR_PLAN_RETRY_MAX_NS UINT64_C(10000000000)

struct weir_plan;

/* `secret` is random: it keeps the places of the index from those who choose addresses. Errors:
 * WEIR_ERR_MEMORY. */
int weir_plan_open(struct weir_plan **plan, const uint64_t secret[2])
    __attribute__((warn_unused_result));
/* NULL is allowed. */
void weir_plan_close(struct weir_plan *plan);

/* A network should be in a set until `until_ns` (0: not at all; WEIR_NEVER: without an end). False:
 * it cannot be: there is no room, it is a ban of fewer bits than WEIR_KERNEL_BITS4_MIN or 6, a mark
 * (weir_kernel_is_mark), or no network. */
bool weir_plan_want(struct weir_plan *plan, enum weir_kernel_set set,
                    const struct weir_cidr *network, uint64_t until_ns);

/* Between the two, all that should be in the sets is named anew: what is not, leaves. */
void weir_plan_begin_all(struct weir_plan *plan);
void weir_plan_end_all(struct weir_plan *plan);

/* Whether the kernel has a network in that set, as far as the plan knows. */
bool weir_plan_has(const struct weir_plan *plan, enum weir_kernel_set set,
                   const struct weir_cidr *network, uint64_t now_ns);

/* Fills the next message (APPLY). False: there is none to send now. After one with
 * WEIR_KERNEL_MORE, call it again at once; after one without it, wait for weir_plan_done. */
bool weir_plan_next(struct weir_plan *plan, uint64_t now_ns, struct weir_kernel_message *message);

/* The transaction in flight has ended: with 0, or with an errno. */
void weir_plan_done(struct weir_plan *plan, uint64_t now_ns, int result);

/* It is not known any more what the kernel holds, and nothing is in flight. */
void weir_plan_lost(struct weir_plan *plan);

struct weir_plan_stats {
    size_t wanted[2], present[2]; /* networks of each set; present: in the kernel */
    uint64_t refused;             /* networks without room */
    uint64_t rebuilds, batches, failures;
    bool agrees; /* the kernel holds what it should, except what is in flight */
};
void weir_plan_stats(const struct weir_plan *plan, struct weir_plan_stats *stats);

#endif
