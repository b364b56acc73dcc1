/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of ladders in memory, for a node whose standing is its own: a strike moves its ladder at
 * once, whatever the disk does. The history gets each change afterwards
 * (feature/standing/server/keeper.h), and gives them back when weir starts.
 *
 *   read, swap ─▶ calls ─▶ loop: table ─▶ done
 *                                  └─▶ queue of the history: the ladder as it is now
 *
 * The table is the truth. Where the queue of the history is full, the change is made still,
 * and `err` says that it is not kept; the next change of the same ladder writes all of it.
 *
 * Memory: 64 bytes for each ladder that is not forgiven, in a hash table that is half full at most
 * and doubles (open addressing, linear probing). Ladders of one value have one hash, so they are in
 * one run of slots.
 *
 * Threads: the loop's.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_LADDER_MEMORY_H
#define WEIR_FEATURE_PENALTIES_SERVER_LADDER_MEMORY_H

#include <uv.h>

#include "feature/penalties/server/ladder_store.h"

/* Names of penalties that ladders may have, those of rules from long ago included. */
#define WEIR_LADDER_NAMES_MAX 1024

struct weir_ladder_slot;

struct weir_ladder_memory {
    struct weir_ladder_store base;
    struct weir_keeper *keeper;
    uv_async_t called; /* its loop closes it */
    struct weir_ladder_call *calls, **calls_end;
    uint64_t secret[2]; /* of the hashes */
    struct weir_ladder_slot *slots;
    uint64_t mask, count, swept;
    char (*names)[WEIR_KEEPER_PENALTY_MAX + 1];
    unsigned names_count;
};

/* An empty one. Errors: WEIR_ERR_MEMORY. */
int weir_ladder_memory_init(struct weir_ladder_memory *memory, const uint64_t secret[2])
    __attribute__((warn_unused_result));
void weir_ladder_memory_free(struct weir_ladder_memory *memory);

/* Takes calls from now on. `keeper` outlives it. Errors: WEIR_ERR_IO. */
int weir_ladder_memory_join(struct weir_ladder_memory *memory, struct weir_keeper *keeper,
                            uv_loop_t *loop) __attribute__((warn_unused_result));

/* Takes a ladder over from the history, unless the value has it already. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_FULL (names). */
int weir_ladder_memory_add(struct weir_ladder_memory *memory,
                           const struct weir_history_ladder *ladder)
    __attribute__((warn_unused_result));

/* Forgets all ladders of a value. False: it has none. */
bool weir_ladder_memory_clear(struct weir_ladder_memory *memory, struct weir_bytes kind,
                              struct weir_bytes value);

/* Fills the ladders of a value. */
void weir_ladder_memory_find(const struct weir_ladder_memory *memory, struct weir_bytes kind,
                             struct weir_bytes value, struct weir_keeper_ladders *found);

/* Removes ladders that are forgiven whole, looking at some of them; once a second. */
void weir_ladder_memory_sweep(struct weir_ladder_memory *memory, uint64_t now_ns);

/* Whether calls wait for the loop. */
bool weir_ladder_memory_busy(const struct weir_ladder_memory *memory);

#endif
