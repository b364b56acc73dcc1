/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 replies, read (RFC 9110, RFC 9112): what a client of weir's own gets, incremental, in
 * place, without sockets or allocation. The load generator reads the server's answers with it.
 *
 * The caller keeps the bytes of a reply in one contiguous buffer, which may move between calls, and
 * calls weir_http1_reply_parse again when more have come. A reply that comes byte by byte costs
 * linear time. A chunked body is joined in place.
 *
 * Strict like http1.h: lines end with CR LF, no controls in the head, no folded fields, one
 * Content-Length, no transfer coding but "chunked" alone. Not read: a body that only the end of the
 * connection ends, and replies to HEAD and CONNECT. 1xx replies are replies of their own: the
 * caller reads on to the next.
 */
#ifndef WEIR_WIRE_HTTP_HTTP1_REPLY_H
#define WEIR_WIRE_HTTP_HTTP1_REPLY_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/http/chunked.h"

#define WEIR_HTTP1_REPLY_HEAD_MAX 16384
#define WEIR_HTTP1_REPLY_BODY_MAX (64 * 1024 * 1024)

struct weir_http1_reply {
    uint16_t status;          /* 100..599 */
    bool keep_alive;          /* the connection takes another request */
    struct weir_bytes fields; /* the lines after the first, each with its CR LF */
    struct weir_bytes body;   /* joined; size 0 when there is none */
};

/* The state of a reader; all zeros is the start of a reply, so zero it after each. */
struct weir_http1_reply_reader {
    size_t scanned;              /* bytes known to hold no end of the head */
    size_t head_size;            /* once the head is complete, else 0 */
    size_t line_size;            /* of the status line, its CR LF included */
    size_t content_length;       /* unless the body is chunked */
    struct weir_chunked chunked; /* how far the body is decoded */
    bool body_chunked;
};

/* Parses one reply, data[0] being its first byte; `data` is not const because a chunked body is
 * joined in place. Returns the bytes that it takes (> 0), 0 when more are needed (the reply is then
 * of no meaning yet), or WEIR_ERR_SYNTAX / WEIR_ERR_TOO_LARGE / WEIR_ERR_UNSUPPORTED (a body
 * without an end of its own, another transfer coding, another version); the connection is then of
 * no more use. Pass the same reply for the same reader. */
long weir_http1_reply_parse(struct weir_http1_reply_reader *reader, char *data, size_t size,
                            struct weir_http1_reply *reply) __attribute__((warn_unused_result));

#endif
