/* SPDX-License-Identifier: Apache-2.0 */
/* What lua/share.lua does, in C over the core's states: the server's side of
 * src/store/redis/share/share.h, for one key. Plain data, so that an explorer may copy it.
 *
 * Times are nanoseconds, whole microseconds. Doubles stand where lua/share.lua has them, in the
 * same order, so that the two agree to the unit. */
#ifndef LEASE_SERVER_H
#define LEASE_SERVER_H

#include "store/redis/share/share.h"

/* An explorer, which copies it often, makes it smaller. */
#ifndef LEASE_SERVER_HOLDERS
#define LEASE_SERVER_HOLDERS 24
#define LEASE_SERVER_WORDS 2048 /* a log of 1000 entries */
#endif
#define LEASE_SERVER_KEEP_NS 2000000000ull /* a record after its last share's end */

struct lease_server_share {
    uint64_t id, amount, at_ns, end_ns;
};

struct lease_server_record {
    uint64_t holder, last_id, demand, seen_ns;
    struct lease_server_share share[LEASE_SHARES];
};

struct lease_server {
    union {
        struct weir_cell cell;
        uint64_t span[LEASE_SERVER_WORDS];
    };
    uint64_t end_ns; /* the latest end of a share */
    /* Over its whole life: what leases were charged, and what they gave back. */
    uint64_t charged, returned;
    uint32_t count;
    struct lease_server_record record[LEASE_SERVER_HOLDERS];
};

void lease_server_init(struct lease_server *server);

/* Executes a call. */
void lease_server_execute(struct lease_server *server, const struct weir_limit *limit,
                          const struct lease_call *call, uint64_t now_ns,
                          struct lease_reply *reply);

/* The state, for exact decisions beside it. */
bool lease_server_decide(struct lease_server *server, const struct weir_limit *limit, uint64_t cost,
                         uint64_t now_ns);

#endif
