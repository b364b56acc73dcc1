/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a span: into a list of edits that a store journals before it applies them, or, for a
 * state in plain memory, at once. Reads see what was written before through the same change, so an
 * algorithm is written once, as if it wrote in place. */
#ifndef WEIR_CORE_SPAN_CHANGE_H
#define WEIR_CORE_SPAN_CHANGE_H

#include <stddef.h>

#include <weir/limit.h>

struct span_change {
    const uint64_t *span;
    struct weir_edits *edits; /* NULL: write to `plain`, which is then the same as `span` */
    uint64_t *plain;
};

static inline uint64_t span_read(const struct span_change *change, uint32_t word)
{
    if (change->edits) {
        for (uint32_t i = 0; i < change->edits->count; i++)
            if (change->edits->word[i] == word)
                return change->edits->value[i];
    }
    return change->span[word];
}

/* The callers see to it that a change has at most WEIR_EDITS_MAX different words. */
static inline void span_write(const struct span_change *change, uint32_t word, uint64_t value)
{
    struct weir_edits *edits = change->edits;

    if (!edits) {
        change->plain[word] = value;
        return;
    }
    for (uint32_t i = 0; i < edits->count; i++) {
        if (edits->word[i] == word) {
            edits->value[i] = value;
            return;
        }
    }
    edits->word[edits->count] = word;
    edits->value[edits->count] = value;
    edits->count++;
}

#endif
