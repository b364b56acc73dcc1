/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) for what the admin listener sends to clients that take it: whole replies, and the
 * stream of the dashboard, of which each text can be read when it has come (Z_SYNC_FLUSH).
 *
 * Compression over TLS tells those who see sizes about secrets that come with what they choose
 * (BREACH). Replies of this listener have no secret: the token and the cookie are in fields, which
 * are not compressed, and a page of another site cannot ask.
 *
 * Memory: 268 KB a packer, of zlib. Threads: one owner.
 */
#ifndef WEIR_SERVER_HTTP_PACKER_H
#define WEIR_SERVER_HTTP_PACKER_H

#include <stdbool.h>
#include <stddef.h>

struct weir_http_call;
struct weir_packer;

/* Whether the client of a call takes gzip. */
bool weir_http_takes_gzip(const struct weir_http_call *call);

/* NULL: no memory. */
struct weir_packer *weir_packer_open(void);
void weir_packer_close(struct weir_packer *packer); /* NULL is allowed */

/* The most bytes that a text becomes. */
size_t weir_packer_bound(struct weir_packer *packer, size_t size);

/* Compresses a text, so that all of it can be read; `last`: and ends the stream. Returns the bytes
 * written to `out`, which has room for weir_packer_bound. */
size_t weir_packer_put(struct weir_packer *packer, const char *text, size_t size, bool last,
                       char *out, size_t room);

#endif
