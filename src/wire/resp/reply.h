/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the Redis protocol, read: what a client gets, in RESP2 and RESP3, incremental, in
 * place, without allocation.
 *
 * Source: redis.io/docs/reference/protocol-spec. A reply is a tree; it is given as the list of its
 * nodes in the order of the wire, a container before its elements. The caller keeps the bytes of a
 * reply in one contiguous buffer, which may move between calls, and calls weir_resp_reply_parse
 * again when more have come. A reply that comes byte by byte costs linear time.
 *
 * Strict: lengths are plain integers, lines and strings end with CR LF. Refused: streamed strings
 * and containers ("$?", "*?"), which Redis does not send.
 */
#ifndef WEIR_WIRE_RESP_REPLY_H
#define WEIR_WIRE_RESP_REPLY_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_RESP_DEPTH_MAX 128                        /* containers in each other */
#define WEIR_RESP_REPLY_STRING_MAX (512 * 1024 * 1024) /* Redis' proto-max-bulk-len */
#define WEIR_RESP_REPLY_ELEMENTS_MAX (1024 * 1024)     /* of one container */
#define WEIR_RESP_REPLY_LINE_MAX (64 * 1024)           /* simple strings, errors, numbers */

enum weir_resp_type {
    WEIR_RESP_SIMPLE,
    WEIR_RESP_ERROR, /* simple or bulk ("!") */
    WEIR_RESP_INTEGER,
    WEIR_RESP_BULK,
    WEIR_RESP_NULL, /* "_", a null bulk string or a null array */
    WEIR_RESP_DOUBLE,
    WEIR_RESP_BOOLEAN,
    WEIR_RESP_BIG_NUMBER,
    WEIR_RESP_VERBATIM, /* text includes its format ("txt:") */
    WEIR_RESP_ARRAY,    /* the containers: from here on */
    WEIR_RESP_MAP,      /* count is twice the pairs */
    WEIR_RESP_SET,
    WEIR_RESP_PUSH,      /* not an answer to a request */
    WEIR_RESP_ATTRIBUTE, /* as a map; comes before the value that it describes */
};

struct weir_resp_node {
    uint8_t type;           /* enum weir_resp_type */
    uint8_t depth;          /* 0: the reply itself */
    uint32_t count;         /* containers: elements that follow, one level deeper */
    struct weir_bytes text; /* strings, errors, and numbers as they came */
    union {
        int64_t integer; /* integers, and booleans as 0 or 1 */
        double number;   /* doubles */
    };
};

/* The state of a reader; all zeros is the start of a reply, and weir_resp_reply_parse zeros it
 * again at the end of each. */
struct weir_resp_reader {
    const char *base;                   /* the buffer that nodes point into */
    size_t used;                        /* bytes of the reply that are parsed */
    size_t scanned;                     /* bytes known to hold no end of the present line */
    uint32_t nodes;                     /* so far, those dropped included */
    uint8_t depth;                      /* containers open */
    uint32_t left[WEIR_RESP_DEPTH_MAX]; /* elements to come of each, the present one included */
};

/* Parses one reply, data[0] being its first byte, into nodes[0..node_max); those beyond are counted
 * and dropped. Returns the bytes it takes (> 0) with *count set, the number of nodes (may be above
 * node_max), 0 when more are needed, or WEIR_ERR_SYNTAX / WEIR_ERR_TOO_LARGE (a string, a
 * container, or depth); the connection is then of no more use. Pass the same nodes for the same
 * reply. */
long weir_resp_reply_parse(struct weir_resp_reader *reader, const char *data, size_t size,
                           struct weir_resp_node *nodes, uint32_t node_max, uint32_t *count)
    __attribute__((warn_unused_result));

#endif
