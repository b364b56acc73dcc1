/* SPDX-License-Identifier: Apache-2.0 */
/* Error replies of Redis that say what to do next, and redirections.
 *
 * Source: redis.io/docs/reference/cluster-spec, and server.c, cluster.c, script.c of Redis 6.2 to
 * 7.2. All of these mean that nothing was executed. Redis 6.2 reports a script that
 * fails on a replica as "ERR Error running script (call to f_…): @user_script:1: -READONLY …", from
 * 7.0 on as "READONLY … script: …".
 *
 * Pure functions; nothing is allocated.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_REFUSAL_H
#define WEIR_STORE_REDIS_CLIENT_REFUSAL_H

#include <stdbool.h>
#include <weir/bytes.h>

#include "store/redis/client/url.h"

enum redis_refusal {
    REDIS_REFUSAL_NONE,     /* the caller's business */
    REDIS_REFUSAL_NOSCRIPT, /* the script is to be loaded again */
    REDIS_REFUSAL_MOVED,    /* another server has the slot */
    REDIS_REFUSAL_ASK,      /* this time, ask another server: the slot is moving */
    REDIS_REFUSAL_WAIT,     /* TRYAGAIN, LOADING, BUSY: the right server, a little later */
    REDIS_REFUSAL_DOWN,     /* CLUSTERDOWN: later, perhaps at another server */
    REDIS_REFUSAL_RIGHTS,   /* the user may not run EVALSHA, whatever the key */
    REDIS_REFUSAL_REPLICA,  /* READONLY, MASTERDOWN: no master, or not any more */
};

enum redis_refusal redis_refusal_of(struct weir_bytes error);

/* Whether an error says that the user may not do this: of a command, of a key, or of what a script
 * calls. */
bool redis_lacks_rights(struct weir_bytes error);

/* Reads "MOVED 3999 127.0.0.1:6381" or ASK. An empty host means the server that was asked (`asked`;
 * its own port is not taken). Errors: WEIR_ERR_SYNTAX. */
int redis_redirection_read(struct weir_bytes error, const struct redis_host *asked, uint16_t *slot,
                           struct redis_host *host) __attribute__((warn_unused_result));

/* Copies a host that a server has named: "", "?" and none mean the server that was asked. Errors:
 * WEIR_ERR_SYNTAX (too long, a NUL or blank in it, a port outside 1..65535). */
int redis_named_host(struct weir_bytes name, uint64_t port, const struct redis_host *asked,
                     struct redis_host *host) __attribute__((warn_unused_result));

/* Copies what a server said, at most size - 1 characters, for people to read: what is not printable
 * becomes a dot. Returns `out`. */
char *redis_quote(char *out, size_t size, struct weir_bytes text);

#endif
