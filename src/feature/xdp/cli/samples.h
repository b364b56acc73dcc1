/* SPDX-License-Identifier: Apache-2.0 */
/* `weir xdp top`: the sources of which most samples of drops came in an interval.
 *
 * A table of XDP_TOP_MAX entries, searched in order; what finds no place in it is counted.
 */
#ifndef WEIR_FEATURE_XDP_CLI_SAMPLES_H
#define WEIR_FEATURE_XDP_CLI_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "feature/xdp/filter.h"

#define XDP_TOP_MAX 512

struct xdp_top_entry {
    struct xdp_sample sample; /* the last one */
    uint64_t samples;
};

struct xdp_top {
    struct xdp_top_entry entries[XDP_TOP_MAX];
    size_t count;
    uint64_t others; /* samples without a place */
};

void xdp_top_add(struct xdp_top *top, const struct xdp_sample *sample);

/* Prints the `most` entries with most samples, scaled to packets, and empties the table. */
void xdp_top_print(struct xdp_top *top, const struct xdp_filter *filter, const char *const *reasons,
                   size_t most);

#endif
