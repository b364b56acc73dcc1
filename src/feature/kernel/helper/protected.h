/* SPDX-License-Identifier: Apache-2.0 */
/* What weir-kernel never bans, even if the server asks for it: loopback, the addresses of this
 * machine, and the networks that the server has named (PROTECT: its trusted proxies). The server
 * checks the same; a mistake there must not cut the machine off.
 *
 * All of it is one list of ranges that do not touch, sorted, so a look is a binary search. A
 * network is protected when it has an address in common with one of them.
 *
 * Memory: 34 bytes a network, twice; at most KERNEL_PROTECTED_MAX of each kind.
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_HELPER_PROTECTED_H
#define WEIR_FEATURE_KERNEL_HELPER_PROTECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feature/kernel/message.h"

/* Of named networks (10,000 proxies, and what else a server protects), and of own addresses (a node
 * of a cluster has one for each service). */
#define KERNEL_PROTECTED_MAX 65536

/* A family, and an address of it: they sort as bytes. */
#define KERNEL_POINT 17
struct kernel_range {
    uint8_t first[KERNEL_POINT], last[KERNEL_POINT];
};

struct kernel_ranges {
    struct kernel_range *list;
    size_t count, room;
};

struct kernel_protected {
    struct kernel_ranges own, named, all;
    bool known; /* `own` was read, and `all` is what the others say */
};

void kernel_protected_free(struct kernel_protected *protected);

/* Appends a network. Returns 0, -ENOMEM, or -E2BIG past KERNEL_PROTECTED_MAX. */
int kernel_ranges_add(struct kernel_ranges *ranges, uint8_t family, uint8_t bits,
                      const uint8_t *address);

/* Takes over a new list of own addresses (which is empty afterwards). Returns 1 when it has one
 * that the last one had not, 0, or -ENOMEM, after which nothing is known. */
int kernel_protected_own(struct kernel_protected *protected, struct kernel_ranges *own);

/* Takes a message PROTECT. Returns 0, -ENOMEM or -E2BIG, after which nothing is known. */
int kernel_protected_name(struct kernel_protected *protected,
                          const struct weir_kernel_message *message);

/* Whether a network has an address in common with what is protected; all has while nothing is
 * known. */
bool kernel_protected_overlaps(const struct kernel_protected *protected, uint8_t family,
                               uint8_t bits, const uint8_t *address);

#endif
