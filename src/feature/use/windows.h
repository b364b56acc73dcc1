/* SPDX-License-Identifier: Apache-2.0 */
/* Heavy hitters of the last minute, hour and day, from batches that come every second or so.
 *
 *   batch ─▶ 10 s ─▶ 6 of these: the minute
 *              └▶ when it ends: 5 min, 12 of these: the hour;  1 h, 24 of these: the day
 *
 * A window is the slots that are full and the one that is being filled, so it covers up to one slot
 * more than its name: the minute 60 to 70 s, the hour 60 to 65 min, the day 24 to 25 h.
 *
 * Stated error: that of heavy.h, with W the weight of the whole window.
 *
 * Memory: WEIR_WINDOW_SLOTS summaries of `room` items, touched as they fill: about 16 MiB with room
 * for 1,024.
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_USE_WINDOWS_H
#define WEIR_FEATURE_USE_WINDOWS_H

#include "feature/use/heavy.h"

enum weir_window { WEIR_WINDOW_MINUTE, WEIR_WINDOW_HOUR, WEIR_WINDOW_DAY, WEIR_WINDOWS };

#define WEIR_WINDOW_SLOTS (7 + 13 + 25)

struct weir_windows;

/* Errors: WEIR_ERR_MEMORY. */
int weir_windows_open(struct weir_windows **windows, uint32_t room)
    __attribute__((warn_unused_result));
void weir_windows_close(struct weir_windows *windows);

/* Adds a batch that ended at `now_ns`, which does not go back. Errors: WEIR_ERR_MEMORY (a part of
 * the batch may be lost). */
int weir_windows_add(struct weir_windows *windows, const struct weir_heavy *batch, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* Makes `out` the summary of a window that ends at `now_ns`. Errors: WEIR_ERR_MEMORY. */
int weir_windows_read(struct weir_windows *windows, enum weir_window window, uint64_t now_ns,
                      struct weir_heavy *out) __attribute__((warn_unused_result));

#endif
