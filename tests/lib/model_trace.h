/* SPDX-License-Identifier: Apache-2.0 */
/* Random traces: the core beside its model, one operation after the other.
 *
 * Every operation compares the verdict and the delay, and then every figure of the report by asking
 * the model: `remaining` is admitted and remaining + 1 is not; the cost is admitted at t + retry
 * and denied one nanosecond before; the state is fresh at t + reset and not one nanosecond before.
 * The same seed makes the same trace.
 */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include <weir/limit.h>

struct model_trace {
    enum weir_algorithm algorithm;
    bool segments;       /* sliding_window only: S > 1 instead of 1 */
    uint64_t operations; /* how many to run, over many random limits */
    uint64_t seed;
};

/* Returns true, or false with a description of the first difference on stderr. */
bool model_trace_run(const struct model_trace *trace);

/* How much of each kind the last run saw, so that a test can insist that none was missed. */
struct model_trace_counts {
    uint64_t limits, operations, allowed, denied, never, finite_retry, delays, backwards, packed,
        converted, resized, scaled, most_edits; /* most_edits: of one charge */
};
extern struct model_trace_counts model_trace_counts;

#endif
