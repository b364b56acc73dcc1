/* SPDX-License-Identifier: Apache-2.0 */
/* What the replies to a load say: done, denied or failed, in either protocol.
 *
 * HTTP: 429 is a denial, another status of 400 or more a failure. Redis protocol: an error is a
 * failure; what a denial is depends on the command, and the load says so as "element I of the reply
 * is the integer V" (a reply that is no array is its own element 0).
 *
 * Threads: one owner, the connection.
 */
#ifndef WEIR_CLI_BENCH_REPLY_H
#define WEIR_CLI_BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

#include "wire/http/http1_reply.h"
#include "wire/resp/reply.h"

#define BENCH_ELEMENT_MAX 15 /* of a reply that is looked at */

enum bench_protocol { BENCH_RESP, BENCH_HTTP };
enum bench_verdict { BENCH_DONE, BENCH_DENIED, BENCH_FAILED };

/* When a reply of the Redis protocol is a denial. */
struct bench_denial {
    bool known;
    uint32_t element;
    int64_t value;
};

struct bench_reply {
    enum bench_verdict verdict;
    bool last;               /* the server closes the connection after it */
    struct weir_bytes error; /* of a failure: what the server says */
};

/* At the start of a connection: zero, except for the protocol. */
struct bench_reader {
    enum bench_protocol protocol;
    struct weir_resp_reader resp;
    struct weir_resp_node nodes[BENCH_ELEMENT_MAX + 2]; /* the array, and elements 0..15 */
    struct weir_http1_reply_reader http;
    struct weir_http1_reply http_reply;
};

/* "0=1": element 0 being 1. Returns whether it is that. */
bool bench_denial_parse(const char *text, struct bench_denial *denial);

/* The denial of a command line that is known: CL.THROTTLE, THROTTLE, GCRA, INCREX, WEIR.CHECK,
 * WEIR.CHECKALL; not known for any other. */
struct bench_denial bench_denial_of(const char *line);

/* Reads one reply from data[0..size), which may have moved since it was last passed. Returns the
 * bytes that it takes (> 0), 0 when more are needed, or an error of the codec (wire/resp/reply.h,
 * wire/http/http1_reply.h). */
long bench_reply_read(struct bench_reader *reader, const struct bench_denial *denial, char *data,
                      size_t size, struct bench_reply *reply) __attribute__((warn_unused_result));

#endif
