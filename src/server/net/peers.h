/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by the address that they come from: how many are open at one time, and how often new
 * ones come (`server.connections`).
 *
 * An IPv6 address counts by its /64, and one with an IPv4 address inside (`server.nat64`) by that:
 * the caller gives it. A prefix is the /24 of an IPv4 address and the /48 of an IPv6
 * address. All listeners of a process count together, but the admin
 * listener, which its operator must reach. What is refused counts nowhere, so a client
 * that closes one connection may open another at once, and one that comes too often is admitted at
 * its rate.
 *
 * Worst case of the rate: as GCRA (core/bucket.h), N + burst in one window. WEIR_PEERS_KEPT
 * addresses without a connection are remembered; beyond these, the one that has been without for
 * longest starts afresh, so that many addresses can have the rate of some forgotten. Numbers of
 * open connections are never forgotten: the memory has room for all connections that a process may
 * have.
 *
 * Memory: 48 bytes for each address and each prefix that is counted, and 8 bytes for each
 * connection that the process may have. Threads: locked within.
 */
#ifndef WEIR_SERVER_NET_PEERS_H
#define WEIR_SERVER_NET_PEERS_H

#include <stdint.h>

#include "core/text/address.h"
#include "rules/rules.h"
#include "server/daemon/limits.h"

struct weir_peers;

enum weir_peer_verdict {
    WEIR_PEER_ADMITTED,
    WEIR_PEER_ADDRESS, /* refused: its address has as many as it may have */
    WEIR_PEER_PREFIX,  /* refused: its prefix has */
    WEIR_PEER_RATE,    /* refused: its address came too often */
    WEIR_PEER_VERDICTS
};

/* What a connection counts for; zeros: nothing. */
struct weir_peer_places {
    uint32_t address, prefix;
};

/* What of an address is hashed: IPv4 whole and the /64 of IPv6, or the /24 and the /48. All peers
 * of Unix sockets are one. */
enum weir_peer_part { WEIR_PEER_HASH_ADDRESS, WEIR_PEER_HASH_PREFIX };
uint64_t weir_peer_hash(const uint64_t secret[2], const struct weir_address *peer,
                        enum weir_peer_part part);

/* `secret`: what addresses are hashed with; 2 words, copied. `connections`: the most that are open
 * at one time. Errors: WEIR_ERR_MEMORY. */
int weir_peers_open(struct weir_peers **peers, const uint64_t secret[2], uint32_t connections)
    __attribute__((warn_unused_result));
void weir_peers_close(struct weir_peers *peers);

/* Counts a new connection from an IPv4 or IPv6 address, if it is within all limits. `now_ns` is of
 * any clock that all callers share. */
enum weir_peer_verdict weir_peers_take(struct weir_peers *peers,
                                       const struct weir_peer_settings *settings,
                                       const struct weir_address *peer, uint64_t now_ns,
                                       struct weir_peer_places *places);

/* The connection has ended. Sets `places` to zeros. */
void weir_peers_give(struct weir_peers *peers, struct weir_peer_places *places);

#endif
