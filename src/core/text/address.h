/* SPDX-License-Identifier: Apache-2.0 */
/* Network addresses: text to bits, prefixes, CIDR membership.
 *
 * Addresses are compared as bits, never as text. IPv4-mapped IPv6 (::ffff:0:0/96, RFC 4291 2.5.5.2)
 * folds to IPv4 however it is written; 2001:db8::1.2.3.4 does not. The zone of an IPv6 address
 * (RFC 4007 11.2: "fe80::1%eth0"; in URIs "%25eth0", RFC 6874) is cut off: it names a link of the
 * machine that wrote it, and so neither makes two callers of one address nor none.
 */
#ifndef WEIR_CORE_TEXT_ADDRESS_H
#define WEIR_CORE_TEXT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* family 4 (bytes[0..3]) or 6, in network order, unused bytes zero; 0 when unknown. */
struct weir_address {
    uint8_t family;
    uint8_t bytes[16];
};

/* Addresses whose first `bits` bits equal those of `address`. */
struct weir_cidr {
    struct weir_address address;
    uint8_t bits; /* 0..32 or 0..128 */
};

/* The longest text that weir_address_format writes, its NUL included ("…/128"). */
#define WEIR_ADDRESS_TEXT_MAX 50

/* The longest zone: names of interfaces have 15 bytes (IFNAMSIZ), some systems write more. */
#define WEIR_ADDRESS_ZONE_MAX 64

/* Parses the whole text as one address, without port or brackets; IPv4 as four decimal numbers
 * without leading zeros; IPv6 with or without a zone. The result is folded. Returns 0, or
 * WEIR_ERR_SYNTAX with *address as it was. */
int weir_address_parse(struct weir_address *address, const char *text, size_t size)
    __attribute__((warn_unused_result));

/* Folds ::ffff:a.b.c.d to IPv4, by bits. */
void weir_address_fold(struct weir_address *address);

/* Whether the text ends in a number behind its last dot, so that it may be an address, or a broken
 * one ("010.0.0.1"), but no name of a host (RFC 1123 2.1). */
bool weir_address_ends_in_number(const char *text, size_t size);

/* "10.0.0.0/8", "::1/128", or a plain address (all bits); a zone comes before the slash. Host bits
 * must be zero. Folds as well:
 * "::ffff:10.0.0.0/104" is 10.0.0.0/8. Returns 0 or WEIR_ERR_SYNTAX. */
int weir_cidr_parse(struct weir_cidr *cidr, const char *text, size_t size)
    __attribute__((warn_unused_result));
/* An address of the other family (or of none) is never contained: "::/0" holds no IPv4. */
bool weir_cidr_contains(const struct weir_cidr *cidr, const struct weir_address *address);

/* Fills *ones: an address of a family, 4 or 6, whose first `bits` bits are ones and the others
 * zeros. */
void weir_address_ones(struct weir_address *ones, uint8_t family, uint8_t bits);

/* Keeps the first `bits` bits and zeroes the rest. */
void weir_address_mask(struct weir_address *address, uint8_t bits);

/* The network that an address is in, for telling crowds apart: its first bits as one number, which
 * no two networks share; 0 when unknown. */
#define WEIR_NETWORK_BITS4 16
#define WEIR_NETWORK_BITS6 32
uint32_t weir_address_network(const struct weir_address *address);

/* Canonical text (RFC 5952), empty for family 0. Returns its length; writes a NUL. */
size_t weir_address_format(const struct weir_address *address, char text[WEIR_ADDRESS_TEXT_MAX]);

#endif
