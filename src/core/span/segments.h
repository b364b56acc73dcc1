/* SPDX-License-Identifier: Apache-2.0 */
/* sliding_window with S > 1 segments of w = W/S (Figma, 2017, with S = 60).
 *
 * The state is a ring of S + 1 counters, that of segment s in slot s mod (S + 1):
 *
 *   word 0       the index a of the newest segment that was charged, floor(t / w)
 *   word 1       sum | stored << 56: the counters of segments a - stored + 1 .. a are in the
 *                ring, and sum is their sum; what the other slots hold means nothing
 *   word 2..     counters of 32 bits, two a word
 *
 * So a key that was idle for longer than W writes three words, and only a key that skips some but
 * not all of its segments has counters to zero. A decision looks at the segments that have left the
 * window since the last charge, not at all of them. Counters saturate at 2^32 - 1.
 *
 * Memory: 16 + 4 * (S + 1) bytes, rounded up to 8. Edits of a charge: at most 2 + (S + 2) / 2 = 63.
 * A time before segment a is taken for its start.
 */
#ifndef WEIR_CORE_SPAN_SEGMENTS_H
#define WEIR_CORE_SPAN_SEGMENTS_H

#include "core/span/span_change.h"

#define SEGMENTS_HEADER_WORDS 2

static inline uint32_t segments_words(const struct weir_limit *limit)
{
    return SEGMENTS_HEADER_WORDS + (limit->spec.segments + 2) / 2;
}

bool segments_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                   uint64_t cost);
void segments_charge(const struct weir_limit *limit, const struct span_change *change,
                     const struct weir_use *use);
void segments_refund(const struct weir_limit *limit, const struct span_change *change,
                     const struct weir_use *use);
void segments_report(const struct weir_limit *limit, const struct span_view *span,
                     const struct weir_use *use, struct weir_report *report);
bool segments_valid(const struct weir_limit *limit, const struct span_view *span);
uint64_t segments_fresh_at(const struct weir_limit *limit, const struct span_view *span);

#endif
