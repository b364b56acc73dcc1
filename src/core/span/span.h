/* SPDX-License-Identifier: Apache-2.0 */
/* The weir_span_* functions of weir/limit.h for a state that others may have written: no word
 * beyond those of the view is read or written, whatever the state says. A state that contradicts
 * itself counts as fresh, or as what its sums say until all of it has expired. */
#ifndef WEIR_CORE_SPAN_SPAN_H
#define WEIR_CORE_SPAN_SPAN_H

#include "core/span/span_change.h"

/* The words of every state that say how large it is. */
#define SPAN_HEADER_WORDS 2

/* A state in memory of this process only: it is as large as it says. (Inline: the BPF backend
 * returns no structs.) */
static inline struct span_view span_trusted(const struct weir_limit *limit, const uint64_t *span)
{
    return (struct span_view){(uint64_t *)(uintptr_t)span, weir_span_words(limit, span)};
}

/* A source whose `words` are known, as span.c hands it on. */
static inline struct span_view span_of_source(const struct weir_span_source *source)
{
    return (struct span_view){(uint64_t *)(uintptr_t)source->span, source->words};
}

bool span_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost);
void span_charge(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, struct weir_edits *edits);
void span_charge_in_place(const struct weir_limit *limit, const struct span_view *span,
                          const struct weir_use *use);
void span_refund(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, struct weir_edits *edits);
uint32_t span_release(const struct weir_limit *limit, const struct span_view *span,
                      uint64_t lease_id, struct weir_edits *edits);
uint32_t span_end_owner(const struct weir_limit *limit, const struct span_view *span,
                        uint64_t owner, struct weir_edits *edits);
uint32_t span_end_dead(const struct weir_limit *limit, const struct span_view *span,
                       const struct weir_lease_owners *alive, struct weir_edits *edits);
uint32_t span_renew(const struct weir_limit *limit, const struct span_view *span,
                    const struct weir_use *use, struct weir_edits *edits);
void span_report(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, bool allowed, struct weir_report *report);
uint64_t span_fresh_at(const struct weir_limit *limit, const struct span_view *span);
bool span_valid(const struct weir_limit *limit, const struct span_view *span);
uint32_t span_words(const struct weir_limit *limit, const struct span_view *span);
bool span_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost, uint32_t count);

/* Words of a state whose limit is used up by requests of cost 1; 0: it needs no span. */
uint32_t span_full_words(const struct weir_limit *limit);

#endif
