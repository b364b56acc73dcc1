/* The client's address behind proxies: X-Forwarded-For, Forwarded (RFC 7239), PROXY protocol.
 *
 * Only the peer and what trusted proxies appended count: the walk goes from the right and stops at
 * the first hop that is not trusted; that hop is the client. A hop that is no address ("unknown",
 * "_x", or malformed) ends the walk at the hop before. At most WEIR_FORWARDED_HOPS_MAX hops are
 * looked at.
 */
#ifndef WEIR_WIRE_FORWARDED_H
#define WEIR_WIRE_FORWARDED_H

#include <weir/bytes.h>

#include "core/address.h"

#define WEIR_FORWARDED_HOPS_MAX 64 /* more proxies in a row than that is an attack */

/* `values`: the field's lines in order of arrival. *client starts as the (trusted) peer and is
 * replaced by the right-most untrusted hop. */
void weir_forwarded_for(struct weir_address *client, const struct weir_bytes *values, size_t count,
                        const struct weir_cidr *trusted, size_t trusted_count);
void weir_forwarded_rfc7239(struct weir_address *client, const struct weir_bytes *values,
                            size_t count, const struct weir_cidr *trusted, size_t trusted_count);

#define WEIR_PROXY_HEADER_MAX (16 + 65535)
/* PROXY protocol v1 or v2 at the start of a connection (haproxy's proxy-protocol.txt). Returns the
 * bytes taken (> 0), 0 for "need more", WEIR_ERR_SYNTAX. LOCAL and UNKNOWN leave *client as it is.
 */
long weir_proxy_header_parse(struct weir_address *client, const char *data, size_t size)
    __attribute__((warn_unused_result));

#endif
