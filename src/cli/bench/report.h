/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir bench` prints: a table for people, or JSON (--json; docs/bench.md lists the fields).
 *
 * Threads: the main thread.
 */
#ifndef WEIR_CLI_BENCH_REPORT_H
#define WEIR_CLI_BENCH_REPORT_H

#include "cli/bench/run.h"

/* What was asked for, in the words it was asked in. */
struct bench_labels {
    const char *target, *command, *distribution;
};

/* The replies that are neither denied nor failed. */
uint64_t bench_report_allowed(const struct bench_result *total);

void bench_report_text(const struct bench_plan *plan, const struct bench_labels *labels,
                       const struct bench_summary *summary);

/* Errors: WEIR_ERR_SYNTAX (a label is not UTF-8), WEIR_ERR_MEMORY. */
int bench_report_json(const struct bench_plan *plan, const struct bench_labels *labels,
                      const struct bench_summary *summary) __attribute__((warn_unused_result));

#endif
