/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of drops, as the filter puts them into its ring buffer. One reader gets each sample.
 * Where none reads, the buffer fills and later samples are lost; the counters are not.
 *
 * Threads: the caller's.
 */
#ifndef WEIR_FEATURE_XDP_SAMPLES_H
#define WEIR_FEATURE_XDP_SAMPLES_H

#include "feature/xdp/attach.h"

typedef void (*weir_xdp_sample_fn)(void *context, const struct xdp_sample *sample);

/* Gives `take` every sample that comes within `wait_ms` (0..86,400,000), and those that wait
 * already. Errors: WEIR_ERR_IO with a reason. */
int weir_xdp_samples(const struct weir_xdp_running *running, uint32_t wait_ms,
                     weir_xdp_sample_fn take, void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
