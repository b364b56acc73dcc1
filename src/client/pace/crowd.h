/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of one client among many that use the same limit and know nothing of each other, such as
 * on different machines. It applies where the server states limit, window, remaining and reset.
 *
 * Source: reservation ALOHA (Crowther et al., 1973): what got through one frame ago will get
 * through again. A request that was admitted frees its unit a window later, in fixed and sliding
 * windows. So a client that was admitted k times in a window and sends k times in each, evenly, is
 * admitted again, whatever the others do, if all do so. No refusal and no message between clients
 * is needed.
 *
 *   NONE     others use at most three times what this client does: pacer.h paces.
 *   FINDING  more: until the reset, the client finds its part. It sends its second request in the
 *            first eighth of the time that is left (of 30 s at most), at a random instant, and
 *            estimates the number of clients by the answer: used / (1 + the part of the others
 *            that have sent their second one, too). Then it spreads its part of what remains. A
 *            refusal ends this.
 *   HOLDING  it keeps as many slots in a window as it was admitted before, and sends one request a
 *            slot. A refusal takes a slot. Where a part of the limit stays unused, by all answers
 *            of a third of a window, the slots grow by that part: multiplied, or, for a client
 *            with few slots, by its part of the estimated number of clients. Where the use that
 *            is projected to the end of the window passes the limit, they shrink. A number that
 *            is not whole is rounded at random. What is unused may be taken at once by a client
 *            that has few requests left, or few that wait.
 *
 * One whose second answer shows that nobody else has sent meanwhile is alone: what was used, a
 * process before it has used. Slots that were not used for two windows are gone, and so is the
 * crowd where nobody else has sent for a quarter of a window.
 *
 * Figures are in docs/client.md, made by tests/unit/client/test_quota.c.
 *
 * Memory: 104 bytes of plain data that may be in a shared file; weir_crowd_valid says whether it
 * can be used. Threads: one owner at a time. Time is an argument, in nanoseconds.
 */
#ifndef WEIR_CLIENT_CROWD_H
#define WEIR_CLIENT_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_CROWD_SLOTS_MOST 1000000

enum weir_crowd_state { WEIR_CROWD_NONE, WEIR_CROWD_FINDING, WEIR_CROWD_HOLDING };

struct weir_crowd {
    uint32_t state;
    uint32_t slots;                 /* HOLDING; 0 is 1, one more refusal ago */
    uint32_t admitted;              /* FINDING: since it began */
    uint32_t anew;                  /* the slots are gone: the next answer is as the first */
    uint32_t own_now, own_before;   /* sent in the span that began at counted_ns, and before it */
    uint64_t counted_ns, sent_ns;   /* each span is a window long; the last request */
    uint64_t found_ns, adjusted_ns; /* when FINDING ends; when the slots last changed */
    uint64_t next_ns;               /* the pace allows a request from then on */
    uint64_t used;  /* FINDING: by the first answer; NONE: by those that have ended */
    double clients; /* estimated; 0: not yet */
    double probe;   /* when the second request is due, 0 to 1; < 0: it is not */
    double spare;   /* units that stay unused, by the newest answer */
    double least;   /* the least unused part since adjusted_ns; 1: no answer */
};

/* What an answer says. */
struct weir_crowd_view {
    uint64_t limit, window_ns, remaining; /* limit and window_ns are not 0 */
    uint64_t reset_lo_ns, reset_hi_ns;
    uint64_t margin_ns; /* of the network */
    uint64_t now_ns;
    uint64_t unseen; /* the first answer of this policy: requests sent so far; else 0 */
};

/* Whether what a file holds can be used; `most_ns`: no answer names a later time. */
bool weir_crowd_valid(const struct weir_crowd *crowd, uint64_t most_ns);

/* A request is sent. */
void weir_crowd_send(struct weir_crowd *crowd, uint64_t window_ns, uint64_t margin_ns,
                     uint64_t now_ns);

/* Returns whether the crowd has gone with this answer. */
bool weir_crowd_learn(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t *seed);

/* A request was refused, and nothing of the limit remains. Its answer was learned before. */
void weir_crowd_refused(struct weir_crowd *crowd);

/* From when on a request may be sent. `expected`, `waiting`: as in pacer.h. Not NONE. */
uint64_t weir_crowd_when(const struct weir_crowd *crowd, uint64_t expected, uint64_t waiting,
                         uint64_t now_ns);

/* From one request to the next. */
uint64_t weir_crowd_interval(const struct weir_crowd *crowd, uint64_t window_ns,
                             uint64_t margin_ns);

#endif
