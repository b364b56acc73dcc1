/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of this machine, over netlink (RTM_GETADDR, rtnetlink(7)). The socket is opened
 * before the sandbox is entered, in which there are no others.
 *
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_HELPER_ADDRESSES_H
#define WEIR_FEATURE_KERNEL_HELPER_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#include "feature/kernel/helper/protected.h"

struct addresses {
    int fd;
    uint32_t sequence;
};

/* Opens the socket. Returns 0, or -errno. */
int addresses_open(struct addresses *addresses);

/* Reads all addresses into *own, which is empty before. Returns 0, or -errno: *own is empty again.
 */
int addresses_read(struct addresses *addresses, struct kernel_ranges *own);

/* Takes the addresses of `size` bytes of answers to the request `sequence`. Returns 1 when more are
 * to come, 0 at the end, or -errno. */
int addresses_take(const uint8_t *bytes, size_t size, uint32_t sequence, struct kernel_ranges *own);

#endif
