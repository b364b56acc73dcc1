/* SPDX-License-Identifier: Apache-2.0 */
/* see scale_history.h */
#include "feature/adaptive/scale_history.h"

#include <string.h>

/* Advances to `slice`; what lies between had the scale of before. */
static void advance(struct weir_scale_history *history, uint64_t slice)
{
    if (history->slice == 0 || slice - history->slice >= WEIR_SCALE_SLICES) {
        memset(history->percent, history->latest, sizeof history->percent);
        history->slice = slice;
    }
    while (history->slice < slice) {
        history->slice++;
        history->percent[history->slice % WEIR_SCALE_SLICES] = history->latest;
    }
}

void weir_scale_history_note(struct weir_scale_history *history, uint64_t now_ns, uint8_t percent)
{
    uint64_t slice = now_ns / WEIR_SCALE_SLICE_NS;

    if (slice > history->slice) {
        advance(history, slice);
        history->percent[slice % WEIR_SCALE_SLICES] = 0;
    }

    uint8_t *lowest = &history->percent[history->slice % WEIR_SCALE_SLICES];

    if (*lowest == 0 || percent < *lowest)
        *lowest = percent;
    history->latest = percent;
}

uint8_t weir_scale_history_at(const struct weir_scale_history *history, uint32_t age)
{
    if (age >= WEIR_SCALE_SLICES || age > history->slice)
        return 0;
    return history->percent[(history->slice - age) % WEIR_SCALE_SLICES];
}
