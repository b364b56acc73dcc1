/* SPDX-License-Identifier: Apache-2.0 */
/* Golden traces: a script of steps in virtual time, and beside each step what it led to. A world
 * plays the steps, writes the same text anew, and the test compares the two; so a trace is read as
 * it runs. What decides (the engine over a table, the engine over a store that is late, Redis) is
 * the test's: traces.h has the traces that all must play alike.
 *
 *   limit api gcra 6/60s burst 2
 *   0s ask api*2 -> allowed; api 0/2 reset 20s
 *   0s ask api -> denied; api 0/2 retry 10s reset 20s
 *
 *   limit NAME ALGORITHM N/Ws [burst B] [segments S] [strict]
 *   TIME VERB LIMIT[*COST]...[ of KEY]
 *
 * TIME counts from WORLD_START. `ask` decides, `peek` charges nothing, `debit` charges whatever is
 * left, `refund` gives back what was charged at the time of the last `ask`. Other verbs are the
 * test's (`other`). A result has the verdict, and of each limit remaining/limit, and what is not
 * zero of: when to try again, when it is fresh, how long the request is held.
 */
#ifndef TESTS_ENGINE_WORLD_H
#define TESTS_ENGINE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/check.h"

#define WORLD_START (UINT64_C(1700000000) * 1000000000)
#define WORLD_LIMITS 8
#define WORLD_TEXT 8192

struct world {
    void *context; /* the test's */
    /* Decides the checks of `decision`, whose op is set, and fills verdict and outcomes. NULL: its
     * answer comes later, and the test writes it (world_write). */
    struct weir_decision *(*decide)(struct world *world, const struct weir_decision *asked);
    /* Makes a limit known to what decides; may be NULL. */
    void (*prepare)(struct world *world, struct weir_limit *limit);
    /* Another verb: writes what it leads to. NULL: there is none. */
    void (*other)(struct world *world, const char *verb);

    uint64_t now_ns, asked_ns;
    struct weir_limit limits[WORLD_LIMITS];
    char names[WORLD_LIMITS][16];
    unsigned limit_count;
    char text[WORLD_TEXT];
    size_t size;
};

/* Plays a script; fails where the text that it writes is another one, and prints both. */
void world_play(struct world *world, const char *script);

/* Adds to the result of the step. */
void world_put(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a decision's verdict, and each of its limits. */
void world_write(struct world *world, const struct weir_decision *decision);

#endif
