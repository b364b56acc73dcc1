/* SPDX-License-Identifier: Apache-2.0 */
/* The lowest scale of each ten seconds of the last hour: for metrics, the admin API and `weir top`.
 *
 * Memory: 376 bytes. Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_SCALE_HISTORY_H
#define WEIR_FEATURE_ADAPTIVE_SCALE_HISTORY_H

#include <stdint.h>

#define WEIR_SCALE_SLICES 360
#define WEIR_SCALE_SLICE_NS UINT64_C(10000000000)

struct weir_scale_history {
    uint64_t slice;                     /* the newest: time / WEIR_SCALE_SLICE_NS */
    uint8_t percent[WEIR_SCALE_SLICES]; /* of slice n at n % WEIR_SCALE_SLICES; 0: not known */
    uint8_t latest;                     /* the scale noted last */
};

/* Notes the scale that holds at a time. Slices without a note keep the scale noted before. */
void weir_scale_history_note(struct weir_scale_history *history, uint64_t now_ns, uint8_t percent);

/* The lowest scale of the slice that ended `age` slices before the newest; 0: not known. */
uint8_t weir_scale_history_at(const struct weir_scale_history *history, uint32_t age);

#endif
