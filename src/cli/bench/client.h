/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of a load: its connections, and a loop over epoll that keeps them busy.
 *
 * Closed loop (rate 0): every connection has `pipeline` requests in flight at all times; each reply
 * makes the next request. Latency runs from the sending. While the server stalls nothing is sent,
 * so that the stall is measured once and not for those who would have come ("coordinated
 * omission"); with `expected_interval_ns` those are put into the histogram afterwards.
 *
 * Open loop: requests are due at fixed times, `rate` a second over all threads, whatever the server
 * does. A request goes to the next connection with room, or waits for one; latency runs from the
 * time it was due, so that waiting counts. What could not be sent by the end is reported
 * (`unsent`).
 *
 * The requests in flight are in the order of their replies: a ring of times for each connection.
 * The buffer of requests is made once; for a new request only its key's digits are written.
 * A connection that is lost is opened again, its requests count as lost; when none can be opened
 * the client ends.
 *
 * Memory: a connection takes `pipeline` requests, as many times, and 16 KiB for replies (more if
 * one does not fit). Threads: everything belongs to the client's thread from run to the end.
 */
#ifndef WEIR_CLI_BENCH_CLIENT_H
#define WEIR_CLI_BENCH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/bench/histogram.h"
#include "cli/bench/keys.h"
#include "cli/bench/reply.h"
#include "cli/bench/request.h"
#include "cli/bench/target.h"

#define BENCH_REPLY_MAX ((size_t)64 << 20) /* one reply; then the connection is given up */
#define BENCH_ERROR_MAX 200                /* what is kept of a server's error, with its NUL */

/* What is to be done: the same for all threads, immutable while they run. */
struct bench_plan {
    struct bench_target target;
    const char *password; /* or NULL */
    bool resp3;
    struct bench_request request;
    struct bench_denial denial;
    struct bench_keyspace keyspace;
    uint64_t seed;
    uint32_t threads, connections, pipeline; /* connections: of all threads together */
    uint64_t requests;                       /* of all threads; 0: until end_ns */
    double rate;                             /* requests a second of all threads; 0: closed loop */
    uint64_t expected_interval_ns;           /* of a closed loop; 0: no correction */
    bool spin; /* ask the kernel again at once instead of sleeping until a request is due */
    uint64_t timeout_ns; /* without any reply, then the client gives up */
    /* CLOCK_MONOTONIC; what is read before measure_ns is not counted. */
    uint64_t start_ns, measure_ns, end_ns;
};

/* What came of it, since measure_ns. */
struct bench_result {
    uint64_t replies, denied, failed; /* replies: all, those denied and failed included */
    uint64_t lost, unsent;            /* at any time */
    uint64_t last_ns;                 /* when the last reply came; measure_ns if none */
    char error[BENCH_ERROR_MAX];      /* the first failure's, or why the client ended; else "" */
    bool ended_early;                 /* no connection, or no reply for too long */
    struct bench_histogram latency;   /* ns */
};

struct bench_client;

/* The time that all of it goes by. */
uint64_t bench_clock_ns(void);

/* Makes client `index` of plan->threads and opens its connections.
 * Errors, with `reason`: WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int bench_client_open(struct bench_client **client, const struct bench_plan *plan, unsigned index,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Runs from start_ns (waiting for it) until all that was sent is answered. */
void bench_client_run(struct bench_client *client);

const struct bench_result *bench_client_result(const struct bench_client *client);

void bench_client_close(struct bench_client *client);

#endif
