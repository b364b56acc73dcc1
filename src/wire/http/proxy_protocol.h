/* SPDX-License-Identifier: Apache-2.0 */
/* The PROXY protocol, versions 1 and 2: the client of a connection, named by the proxy in front.
 *
 * Source: haproxy's doc/proxy-protocol.txt (2020/03/05). Strict: version 1 is the one line that
 * section 2.1 describes, with single spaces, at most 107 bytes with its CR LF; version 2 has its 16
 * bytes, a known command and family, and room for the addresses. TLVs are skipped. Whether a header
 * comes at all is configured, never guessed (section 2): a connection without one is an error.
 */
#ifndef WEIR_WIRE_HTTP_PROXY_PROTOCOL_H
#define WEIR_WIRE_HTTP_PROXY_PROTOCOL_H

#include <stddef.h>

#include "core/text/address.h"

#define WEIR_PROXY_V1_MAX 107
#define WEIR_PROXY_HEADER_MAX (16 + 65535) /* version 2: its fixed part and a 16-bit length */

/* Reads the header at the start of a connection. Returns the bytes taken (> 0), 0 for "need more",
 * or WEIR_ERR_SYNTAX. *client becomes the source address; LOCAL, UNKNOWN, unspecified and Unix
 * addresses, and datagrams leave it as it is. */
long weir_proxy_header_parse(struct weir_address *client, const char *data, size_t size)
    __attribute__((warn_unused_result));

#endif
