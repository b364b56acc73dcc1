/* SPDX-License-Identifier: Apache-2.0 */
/* Bans for a layer below weir, such as the kernel's: a bounded queue of networks and their ends.
 *
 * Only what is safe to drop before weir sees it is published: networks that an operator or a list
 * has named, or of an address that is proven (the peer of a TCP connection, or what a trusted proxy
 * has named for a completed request, unless translators share it); never one that holds a loopback
 * address, a trusted proxy, or an address of this machine. An end may always be published.
 *
 * No end is dropped, since the layer below would go on dropping packets of a caller that weir lets
 * pass. When the queue is full,
 *
 *   a network that waits in it        has its newest term in its place
 *   a ban that the layer cannot know  is dropped and counted: weir itself still refuses
 *   an end, or another term, of one   empties the queue: the next that comes out is the end of all
 *   that the layer may have           bans, behind it what is published from then on
 *
 * Which networks the layer may have is a set of bits (a Bloom filter of one hash, B. Bloom, 1970)
 * of what was taken since the last end of all.
 *
 * Memory: 200 KiB.
 * Threads: any; a lock inside.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_BANS_H
#define WEIR_FEATURE_STANDING_SERVER_BANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/address.h"

#define WEIR_BANS_MAX 4096

struct weir_ban {
    struct weir_cidr network; /* family 0: all bans end now */
    uint64_t until_ns;        /* 0: the ban ends now; WEIR_NEVER: it has no end */
};

struct weir_bans;

/* Errors: WEIR_ERR_MEMORY. */
int weir_bans_open(struct weir_bans **bans) __attribute__((warn_unused_result));
void weir_bans_close(struct weir_bans *bans);

/* What is never banned besides loopback addresses: proxies (copied), and the addresses of this
 * machine's interfaces, which are read now. Errors: WEIR_ERR_MEMORY; then nothing is published
 * until the next call succeeds. */
int weir_bans_protect(struct weir_bans *bans, const struct weir_cidr *proxies, size_t count)
    __attribute__((warn_unused_result));

/* The prefixes with IPv4 addresses (server.nat64; copied): at most WEIR_NAT64_MAX. */
void weir_bans_translate(struct weir_bans *bans, const struct weir_cidr *prefixes, size_t count);

/* Whether a network holds more of such a prefix than the addresses of one IPv4 address: clients
 * that count by others than it, whom what its own clients did must not be held against. */
bool weir_bans_is_shared(struct weir_bans *bans, const struct weir_cidr *network);

/* Publishes a ban, or its end (until_ns 0). False: it is not proven, or a ban that holds a
 * protected address or finds the queue full. */
bool weir_bans_publish(struct weir_bans *bans, const struct weir_cidr *network, uint64_t until_ns,
                       bool proven);

/* Ends all bans: for a change after which it is not known which have ended. */
void weir_bans_reset(struct weir_bans *bans);

/* Takes the oldest one. False: there is none. */
bool weir_bans_take(struct weir_bans *bans, struct weir_ban *ban);

/* Calls `take` for each network that is never banned. */
void weir_bans_each_protected(struct weir_bans *bans,
                              void (*take)(void *context, const struct weir_cidr *network),
                              void *context);

/* Whether a ban of that network may be published: it holds nothing protected. */
bool weir_bans_may_hold(struct weir_bans *bans, const struct weir_cidr *network);

struct weir_bans_counts {
    uint64_t published, unproven;
    uint64_t full; /* bans that were dropped, and ends of all bans: the queue was full */
    uint64_t kept; /* not published: they hold a protected address */
};
void weir_bans_counts(struct weir_bans *bans, struct weir_bans_counts *counts);

#endif
