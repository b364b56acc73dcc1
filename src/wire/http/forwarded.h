/* SPDX-License-Identifier: Apache-2.0 */
/* The client's address behind proxies: X-Forwarded-For and Forwarded (RFC 7239).
 *
 * Only the peer and what trusted proxies appended count: the walk goes from the right and stops at
 * the first hop that is not trusted; that hop is the client. A hop that is no address ("unknown",
 * "_x", or malformed) makes the request unreadable: the proxy before it must not count as the
 * client, since rules exempt proxies. Two things are no such hop:
 *
 *   "unix:"             what nginx writes for a client on a Unix socket: a hop without an address,
 *                       which is trusted where Unix sockets are
 *   proto=https         an element of Forwarded without "for", if no element has one: then the
 *                       field says nothing of the client
 *
 * Empty list elements are skipped. At most WEIR_FORWARDED_HOPS_MAX elements are looked at; where
 * all are trusted, the last one looked at is the client.
 *
 * The text is read from the right too, quotes and all: whatever a client wrote at the left, what
 * its proxies appended reads the same.
 *
 * A hop is an IPv4 address or an IPv6 address with or without brackets, and may have a port (IPv6:
 * with brackets only) and a zone, which is cut off. For the PROXY protocol see proxy_protocol.h.
 */
#ifndef WEIR_WIRE_HTTP_FORWARDED_H
#define WEIR_WIRE_HTTP_FORWARDED_H

#include <weir/bytes.h>

#include <weir/error.h>

#include "core/text/address.h"
#include "wire/http/proxy_protocol.h"

#define WEIR_FORWARDED_HOPS_MAX 64 /* more proxies in a row than that is an attack */

/* Whose forwarded addresses count: server.trusted_proxies. */
struct weir_proxies {
    const struct weir_cidr *networks;
    size_t count;
    bool local; /* peers on Unix sockets */
};

/* Whether what this peer forwards counts. */
bool weir_forwarded_trusts(const struct weir_address *peer, const struct weir_proxies *trusted);

/* `values`: the field's lines in order of arrival. *client starts as the (trusted) peer and is
 * replaced by the right-most untrusted hop. Errors: WEIR_ERR_SYNTAX (a hop is no address; *client
 * is unknown then). */
int weir_forwarded_for(struct weir_address *client, const struct weir_bytes *values, size_t count,
                       const struct weir_proxies *trusted) __attribute__((warn_unused_result));
int weir_forwarded_rfc7239(struct weir_address *client, const struct weir_bytes *values,
                           size_t count, const struct weir_proxies *trusted)
    __attribute__((warn_unused_result));

/* The lines of both fields of one request. */
struct weir_forwarded {
    const struct weir_bytes *x_forwarded_for, *rfc7239;
    size_t x_forwarded_for_count, rfc7239_count;
};

/* The same for a request that may have both fields, of which X-Forwarded-For counts, or none. On
 * errors `reason` (or NULL) names the field. */
int weir_forwarded_client(struct weir_address *client, const struct weir_forwarded *fields,
                          const struct weir_proxies *trusted, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
