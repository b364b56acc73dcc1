/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes of penalties that this process finds: its engines count them in the state, as `weir
 * serve` does, and what has to move a ladder or to prolong a step goes to that server through the
 * ring beside the state file (feature/standing/strike_ring.h).
 *
 * The server ends the count of the strikes of a move once the move is in force. A move that the
 * ring has no room for, or that no server is there for, gives its last strike back, so that the
 * caller's next strike moves.
 *
 * A strike that moves nothing only prolongs a step, so one a second for each value is enough.
 *
 * Without a server, limits and standing still apply and the state still counts strikes, but no
 * ladder moves: strikes that could not be handed over are counted, and logged (library_leave).
 *
 * Memory: 2 KiB, and the ring's. Threads: internally locked; strikes are rare.
 */
#ifndef WEIR_LIBRARY_STRIKES_H
#define WEIR_LIBRARY_STRIKES_H

#include <pthread.h>

#include "engine/callbacks.h"
#include "engine/engine.h"
#include "feature/standing/strike_ring.h"

#define WEIR_STRIKES_SENT 256

struct weir_library_strikes {
    pthread_mutex_t lock;
    char *state_file;                 /* owned; NULL: private memory */
    struct weir_strike_ring *ring;    /* NULL: there is none, or not now */
    uint64_t tried_ns;                /* when it was last looked for */
    uint64_t sent[WEIR_STRIKES_SENT]; /* penalty and value, and the second of its last strike */
    bool wanted;                      /* under `lock`: the rules have penalties */
    bool fails;                       /* under `lock`: the last one found no server */
    _Atomic uint64_t lost;            /* strikes for which there was no server */
    _Atomic unsigned news;            /* enum weir_strikes_news: what nobody has said yet */
};

enum weir_strikes_news { WEIR_STRIKES_LOST = 1, WEIR_STRIKES_AGAIN = 2 };

/* `state_file` is copied; NULL: private memory. Errors: WEIR_ERR_MEMORY. */
int weir_library_strikes_open(struct weir_library_strikes *strikes, const char *state_file)
    __attribute__((warn_unused_result));
void weir_library_strikes_close(struct weir_library_strikes *strikes);

/* The rules are these from now on: whether they have penalties. */
void weir_library_strikes_set_rules(struct weir_library_strikes *strikes,
                                    const struct weir_rules *rules);

/* Whether the penalties of the rules, if they have any, have a server that keeps them. Errors:
 * WEIR_ERR_UNSUPPORTED (there is none), WEIR_ERR_FORMAT (one of another version), WEIR_ERR_MEMORY,
 * WEIR_ERR_IO; *reason says why. */
int weir_library_strikes_check(struct weir_library_strikes *strikes, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The engines' strike callback; `context` is a struct weir_library_strikes. */
enum weir_strike_answer weir_library_struck(void *context, const struct weir_struck *struck);

#endif
