/* SPDX-License-Identifier: Apache-2.0 */
/* see filter.h */
#include "feature/kernel/server/filter.h"

#ifdef WEIR_WITH_XDP

#include "feature/xdp/attach.h"

_Static_assert(XDP_REASON_COUNT <= WEIR_KERNEL_FILTER_REASONS_MAX, "every reason has a place");

bool weir_kernel_filter_read(const char *interface,
                             struct weir_kernel_filter_count counts[WEIR_KERNEL_FILTER_REASONS_MAX],
                             size_t *count)
{
    const struct weir_xdp_place place = {WEIR_XDP_PINS, interface};
    struct weir_reason reason = {{0}};
    struct weir_xdp_running running;
    struct xdp_count of_reasons[XDP_COUNTS];

    *count = 0;
    if (weir_xdp_running_open(&running, &place, &reason) < 0)
        return false;
    if (!running.orphaned && weir_xdp_counts(&running, of_reasons, &reason) == 0)
        *count = XDP_REASON_COUNT;
    weir_xdp_running_close(&running);
    for (size_t i = 0; i < *count; i++)
        counts[i] = (struct weir_kernel_filter_count){weir_xdp_reason_names[i],
                                                      of_reasons[i].packets, of_reasons[i].bytes};
    return *count > 0;
}

#else

bool weir_kernel_filter_read(const char *interface,
                             struct weir_kernel_filter_count counts[WEIR_KERNEL_FILTER_REASONS_MAX],
                             size_t *count)
{
    (void)interface;
    (void)counts;
    *count = 0;
    return false;
}

#endif
