/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 requests (RFC 9110, RFC 9112): an incremental parser without sockets or allocation.
 *
 * The caller keeps the bytes of a request in one contiguous buffer and calls weir_http1_parse again
 * when more have come, with the same parser and the same request; the parser remembers how far it
 * looked, so that a request that arrives byte by byte costs linear time. The buffer may move
 * between calls. Fields and body point into it; a chunked body is joined in place.
 *
 * Strict, because a proxy in front may read the same bytes differently (request smuggling):
 * refused are Content-Length given twice (even equal), Content-Length with Transfer-Encoding, any
 * transfer coding but "chunked" alone, a transfer coding in HTTP/1.0, a bare LF or CR, obs-fold,
 * NUL and other controls anywhere in the head, white space before the colon, two Host fields, no
 * Host in HTTP/1.1, a Host that is no host, and HTTP/0.9. Chunks: see chunked.h.
 * Accepted: origin-form, absolute-form (http and https, without user information), and "*" of
 * OPTIONS; HTTP/1.0 (no keep-alive unless asked for). An unknown HTTP/1.x counts as 1.1.
 */
#ifndef WEIR_WIRE_HTTP_HTTP1_H
#define WEIR_WIRE_HTTP_HTTP1_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/http/chunked.h"

#define WEIR_HTTP1_FIELDS_MAX 100 /* Apache's LimitRequestFields default; then 431 */
#define WEIR_HTTP1_HEAD_MAX 16384 /* request line and fields; then 431 (414 in the target) */
#define WEIR_HTTP1_BODY_MAX (1024 * 1024) /* 1,000 checks of 1 KiB; then 413 */

struct weir_http1_field {
    struct weir_bytes name, value; /* value without surrounding white space */
};

struct weir_http1_request {
    struct weir_bytes method, target; /* target as sent */
    struct weir_bytes path, query;    /* of the target; query.data == NULL when there is no '?' */
    struct weir_bytes host;           /* from an absolute-form target, else the Host field */
    struct weir_bytes body;           /* joined; size 0 when there is none */
    /* Fields that handlers ask for, noted while the head is read: the first of each; data == NULL:
     * absent. */
    struct weir_bytes content_type, idempotency_key;
    bool idempotency_key_repeated;
    uint8_t minor; /* HTTP/1.minor */
    bool keep_alive, expect_continue;
    uint16_t field_count;
    struct weir_http1_field fields[WEIR_HTTP1_FIELDS_MAX];
};

/* The most that one request takes of the buffer. */
#define WEIR_HTTP1_REQUEST_MAX                                                                     \
    (WEIR_HTTP1_HEAD_MAX + WEIR_HTTP1_BODY_MAX + WEIR_CHUNKED_FRAMING_MAX)

/* The state of a parser between calls; all zeros is the start of a request, so zero it after each.
 */
struct weir_http1_parser {
    size_t start;                /* of the request line, after empty lines */
    size_t scanned;              /* bytes of the head whose lines are known */
    size_t line_start;           /* of the line not yet ended */
    size_t first_end;            /* of the request line */
    size_t head_size;            /* once the head is complete, else 0 */
    size_t content_length;       /* unless the body is chunked */
    const char *base;            /* the buffer that the fields point into */
    struct weir_chunked chunked; /* how far the body is decoded */
    uint16_t lines;              /* of the head, ended so far */
    bool body_chunked;
    bool head_done;      /* the fields are valid though the body is not complete (for Expect) */
    uint16_t status;     /* after an error: 400, 413, 414, 417, 431, 501 or 505 */
    const char *problem; /* after an error: what is wrong, static */
};

/* Parses one request from data[0..size), the first byte being the request's first (empty lines
 * before it are skipped). `data` is not const: a chunked body is joined in place. Bytes after the
 * request (pipelining) stay as they are.
 * Returns the bytes that the request takes (> 0), 0 when more are needed, or WEIR_ERR_SYNTAX /
 * WEIR_ERR_TOO_LARGE with parser->status and problem set; the connection must then be closed. */
long weir_http1_parse(struct weir_http1_parser *parser, char *data, size_t size,
                      struct weir_http1_request *request) __attribute__((warn_unused_result));

/* The value of a field by its lower-case name; data == NULL when absent. Fields that come more than
 * once are separate: this is the first. */
struct weir_bytes weir_http1_field(const struct weir_http1_request *request, const char *name);

#endif
