/* SPDX-License-Identifier: Apache-2.0 */
/* How often each penalty has struck and moved: counters that stay with a penalty's name.
 *
 * A reload may give a penalty another number, while a worker still decides by the rules of before.
 * So counters are found by a mark of the name, and a place is given to another name only when
 * neither the newest rules nor those before have the old one: no worker is so far behind.
 *
 * Memory: 4 KiB. Threads: weir_penalty_count and `strikes` any; weir_penalty_counts_name
 * and `moves` one.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_COUNTS_H
#define WEIR_FEATURE_PENALTIES_SERVER_COUNTS_H

#include <stdatomic.h>

#include "feature/penalties/rules/penalty.h"

struct weir_penalty_count {
    _Atomic uint64_t mark; /* of the name; 0: free */
    _Atomic uint64_t strikes;
    uint64_t moves[WEIR_STANDING_LEVELS]; /* by the level of the step */
    uint32_t round;                       /* the last rules that had the name */
};

struct weir_penalty_counts {
    struct weir_penalty_count places[3 * WEIR_PENALTIES_MAX];
    uint32_t round;
};

/* Gives each penalty of the newest rules a place. */
void weir_penalty_counts_name(struct weir_penalty_counts *counts, const struct weir_rules *rules);

/* The place of a penalty; NULL: it has none. */
struct weir_penalty_count *weir_penalty_count(struct weir_penalty_counts *counts,
                                              struct weir_bytes name);

#endif
