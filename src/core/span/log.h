/* SPDX-License-Identifier: Apache-2.0 */
/* sliding_log: the admissions in (t - W, t], each with its time and cost, in a ring of words.
 *
 *   word 0       head | used << 16 | room << 32 | events << 48: the ring has `room` words; `used`
 * of them, from `head` on and round about, are taken by `events` events. A room of 0 means that the
 * span has all of limit->span_words word 1       the sum of the costs | dead << 48: `dead` words of
 * those used count nothing word 2..     the ring: oldest event first
 *
 *   bits 63, 62 of each word in the ring
 *     0 0        the time of an event, in ns; its cost is 1 unless a cost follows
 *     1 0        the cost (32 bits, saturating) of the event whose time is in the word before
 *     1 1        dead: left by a refund from the middle. It goes when its turn comes, or when the
 *                state is written anew (log_resize, log_compact)
 *
 * So an event takes 8 bytes where its cost is 1, and else 16. The first and the last word used are
 * never dead.
 *
 * Costs of one time merge, and there are never more than N events: an admitted cost is at least 1,
 * so only debits can find the log full, and they then join the newest event, which moves to their
 * time. Where the ring has no word left (log_fits), the newest events do the same: nothing is
 * forgotten, and nothing expires early. A time before the newest event is taken for its.
 *
 * In a file that is shared, another process may have written any of this. A header whose numbers
 * contradict each other, or the words that the span has, is an empty log, as is one whose live
 * events are not where it says.
 *
 * Memory: 16 bytes and the words used; 16 * N + 16 bytes are always enough. Edits of a charge: at
 * most 4, of a refund 4.
 */
#ifndef WEIR_CORE_SPAN_LOG_H
#define WEIR_CORE_SPAN_LOG_H

#include "core/span/span_change.h"

#define LOG_HEADER_WORDS 2
#define LOG_ROOM_MIN 2 /* words of the smallest ring: an event of any cost */

/* N, but a limit of N = 0 has room for one event, for debits. */
static inline uint32_t log_events_max(const struct weir_limit *limit)
{
    return limit->spec.rate > 0 ? (uint32_t)limit->spec.rate : 1;
}

/* Words that are enough for every state. */
static inline uint32_t log_words(const struct weir_limit *limit)
{
    return LOG_HEADER_WORDS + 2 * log_events_max(limit);
}

bool log_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost);
void log_charge(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use);
void log_refund(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use);
void log_report(const struct weir_limit *limit, const struct span_view *span,
                const struct weir_use *use, struct weir_report *report);
uint64_t log_fresh_at(const struct weir_limit *limit, const struct span_view *span);
bool log_valid(const struct weir_limit *limit, const struct span_view *span);

/* See weir_span_words, weir_span_fits, weir_span_needs and weir_span_resize. */
uint32_t log_span_words(const struct weir_limit *limit, const struct span_view *span);
bool log_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost, uint32_t count);
uint32_t log_needs(const struct weir_span_source *source, const struct weir_limit *to,
                   uint64_t cost, uint32_t count);
void log_resize(const struct weir_span_source *source, const struct weir_limit *to, uint64_t *out,
                uint32_t words);

/* Drops what is dead or expired from a state in plain memory, in place. */
void log_compact(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns);

/* What WEIR_OP_LOOK with this cost says of a log that is not fresh: see enum weir_look. */
void log_look(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost, struct weir_report *report);

/* Compiles what is a log's own of a limit: see struct algorithm_row. */
int log_init(struct weir_limit *limit, struct weir_reason *reason);

/* Words of a log that events of cost 1 have used up. */
uint32_t log_full_words(const struct weir_limit *limit);

#endif
