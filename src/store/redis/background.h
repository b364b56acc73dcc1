/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the Redis store that no decision waits for.
 *
 *   shares        portions of budgets, taken and given back (share/shares.h)
 *   undoing       roll-backs, and the ends of leases that a decision of unknown end may have taken.
 *                 They work once, and so may be sent twice: they are tried for a second
 *   the probe     one PING to a server for which the breaker is open
 *   server info   what a node has to know before it decides anything: the secret that tokens are
 *                 signed with (secret.h), and the server's time
 *       connected, no secret known   SET NX, GET and TIME, in one write: the answers come before
 * that of any decision that is asked then later, every two seconds     GET and TIME; where the
 * secret is gone, SET NX and GET
 *
 * Each kind has a time limit, after which the call's end is unknown. Threads: see redis.h.
 */
#ifndef WEIR_STORE_REDIS_BACKGROUND_H
#define WEIR_STORE_REDIS_BACKGROUND_H

#include "store/redis/state.h"

/* Sends the calls that the shares have ready. */
void background_send_shares(struct store *store);

/* The reply to such a call, or its error. Returns whether the call is kept, to be sent again. */
bool background_answered(struct store *store, struct store_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count);

/* Rolls a step of a plan back. */
void background_roll_back(struct store *store, struct pending *pending, struct redis_step step);

/* Ends the leases that a decision of unknown end may have taken. */
void background_release(struct store *store, const struct weir_decision *decision);

/* Sends the probe of one of the breakers. */
void background_probe(struct store *store, enum probe_of of, uint16_t cluster_slot);

/* Gives up calls whose time is over. Returns when the next call's time ends (UINT64_MAX: none), hr.
 */
uint64_t background_expire(struct store *store, uint64_t hr);

/* Asks for the server's secret and time where that is due. Returns when it is due next (UINT64_MAX:
 * never), hr. */
uint64_t background_ask_server(struct store *store, uint64_t hr);

/* The `i`-th secret of the store: see weir_store_ops.secret. */
bool background_secret(const struct weir_store *base, unsigned i, uint64_t words[2]);

#endif
