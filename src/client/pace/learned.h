/* SPDX-License-Identifier: Apache-2.0 */
/* A rate that is learned from refusals (429, 503), for servers that say nothing.
 *
 * Source: additive increase and multiplicative decrease (Chiu, Jain 1989), with the increase of
 * CUBIC (RFC 9438), counted in requests instead of time. A refusal multiplies the rate by 0.93, or
 * by 0.6 where the last decrease was less than WEIR_LEARNED_SETTLED requests ago. The n-th request
 * since then goes at
 *
 *     ceiling * (1 + 0.07 * (n / K - 1)^3),  K = WEIR_LEARNED_CYCLE, or, where the ceiling is a
 *                                            measurement, WEIR_LEARNED_GUESS
 *
 * so the rate comes back to the ceiling, where it was refused, after K requests, stays near it, and
 * then grows faster. That is a refusal in about K requests near the limit, below 1 %, at a mean
 * rate of 98 % of it.
 *
 * Before the first refusal there is no rate. It begins with what was admitted so far, which a burst
 * makes too high. So what was admitted from one refusal to the next, pauses included, divided by
 * that time, takes its place where it is far lower; and after a storm (WEIR_LEARNED_STORM refusals
 * in a row, such as at the end of a long window) what was admitted from one recovery to the next.
 * The first measurements contain long waits, so the rate grows quickly after them, and slowly after
 * later ones.
 *
 * A window that was measured (window.h) says the rate: weir_learned_keep. A measurement asks for a
 * rate that is a little higher than the one that was refused: weir_learned_measure.
 *
 * Of refusals in a row only the first lowers the rate: the others say that a window has not ended.
 * Refusals of requests that were sent before the last decrease say nothing new. The rate grows only
 * while it is in use. It is forgotten an hour after the last decrease, or after the time for which
 * it was kept.
 *
 * Memory: 120 bytes of plain data. Threads: one owner at a time. Time is an argument.
 */
#ifndef WEIR_CLIENT_LEARNED_H
#define WEIR_CLIENT_LEARNED_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_LEARNED_CYCLE 200
#define WEIR_LEARNED_GUESS 40
/* A slow rate grows by time: as if so many seconds were a cycle. */
#define WEIR_LEARNED_CYCLE_S 120.0
#define WEIR_LEARNED_GUESS_S 30.0
#define WEIR_LEARNED_SETTLED 20
#define WEIR_LEARNED_STORM 3
#define WEIR_LEARNED_LEAST (1.0 / 3600) /* requests a second */
#define WEIR_LEARNED_MOST 1e6
#define WEIR_LEARNED_FORGET_NS (UINT64_C(3600) * 1000000000)

struct weir_learned {
    double rate, ceiling;  /* requests a second; 0: none */
    double decrease;       /* what the last decrease took: 0.07 or 0.4 */
    uint64_t requests;     /* since the last decrease, while the rate was in use */
    uint64_t decreased_ns; /* 0: never */
    uint64_t next_ns;
    uint64_t began_ns; /* the last recovery; 0: no request yet */
    uint64_t admitted; /* since then */
    uint64_t refused_ns,
        admitted_since;    /* the last refusal of another storm, or the first request */
    uint32_t storm;        /* refusals in a row */
    uint32_t guess;        /* the ceiling is a measurement that may be far too low */
    uint32_t measurements; /* that took the place of a rate; counted up to the last early one */
    uint32_t counted;      /* a refusal of this storm has lowered the rate */
    uint32_t paced;        /* the last refusal that counted was of the rate itself */
    double refused;        /* that rate */
    uint64_t kept_ns;      /* until then the rate does not grow; 0: it may */
};

bool weir_learned_valid(const struct weir_learned *learned, uint64_t now_ns);

/* From when on a request may be sent: at most now_ns means now. */
uint64_t weir_learned_when(struct weir_learned *learned, uint64_t now_ns);
void weir_learned_send(struct weir_learned *learned, uint64_t now_ns);

/* A request that was sent at sent_ns was admitted, or refused. `counts`: the refusal says something
 * about the rate (no policy of the server explains it). */
void weir_learned_admitted(struct weir_learned *learned, uint64_t sent_ns, uint64_t now_ns);
void weir_learned_refused(struct weir_learned *learned, uint64_t sent_ns, uint64_t now_ns,
                          bool counts);

/* Keeps a rate a little below `rate`, which a window allows, until then or a refusal. */
void weir_learned_keep(struct weir_learned *learned, double rate, uint64_t until_ns,
                       uint64_t now_ns);

/* Keeps a rate a little above the one that was refused last, until then or the next refusal. */
void weir_learned_measure(struct weir_learned *learned, uint64_t until_ns, uint64_t now_ns);

#endif
