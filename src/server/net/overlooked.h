/* SPDX-License-Identifier: Apache-2.0 */
/* What of requests is not taken, so that limits are off, or all are refused, and nobody would know:
 * proxies that are not in `server.trusted_proxies`, whose customers all get 403, and names of
 * attributes that nobody knows (rules/unknown_names.h).
 *
 * The first such request is a line in the log; then there is one a minute at most, with the number
 * of requests since the last one and the last peer. Metrics and /v1/overlooked have the totals, and
 * `weir doctor` asks for them.
 *
 * Threads: any; what is written once a minute is locked.
 */
#ifndef WEIR_SERVER_NET_OVERLOOKED_H
#define WEIR_SERVER_NET_OVERLOOKED_H

#include <pthread.h>
#include <stdint.h>

#include "core/text/address.h"

struct weir_log;

#define WEIR_OVERLOOKED_AGAIN_MS 60000

/* Where requests of clients come in that may be unreadable. Programs that ask (/v1/check, WEIR.*)
 * get the error themselves. */
enum weir_overlooked_front { WEIR_UNREAD_AUTH, WEIR_UNREAD_AUTHZ, WEIR_UNREAD_FRONTS };

/* All zero, with a mutex: weir_overlooked_init. */
struct weir_overlooked {
    _Atomic uint64_t untrusted;                  /* requests of proxies that are not trusted */
    _Atomic uint64_t next_ms;                    /* when the next line may be written */
    _Atomic uint64_t unread[WEIR_UNREAD_FRONTS]; /* requests that could not be read */
    _Atomic uint64_t unread_told, unread_next_ms;
    uint64_t names_told, names_next_ms; /* of unknown names, on the thread that logs them */
    pthread_mutex_t mutex;              /* of the rest */
    uint64_t told;                      /* of `untrusted`, at the last line */
    struct weir_address peer;           /* of the last line; family 0: a Unix socket */
};

void weir_overlooked_init(struct weir_overlooked *overlooked);

/* A proxy asks that is not trusted. `now_ms` is of any clock that all callers share; never 0. */
void weir_overlooked_proxy(struct weir_overlooked *overlooked, struct weir_log *log,
                           const struct weir_address *peer, uint64_t now_ms);

/* A request could not be read, and so was refused: `reason` says why. `now_ms` as above. */
void weir_overlooked_unread(struct weir_overlooked *overlooked, struct weir_log *log,
                            enum weir_overlooked_front front, const char *reason, uint64_t now_ms);

/* "auth", as metrics and the log call it. */
const char *weir_overlooked_front_name(enum weir_overlooked_front front);

/* Logs names of attributes in requests that are neither built in nor declared: once for each that
 * is new, then once a minute what has come since. To be called about once a second, on one thread.
 */
struct weir_rules;
void weir_overlooked_names(struct weir_overlooked *overlooked, struct weir_log *log,
                           const struct weir_rules *rules, uint64_t now_ms);

/* What to write into server.trusted_proxies for a peer: its address, or "unix". */
void weir_overlooked_peer(struct weir_overlooked *overlooked, char text[WEIR_ADDRESS_TEXT_MAX]);

#endif
