/* SPDX-License-Identifier: Apache-2.0 */
/* The client's address behind proxies: X-Forwarded-For and Forwarded (RFC 7239).
 *
 * Only the peer and what trusted proxies appended count: the walk goes from the right and stops at
 * the first hop that is not trusted; that hop is the client. A hop that is no address ("unknown",
 * "_x", or malformed) ends the walk at the hop before. Empty list elements are skipped. At most
 * WEIR_FORWARDED_HOPS_MAX elements are looked at; where all are trusted, the last one looked at is
 * the client.
 *
 * The text is read from the right too, quotes and all: whatever a client wrote at the left, what
 * its proxies appended reads the same.
 *
 * A hop is an IPv4 address or an IPv6 address with or without brackets, and may have a port (IPv6:
 * with brackets only). For the PROXY protocol see proxy_protocol.h.
 */
#ifndef WEIR_WIRE_HTTP_FORWARDED_H
#define WEIR_WIRE_HTTP_FORWARDED_H

#include <weir/bytes.h>

#include "core/text/address.h"
#include "wire/http/proxy_protocol.h"

#define WEIR_FORWARDED_HOPS_MAX 64 /* more proxies in a row than that is an attack */

/* Whether what this peer forwards counts; `trust_unix`: of a peer without an address. */
bool weir_forwarded_trusts(const struct weir_address *peer, const struct weir_cidr *trusted,
                           size_t trusted_count, bool trust_unix);

/* `values`: the field's lines in order of arrival. *client starts as the (trusted) peer and is
 * replaced by the right-most untrusted hop. */
void weir_forwarded_for(struct weir_address *client, const struct weir_bytes *values, size_t count,
                        const struct weir_cidr *trusted, size_t trusted_count);
void weir_forwarded_rfc7239(struct weir_address *client, const struct weir_bytes *values,
                            size_t count, const struct weir_cidr *trusted, size_t trusted_count);

#endif
