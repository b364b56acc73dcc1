/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of spans: states of more than 12 bytes, inside the region.
 *
 * Pages of 4 KiB are cut into spans of one size class (2, 3, 4, 6, 8, 12 ... 512 words; see
 * heap.c), or, for what is larger, join to a run of pages. A page without spans becomes free again,
 * so that memory moves from one class to another. A bitmap outside of the page says which of its
 * spans are taken: only the owner that allocates a span writes into it while it is free.
 *
 * Every change goes through the undo journal of the transaction that it belongs to. The caller
 * holds the heap's lock from its first allocation or release to the end of that transaction. No
 * owner may write to a released span before the transaction is finished; transactions therefore
 * release last (transaction.c).
 *
 * Before every span is one word of the heap's own: the slot that owns it (bucket << 3 | slot, or
 * SPAN_UNOWNED), so that a walk over pages finds states that may go, or move. It is a hint: only a
 * slot that names the span owns it.
 *
 * Cost: a step or two with the hints; at worst a walk over the pages, and no walk when the counters
 * say that nothing is free. */
#ifndef WEIR_TABLE_SPAN_HEAP_H
#define WEIR_TABLE_SPAN_HEAP_H

#include "core/span/span_change.h"
#include "table/region.h"

#define SPAN_UNOWNED UINT64_MAX

/* The size that a span of at least `words` words gets, in words. */
uint32_t heap_round(uint32_t words);

/* The bytes that a span of at least `words` takes from its pages, with its part of what is left
 * over in each. */
uint64_t heap_bytes(uint32_t words);

/* Allocates a span of heap_round(words) words, of which `words` are zero. Returns its offset, or 0
 * when there is no room (or owner->unsaved). */
uint64_t heap_take(struct weir_table_owner *owner, uint32_t words);

/* Releases a span; ignores an offset that is not a span (of a damaged file). */
void heap_give(struct weir_table_owner *owner, uint64_t offset);

/* Notes that pages may have become free: by heap_give, or because a transaction was undone. */
void heap_note_free(struct weir_table *table);

/* The words of an allocated span; NULL: `offset` is not a span of at least `words` words. Needs no
 * lock for a span that cannot be released meanwhile. */
uint64_t *heap_span(const struct weir_table *table, uint64_t offset, uint32_t words);

/* The size of an allocated span in words; 0: the offset is not a span. */
uint32_t heap_words(const struct weir_table *table, uint64_t offset);

/* The span of a state of this limit. `at` is NULL: the offset is not a span, or the span is smaller
 * than the state says, which happens only in a file that was damaged while in use. */
struct span_view heap_state(const struct weir_table *table, const struct weir_limit *limit,
                            uint64_t offset);

/* The word that names the slot which owns a span. */
static inline uint64_t *heap_owner_of(const struct weir_table *table, uint64_t offset)
{
    return (uint64_t *)(void *)(table->base + offset);
}

/* Allocates as large a span as the one at `offset`, in another page, all of it zero. Returns its
 * offset, or 0 when there is no room. */
uint64_t heap_take_remote(struct weir_table_owner *owner, uint64_t offset);

/* The first span of a page (of a run: the run) from its `*i`-th on, which moves behind it. Returns
 * its offset; 0: there is none. The caller holds the heap's lock. */
uint64_t heap_next_in(const struct weir_table *table, uint64_t page, uint32_t *i);

/* Whole pages that a span of `words` words takes; 0: it shares a page. */
uint32_t heap_run(uint32_t words);

/* Whether heap_take would find room, at this moment. */
bool heap_has_room(const struct weir_table *table, uint32_t words);

/* Bytes that are taken, at this moment. */
uint64_t heap_used(const struct weir_table *table);

/* Spans that are taken; at rest only. */
uint64_t heap_spans(const struct weir_table *table);

/* Makes the counters of a new region. */
void heap_format(struct weir_table *table);

/* Whether pages and counters agree with each other. */
bool heap_consistent(const struct weir_table *table);

#endif
