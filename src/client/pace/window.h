/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed window that a server does not state, measured from its refusals.
 *
 * A server that counts to R in a window of W and says nothing refuses everything from the R-th
 * request to the end of the window. So refusals come in storms, and each storm ends where a window
 * begins: between the last request that was refused (at L) and the first that was admitted (at E).
 * Where two storms in a row are one window apart,
 *
 *     R = what was admitted from one end of a storm to the next storm
 *     W = from L2 - E1 to E2 - L1
 *
 * A storm that ends a measurement has two refusals, the second of a request that was sent when the
 * first had been answered: a bucket or a sliding log admits again by then. A measurement may begin
 * after a single refusal, which another limit may have caused in the middle of a window. R and W
 * are then too small, until a later storm contradicts them. Whether two storms are one window apart
 * shows in two ways:
 *
 *   - After a refusal the caller is asked to keep a rate that is a little too high. So the next
 *     window is used up, too.
 *   - What was admitted between two storms is the same number as once before, and was never less.
 *
 * W is the one usual length between the two bounds (10 s, 1 min), else their middle.
 *
 * Every later storm is a whole number of windows after the first one, and narrows the bounds. One
 * that contradicts them or narrows little, or the fourth refusal although the pace was kept, ends
 * the knowledge: others use the limit, or it has changed. After WEIR_WINDOW_MEASUREMENTS requests
 * for a higher rate there is none for an hour.
 *
 * Times are those of sending, so that a constant latency cancels out. Memory: 144 bytes of plain
 * data. Threads: one owner at a time. Time is an argument, in nanoseconds.
 */
#ifndef WEIR_CLIENT_WINDOW_H
#define WEIR_CLIENT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_WINDOW_MEASUREMENTS 8
/* A measurement takes four times what came before it, within these bounds. */
#define WEIR_WINDOW_MEASURED_LEAST_NS (UINT64_C(20) * 1000000000)
#define WEIR_WINDOW_MEASURED_MOST_NS (UINT64_C(600) * 1000000000)
#define WEIR_WINDOW_FORGET_NS (UINT64_C(3600) * 1000000000)

struct weir_window {
    uint64_t limit;            /* R; 0: not known */
    uint64_t lo_ns, hi_ns;     /* bounds of W */
    uint64_t base_lo_ns;       /* the end of the storm that others are counted from */
    uint64_t base_hi_ns;       /* likewise; 0: none */
    uint64_t begin_lo_ns;      /* the end of the last storm: L */
    uint64_t begin_hi_ns;      /* and E; 0: none */
    uint64_t admitted;         /* since then */
    uint64_t refused_first_ns; /* of the storm that has not ended */
    uint64_t refused_last_ns;
    uint64_t answered_ns; /* its first refusal */
    uint64_t least;       /* admitted between two storms; 0: not known */
    uint64_t least_lo_ns; /* and the bounds of W by them */
    uint64_t least_hi_ns;
    uint64_t measuring_ns; /* until then the rate is too high, since the last storm; 0: it is not */
    uint64_t measured_ns;  /* when a measurement began last */
    uint32_t refusals;     /* of the storm; 0: there is none */
    uint32_t measurements;
    uint32_t strikes; /* refusals since it is known */
};

enum weir_window_verdict {
    WEIR_WINDOW_NOTHING,
    WEIR_WINDOW_MEASURE, /* keep a rate a little above the refused one until measuring_ns */
    WEIR_WINDOW_KNOWN,   /* keep weir_window_rate */
};

/* Whether fields read from a file can be used at `now_ns`. */
bool weir_window_valid(const struct weir_window *window, uint64_t now_ns);

/* A request that was sent at sent_ns was refused, and nothing says why. */
void weir_window_refused(struct weir_window *window, uint64_t sent_ns, uint64_t now_ns);

/* One was admitted. `paced`: a rate was kept when the storm began. */
enum weir_window_verdict weir_window_admitted(struct weir_window *window, uint64_t sent_ns,
                                              uint64_t now_ns, bool paced);

/* The rate of a window that is known, in requests a second. */
double weir_window_rate(const struct weir_window *window);

/* For how long it is kept before it is tried again. */
uint64_t weir_window_keep_ns(const struct weir_window *window);

#endif
