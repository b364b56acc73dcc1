/* SPDX-License-Identifier: Apache-2.0 */
/* Where the steps of ladders are kept: read those of a value, and compare and set one of them.
 *
 * All nodes that share the store share the steps, so a move is decided once: a swap names
 * the state that was read, and the store refuses it when another one is there by now.
 * The entry that comes in force with a step is kept in the same change.
 *
 * ladder_memory.h keeps them in memory, and in the history of standing (SQLite); ladder_shared.h
 * keeps them in Redis.
 *
 * Threads: one loop's; `done` is called on it, later than the call that began, never from inside.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_LADDER_STORE_H
#define WEIR_FEATURE_PENALTIES_SERVER_LADDER_STORE_H

#include "feature/standing/server/service.h"

/* One read or swap. The caller owns it, and leaves it alone until `done`. */
struct weir_ladder_call {
    const struct weir_standing_value *value;
    uint64_t now_ns;
    struct weir_keeper_swap swap;     /* of a swap */
    struct weir_standing_entry entry; /* of a swap that sets one */
    struct weir_bytes by;             /* likewise: "penalty brute-force" */
    void (*done)(struct weir_ladder_call *call);

    /* What came out. */
    int err;
    struct weir_reason reason;
    bool swapped;
    struct weir_keeper_ladders found; /* of a read */

    struct weir_keeper *keeper; /* this and what follows are the store's own */
    struct weir_ladder_call *next;
    bool swaps;
};

struct weir_ladder_store {
    /* Errors, at once: WEIR_ERR_FULL (the store is behind). Else `done` is called, unless the store
     * is stopped first. */
    int (*read)(struct weir_ladder_store *store, struct weir_ladder_call *call);
    int (*swap)(struct weir_ladder_store *store, struct weir_ladder_call *call);
};

#endif
