/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked transfer coding (RFC 9112 section 7.1), decoded in place and incrementally.
 *
 * A byte-wise state machine: it may be fed any number of bytes at a time and never looks back. The
 * data of the chunks is moved together at the front, over framing that has been read already.
 *
 * Strict where decoders are known to differ (request smuggling): a size is hexadecimal digits and
 * nothing else, lines end with CR LF only, an extension holds no control but HTAB, a trailer is a
 * well-formed field. Extensions and trailers are read and dropped (RFC 9112 7.1.1, 7.1.2).
 */
#ifndef WEIR_WIRE_HTTP_CHUNKED_H
#define WEIR_WIRE_HTTP_CHUNKED_H

#include <stddef.h>
#include <stdint.h>

/* Sizes, extensions and trailers of one body together: 13,000 chunks of a few bytes each, far more
 * than any client makes of a megabyte. Beyond it the framing is the attack. */
#define WEIR_CHUNKED_FRAMING_MAX 65536

/* Zero is the start of a body. */
struct weir_chunked {
    size_t used; /* raw bytes read */
    size_t size; /* bytes of data joined so far: body[0..size) */
    size_t left; /* of the present chunk */
    uint8_t state;
};

/* Reads on: body[0..raw_size) is all that has come of the body since its first byte. `body_max`
 * bounds the data. Returns 1 at the end (`used` bytes were the body's), 0 when more is needed,
 * WEIR_ERR_SYNTAX, or WEIR_ERR_TOO_LARGE (data or framing); *problem then says what, static. */
int weir_chunked_decode(struct weir_chunked *chunked, char *body, size_t raw_size, size_t body_max,
                        const char **problem) __attribute__((warn_unused_result));

#endif
