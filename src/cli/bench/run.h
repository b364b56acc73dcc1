/* SPDX-License-Identifier: Apache-2.0 */
/* A load as a whole: threads, the time that is measured, the server's CPU time, the sums.
 *
 * CPU time is that of the process's clock (clock_getcpuclockid), to the nanosecond and with all its
 * threads, those that ended included, but not its child processes. It is read when the measurement
 * starts and when the last reply has come; replies are counted over the same time.
 *
 * Threads: called by one; starts and ends those of the plan.
 */
#ifndef WEIR_CLI_BENCH_RUN_H
#define WEIR_CLI_BENCH_RUN_H

#include <sys/types.h>

#include "cli/bench/client.h"

struct bench_summary {
    struct bench_result total; /* of all clients; error: the first one's that has any */
    uint64_t elapsed_ns;       /* from the start of the measurement to the last reply; at least 1 */
    uint64_t client_cpu_ns;    /* of this process */
    bool server_cpu_known;
    uint64_t server_cpu_ns;
};

/* How long, beside the plan. */
struct bench_timing {
    uint64_t warmup_ns;   /* before the measurement; 0 where the plan counts requests */
    uint64_t duration_ns; /* of the measurement; not used where the plan counts requests */
    pid_t pid;            /* the server's; 0: its CPU time is not measured */
};

/* Runs a plan, whose times it sets. The summary is large: not for a stack of its own.
 * Errors, with `reason`: WEIR_ERR_IO (no connection), WEIR_ERR_NOT_FOUND (no such process),
 * WEIR_ERR_MEMORY. */
int bench_run(struct bench_plan *plan, const struct bench_timing *timing,
              struct bench_summary *summary, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
