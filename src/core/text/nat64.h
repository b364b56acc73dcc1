/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 within IPv6 (RFC 6052): what a translator (NAT64, SIIT) makes of an IPv4 address.
 *
 *    bits  0          32    40    48    56    64  72    80    88    96   104  127
 *      32  prefix     v4(32 bits)             u   suffix
 *      40  prefix           v4(24)            u   (8)   suffix
 *      48  prefix                 v4(16)      u   (16)        suffix
 *      56  prefix                       (8)   u   v4(24)            suffix
 *      64  prefix                             u   v4(32)                  suffix
 *      96  prefix                                              v4(32)
 *
 * u (bits 64 to 71) and the suffix are zero; an address in which they are not is no such address.
 * Neither is one with an IPv4 address that is not global (RFC 6890 and its registry): RFC 6052 3.1
 * forbids it within 64:ff9b::/96, and a client that can send from such an address must not count as
 * 127.0.0.1 or 10.0.0.1.
 *
 * Freestanding, no state.
 */
#ifndef WEIR_CORE_TEXT_NAT64_H
#define WEIR_CORE_TEXT_NAT64_H

#include "core/text/address.h"

/* Whether IPv4 addresses can be within this network: IPv6, of one of the lengths above, u zero. */
bool weir_nat64_is_prefix(const struct weir_cidr *network);

/* Whether everybody can reach it: not private, shared, loopback, link-local, multicast, reserved,
 * or for documentation and measurements. */
bool weir_address_is_global4(const struct weir_address *address);

/* The IPv4 address within `address`, where one of the prefixes (each weir_nat64_is_prefix) has it;
 * else `address` itself. */
void weir_nat64_inside(const struct weir_cidr *prefixes, size_t count,
                       const struct weir_address *address, struct weir_address *inside);

/* The IPv6 network in which a prefix has all addresses of an IPv4 network. */
void weir_nat64_embed(const struct weir_cidr *prefix, const struct weir_cidr *network,
                      struct weir_cidr *embedded);

#endif
