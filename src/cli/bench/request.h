/* SPDX-License-Identifier: Apache-2.0 */
/* The request of a load: bytes that are the same each time, except for the number of a key.
 *
 * Placeholders: {key} stands for the key's number as 12 digits (as redis-benchmark's __rand_int__),
 * {ip} for an IPv6 address whose /64 is the key's own. Both have a fixed width, so all requests
 * have the same size and a new one is made by writing digits into an old one.
 *
 * Immutable once made; used by all threads.
 */
#ifndef WEIR_CLI_BENCH_REQUEST_H
#define WEIR_CLI_BENCH_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

/* Bytes: a script with its arguments, or a check of many headers. */
#define BENCH_REQUEST_MAX 65536
#define BENCH_HOLES_MAX 32 /* placeholders */
#define BENCH_KEY_DIGITS 12

enum bench_hole_kind { BENCH_HOLE_KEY, BENCH_HOLE_IP };

struct bench_request {
    char *text; /* with key 0 in its places */
    size_t size;
    unsigned hole_count;
    struct bench_hole {
        uint32_t at;
        enum bench_hole_kind kind;
    } holes[BENCH_HOLES_MAX];
};

/* A command line ("INCR key:{key}") as an array of bulk strings. Arguments are separated by spaces;
 * one in double or single quotes may hold spaces, or nothing.
 * Errors: WEIR_ERR_SYNTAX (no command, an open quote), WEIR_ERR_TOO_LARGE, WEIR_ERR_MEMORY. */
int bench_request_resp(struct bench_request *request, const char *line)
    __attribute__((warn_unused_result));

/* `start`: "POST /v1/check"; `headers`: "Name: value" each, count of them; `body` may be NULL.
 * Host, and Content-Length where there is a body, are added. Errors: as above; WEIR_ERR_SYNTAX for
 * a start without a target, and for a line break in start or headers. */
int bench_request_http(struct bench_request *request, const char *host, const char *start,
                       const char *const *headers, size_t count, const char *body)
    __attribute__((warn_unused_result));

void bench_request_free(struct bench_request *request);

/* Makes a copy of the request that of `key` (below 10^12 and 2^32). */
void bench_request_patch(const struct bench_request *request, char *copy, uint64_t key);

#endif
