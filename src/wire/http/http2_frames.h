/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frames (RFC 9113 4.1), as far as their heads: where each begins in a stream of bytes, how
 * long it is, of which kind and on which stream. Payloads are stepped over.
 *
 * nghttp2 says nothing of the frames that it ignores; what they cost is counted by these.
 *
 * Memory: the walk alone, which may be copied and remembers a head that is cut in two. Nothing is
 * refused here: a length is 24 bits, and the reader of the frame judges it.
 */
#ifndef WEIR_WIRE_HTTP_HTTP2_FRAMES_H
#define WEIR_WIRE_HTTP_HTTP2_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_HTTP2_HEAD_SIZE 9
#define WEIR_HTTP2_PREFACE_SIZE 24 /* of a client, before its first frame (RFC 9113 3.4) */

struct weir_http2_head {
    uint32_t length; /* of the payload */
    uint32_t stream; /* without the reserved bit */
    uint8_t type, flags;
};

struct weir_http2_walk {
    uint32_t left; /* bytes to step over before the next head */
    uint8_t got;   /* bytes of a head that is not whole */
    uint8_t bytes[WEIR_HTTP2_HEAD_SIZE];
};

/* At the first byte of a client. */
static inline void weir_http2_walk_begin(struct weir_http2_walk *walk)
{
    *walk = (struct weir_http2_walk){.left = WEIR_HTTP2_PREFACE_SIZE};
}

/* Steps on from data[*at] to the end of the next head: true, with *head, and *at behind it. False:
 * *at is `size`; the walk continues with the bytes that follow. */
bool weir_http2_walk_next(struct weir_http2_walk *walk, const char *data, size_t size, size_t *at,
                          struct weir_http2_head *head);

#endif
