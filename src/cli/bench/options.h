/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `weir bench`, read into a plan.
 *
 * Threads: the main thread. The options point into the command line.
 */
#ifndef WEIR_CLI_BENCH_OPTIONS_H
#define WEIR_CLI_BENCH_OPTIONS_H

#include <stdbool.h>

#include "cli/bench/client.h"
#include "cli/bench/report.h"
#include "cli/bench/run.h"

#define BENCH_HEADERS_MAX 32
#define BENCH_THREADS_MAX 64
#define BENCH_CONNECTIONS_MAX 10000
#define BENCH_PIPELINE_MAX 10000
#define BENCH_PIPELINE_BYTES_MAX ((size_t)16 << 20) /* requests in flight on one connection */

/* How many requests are to be allowed. */
struct bench_expected {
    bool given, percent; /* percent: the tolerance is a part of `allowed` */
    uint64_t allowed;
    double tolerance;
};

struct bench_options {
    struct bench_plan plan;
    struct bench_timing timing;
    struct bench_labels labels;
    struct bench_expected expected;
    bool json;
};

/* Reads the command line (argv[0] is not looked at); the request of the plan is then made and
 * belongs to the caller (bench_request_free).
 * Returns 0, or the status to exit with, after it has printed why. *help: the user asked for the
 * help, which is no failure. */
int bench_options_read(struct bench_options *options, int argc, char **argv, bool *help)
    __attribute__((warn_unused_result));

#endif
