/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker: stops asking a server that does not answer, and finds out when it does
 * again. A pure state machine; time is an argument.
 *
 *             WEIR_BREAKER_FAILURES calls in a row without an answer,
 *             over WEIR_BREAKER_SPAN_NS at least; or a trip
 *     CLOSED ───────────────────────────────────────────────────▶ OPEN
 *       ▲                                                         │  ▲
 *       │ the probe is answered                    a pause passes │  │ the probe is not
 *       └───────────────────────── HALF_OPEN ◀────────────────────┘  │ answered: a longer pause
 *                                      └─────────────────────────────┘
 *
 * Calls count when they are in a row, not by a rate: in a Cluster of which one master is gone, the
 * others' answers keep the breaker closed, and the decisions of the lost slots fail one by one. An
 * answer is any reply, an error too: a server that says no at once need not be spared.
 * The span keeps one hiccup, in which a whole turn's calls are late together, from opening it.
 *
 * While it is not closed nothing goes out but one probe at a time, after pauses of half to all of
 * 50, 100, 200, 400, 500, 500… ms (the half is drawn, so that many nodes don't ask together). So
 * recovery takes 500 ms and one round trip at most, and the server is met by one call a node.
 * Source: M. Nygard, Release It! (2007), "Circuit Breaker".
 */
#ifndef WEIR_BASE_BREAKER_H
#define WEIR_BASE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_BREAKER_FAILURES 10
#define WEIR_BREAKER_SPAN_NS UINT64_C(50000000)
#define WEIR_BREAKER_PAUSE_MIN_NS UINT64_C(50000000)
#define WEIR_BREAKER_PAUSE_MAX_NS UINT64_C(500000000)

enum weir_breaker_state { WEIR_BREAKER_CLOSED, WEIR_BREAKER_OPEN, WEIR_BREAKER_HALF_OPEN };

struct weir_breaker {
    uint8_t state;        /* enum weir_breaker_state */
    uint32_t failures;    /* closed: in a row */
    uint64_t first_ns;    /* of these */
    uint64_t opened_ns;   /* not closed: since when */
    uint64_t probe_at_ns; /* open: when the pause ends */
    uint64_t pause_ns;    /* the present one, before its half is drawn */
    uint64_t random;
};

void weir_breaker_init(struct weir_breaker *breaker, uint64_t random_seed);

static inline bool weir_breaker_closed(const struct weir_breaker *breaker)
{
    return breaker->state == WEIR_BREAKER_CLOSED;
}

/* A call came to its end: a reply, or none within its time. Counts while the breaker is closed.
 * Returns whether this has opened it. */
bool weir_breaker_call(struct weir_breaker *breaker, uint64_t now_ns, bool answered);

/* Opens it at once: it is known that there is no server. Returns whether it was closed. */
bool weir_breaker_trip(struct weir_breaker *breaker, uint64_t now_ns);

/* A server is reachable again: the next probe is due within WEIR_BREAKER_PAUSE_MIN_NS / 2. */
void weir_breaker_hurry(struct weir_breaker *breaker, uint64_t now_ns);

/* When to call weir_breaker_probe; UINT64_MAX: not before something else happens. */
uint64_t weir_breaker_due_ns(const struct weir_breaker *breaker);

/* Whether the probe is to be sent now: then it is half open. */
bool weir_breaker_probe(struct weir_breaker *breaker, uint64_t now_ns);

/* What became of the probe. Nothing where it is not half open. */
void weir_breaker_probed(struct weir_breaker *breaker, uint64_t now_ns, bool answered);

#endif
