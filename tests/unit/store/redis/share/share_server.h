/* SPDX-License-Identifier: Apache-2.0 */
/* What lua/share.lua does, in C over the core's states: the server's side of
 * src/store/redis/share/share.h, for one key. Plain data, so that an explorer may copy it.
 *
 * Times are nanoseconds, whole microseconds. Doubles stand where lua/share.lua has them, in the
 * same order, so that the two agree to the unit. */
#ifndef SHARE_SERVER_H
#define SHARE_SERVER_H

#include "store/redis/share/share.h"

/* An explorer, which copies it often, makes it smaller. */
#ifndef SHARE_SERVER_HOLDERS
#define SHARE_SERVER_HOLDERS 24
#define SHARE_SERVER_WORDS 2048 /* a log of 1000 entries */
#endif
#define SHARE_SERVER_KEEP_NS 2000000000ull /* a record after its last portion's end */

struct share_server_portion {
    uint64_t id, amount, at_ns, end_ns;
};

struct share_server_record {
    uint64_t holder, last_id, demand, seen_ns;
    struct share_server_portion portion[SHARE_PORTIONS];
};

struct share_server {
    union {
        struct weir_cell cell;
        uint64_t span[SHARE_SERVER_WORDS];
    };
    uint64_t end_ns; /* the latest end of a portion */
    /* Over its whole life: what shares were charged, and what they gave back. */
    uint64_t charged, returned;
    uint32_t count;
    struct share_server_record record[SHARE_SERVER_HOLDERS];
};

void share_server_init(struct share_server *server);

/* Executes a call. */
void share_server_execute(struct share_server *server, const struct weir_limit *limit,
                          const struct share_call *call, uint64_t now_ns,
                          struct share_reply *reply);

/* The state, for exact decisions beside it. */
bool share_server_decide(struct share_server *server, const struct weir_limit *limit, uint64_t cost,
                         uint64_t now_ns);

#endif
