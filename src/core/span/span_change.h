/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a span, and writing to one: into a list of edits that a store journals before it applies
 * them, or, for a state in plain memory, at once. Reads see what was written before through the
 * same change, so an algorithm is written once, as if it wrote in place.
 *
 * A span may lie in a file that others can write anything into, at any time. So the words are
 * counted by those that are allocated, not by what the state says: a read beyond them finds 0, and
 * a write beyond them is dropped. The algorithms bound their loops by the same count. */
#ifndef WEIR_CORE_SPAN_SPAN_CHANGE_H
#define WEIR_CORE_SPAN_SPAN_CHANGE_H

#include <stddef.h>

#include <weir/limit.h>

/* The memory of a state. `at` is NULL, and `words` 0, for a damaged one; it reads as fresh. */
struct span_view {
    uint64_t *at;
    uint32_t words;
};

struct span_change {
    struct span_view span;
    struct weir_edits *edits; /* NULL: write in place */
};

/* Volatile: a number that was checked is not read a second time. */
static inline uint64_t span_word(const struct span_view *span, uint32_t word)
{
    return word < span->words ? *(const volatile uint64_t *)&span->at[word] : 0;
}

static inline uint64_t span_read(const struct span_change *change, uint32_t word)
{
    if (change->edits) {
        for (uint32_t i = 0; i < change->edits->count; i++)
            if (change->edits->word[i] == word)
                return change->edits->value[i];
    }
    return span_word(&change->span, word);
}

/* The callers see to it that a change has at most WEIR_EDITS_MAX different words; of a damaged
 * state the rest is dropped. */
static inline void span_write(const struct span_change *change, uint32_t word, uint64_t value)
{
    struct weir_edits *edits = change->edits;

    if (word >= change->span.words)
        return;
    if (!edits) {
        change->span.at[word] = value;
        return;
    }
    for (uint32_t i = 0; i < edits->count; i++) {
        if (edits->word[i] == word) {
            edits->value[i] = value;
            return;
        }
    }
    if (edits->count == WEIR_EDITS_MAX)
        return;
    edits->word[edits->count] = word;
    edits->value[edits->count] = value;
    edits->count++;
}

/* a - b; 0 where a sum of a damaged state is less than its parts. */
static inline uint64_t span_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
