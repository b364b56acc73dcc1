/* SPDX-License-Identifier: Apache-2.0 */
/* From the history of standing to the steps in memory: all at once when weir starts, or, where the
 * history cannot be read then, page by page once it can be. What has moved meanwhile stays as it
 * is.
 *
 * Threads: the loop's.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_RESTORING_H
#define WEIR_FEATURE_PENALTIES_SERVER_RESTORING_H

#include "feature/penalties/server/known.h"
#include "feature/penalties/server/ladder_memory.h"
#include "feature/penalties/server/queue.h"

struct weir_ladder_restoring {
    struct weir_ladder_memory *memory;
    struct weir_known *known;
    /* A term that is to be looked at then, as a stricter one of the same value ends. */
    void (*due)(void *context, const struct weir_queued_strike *strike, uint64_t at_ns);
    void *context;
    /* Its own, all zero at first. */
    uint64_t now_ns;
    struct weir_queued_strike last; /* the ladder before: of the same value? */
    uint64_t last_until_ns;
    uint64_t lost;       /* for lack of memory */
    bool unread;         /* there is more in the history */
    bool reading;        /* a page */
    uint64_t read_count; /* ladders of the pages before */
    struct weir_keeper *keeper;
};

/* Reads all of the history (NULL: it cannot be read now). Errors: WEIR_ERR_MEMORY, and those of
 * weir_history_ladders, which *reason explains. */
int weir_ladder_restoring_begin(struct weir_ladder_restoring *restoring,
                                struct weir_history *history, uint64_t now_ns,
                                struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads on, where that is possible by now; once a second. */
void weir_ladder_restoring_tick(struct weir_ladder_restoring *restoring, struct weir_keeper *keeper,
                                uint64_t now_ns);

#endif
