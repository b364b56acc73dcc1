/* SPDX-License-Identifier: Apache-2.0 */
/* What the filter for packets (weir xdp) on an interface has counted. The server only reads it: the
 * filter belongs to `weir xdp attach`, which pins it where root alone may look.
 *
 * Threads: any.
 */
#ifndef WEIR_FEATURE_KERNEL_SERVER_FILTER_H
#define WEIR_FEATURE_KERNEL_SERVER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_KERNEL_FILTER_REASONS_MAX 16

struct weir_kernel_filter_count {
    const char *reason; /* as `weir xdp status` names it; static */
    uint64_t packets, bytes;
};

/* Fills `counts` and *count, one for each reason. False: there is no filter, it may not be read, or
 * this program was built without it. A few system calls, none of which waits. */
bool weir_kernel_filter_read(const char *interface,
                             struct weir_kernel_filter_count counts[WEIR_KERNEL_FILTER_REASONS_MAX],
                             size_t *count);

#endif
