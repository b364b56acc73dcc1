/* SPDX-License-Identifier: Apache-2.0 */
/* Terms that a stricter one hides, by the time at which that ends: a heap, the earliest on top.
 *
 * Memory: some 200 bytes a term, WEIR_DUE_TERMS_MAX terms at most. Threads: one owner.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_DUE_H
#define WEIR_FEATURE_PENALTIES_SERVER_DUE_H

#include "feature/penalties/server/queue.h"

/* As many as changes of standing may wait for the history. */
#define WEIR_DUE_TERMS_MAX WEIR_KEEPER_JOBS_MAX

/* All zero: empty. */
struct weir_due_terms {
    struct weir_due_term *terms;
    uint32_t count, room;
};

/* False: there are too many, or no memory. */
bool weir_due_terms_add(struct weir_due_terms *due, const struct weir_queued_strike *strike,
                        uint64_t at_ns) __attribute__((warn_unused_result));
/* Takes one whose time has come. False: there is none. */
bool weir_due_terms_take(struct weir_due_terms *due, uint64_t now_ns,
                         struct weir_queued_strike *strike);
void weir_due_terms_free(struct weir_due_terms *due);

#endif
