/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the workers of a daemon reach a server that each of them connects to by itself.
 * The process reports once that it is lost, by the first worker, and once that it is reached again,
 * by the last.
 *
 * Threads: the caller's lock.
 */
#ifndef WEIR_SERVER_DAEMON_CONNECTIVITY_H
#define WEIR_SERVER_DAEMON_CONNECTIVITY_H

#include <stdbool.h>

struct weir_connectivity {
    unsigned joined, up, down; /* workers; those that have reported it */
    bool reported_up;          /* that all are up */
};

/* Of one worker: what it reported last; both false: nothing yet. */
struct weir_connectivity_member {
    bool up, down;
};

/* Counts a member among `members`, or no more. */
static inline void weir_connectivity_set(bool *member, unsigned *members, bool now)
{
    if (*member != now)
        *members += now ? 1 : -1U;
    *member = now;
}

/* A worker has lost it. Returns whether it is the first. */
static inline bool weir_connectivity_lost(struct weir_connectivity *reach,
                                          struct weir_connectivity_member *member)
{
    bool first = reach->down == 0;
    weir_connectivity_set(&member->down, &reach->down, true);
    weir_connectivity_set(&member->up, &reach->up, false);
    reach->reported_up = false;
    return first;
}

/* A worker reaches it. Returns whether it is the last. */
static inline bool weir_connectivity_found(struct weir_connectivity *reach,
                                           struct weir_connectivity_member *member)
{
    weir_connectivity_set(&member->down, &reach->down, false);
    weir_connectivity_set(&member->up, &reach->up, true);
    if (reach->reported_up || reach->up < reach->joined)
        return false;
    reach->reported_up = true;
    return true;
}

/* A worker ends. */
static inline void weir_connectivity_leave(struct weir_connectivity *reach,
                                           struct weir_connectivity_member *member)
{
    weir_connectivity_set(&member->down, &reach->down, false);
    weir_connectivity_set(&member->up, &reach->up, false);
    reach->joined--;
    reach->reported_up = true; /* who leaves does not come up again */
}

#endif
