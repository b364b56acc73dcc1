/* SPDX-License-Identifier: Apache-2.0 */
/* see span.h, and weir/limit.h, "States in a span": calls what algorithm.h has; and weir_decide */
#include "core/span/span.h"

#include "core/algorithm.h"
#include "core/cell.h"
#include "core/span/concurrency.h"

static const struct span_algorithm *span_algorithm(const struct weir_limit *limit)
{
    return algorithm_of(limit)->span;
}

static struct span_change begin(const struct span_view *span, struct weir_edits *edits)
{
    edits->count = 0;
    return (struct span_change){*span, edits};
}

bool span_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost)
{
    return span_algorithm(limit)->test(limit, span, now_ns, cost);
}

bool weir_span_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost)
{
    const struct span_view view = span_trusted(limit, span);

    return span_test(limit, &view, now_ns, cost);
}

void span_charge_in_place(const struct weir_limit *limit, const struct span_view *span,
                          const struct weir_use *use)
{
    const struct span_change change = {.span = *span};

    span_algorithm(limit)->charge(limit, &change, use);
}

void span_charge(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    span_algorithm(limit)->charge(limit, &change, use);
}

void weir_span_charge(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    span_charge(limit, &view, use, edits);
}

void span_refund(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    algorithm_upkeep(limit)->span->refund(limit, &change, use);
}

void weir_span_refund(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    span_refund(limit, &view, use, edits);
}

uint32_t span_release(const struct weir_limit *limit, const struct span_view *span,
                      uint64_t lease_id, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    return concurrency_release(limit, &change, lease_id);
}

uint32_t weir_span_release(const struct weir_limit *limit, const uint64_t *span, uint64_t lease_id,
                           struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    return span_release(limit, &view, lease_id, edits);
}

uint32_t span_end_owner(const struct weir_limit *limit, const struct span_view *span,
                        uint64_t owner, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    return concurrency_end_owner(limit, &change, owner);
}

uint32_t weir_span_end_owner(const struct weir_limit *limit, const uint64_t *span, uint64_t owner,
                             struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    return span_end_owner(limit, &view, owner, edits);
}

uint32_t span_end_dead(const struct weir_limit *limit, const struct span_view *span,
                       const struct weir_lease_owners *alive, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    return concurrency_end_dead(limit, &change, alive);
}

uint32_t weir_span_end_dead(const struct weir_limit *limit, const uint64_t *span,
                            const struct weir_lease_owners *alive, struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    return span_end_dead(limit, &view, alive, edits);
}

uint32_t span_renew(const struct weir_limit *limit, const struct span_view *span,
                    const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    return concurrency_renew(limit, &change, use);
}

uint32_t weir_span_renew(const struct weir_limit *limit, const uint64_t *span,
                         const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_view view = span_trusted(limit, span);

    return span_renew(limit, &view, use, edits);
}

void span_report(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, bool allowed, struct weir_report *report)
{
    span_algorithm(limit)->report(limit, span, use, report);
    if (allowed)
        report->retry_after_ns = 0;
}

void weir_span_report(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, bool allowed, struct weir_report *report)
{
    const struct span_view view = span_trusted(limit, span);

    span_report(limit, &view, use, allowed, report);
}

uint64_t span_fresh_at(const struct weir_limit *limit, const struct span_view *span)
{
    return algorithm_upkeep(limit)->span->fresh_at(limit, span);
}

uint64_t weir_span_fresh_at(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view view = span_trusted(limit, span);

    return span_fresh_at(limit, &view);
}

bool span_valid(const struct weir_limit *limit, const struct span_view *span)
{
    return algorithm_upkeep(limit)->span->valid(limit, span);
}

bool weir_span_valid(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view view = span_trusted(limit, span);

    return span_valid(limit, &view);
}

uint32_t span_words(const struct weir_limit *limit, const struct span_view *span)
{
    const struct span_algorithm *algorithm = span_algorithm(limit);

    return algorithm->words ? algorithm->words(limit, span) : limit->span_words;
}

uint32_t weir_span_words(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view header = {(uint64_t *)(uintptr_t)span, SPAN_HEADER_WORDS};

    return span_words(limit, &header);
}

bool span_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost, uint32_t count)
{
    const struct span_algorithm *algorithm = span_algorithm(limit);

    return !algorithm->fits || algorithm->fits(limit, span, now_ns, cost, count);
}

bool weir_span_fits(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost, uint32_t count)
{
    const struct span_view view = span_trusted(limit, span);

    return span_fits(limit, &view, now_ns, cost, count);
}

static void copy_words(const struct weir_span_source *source, const struct weir_limit *to,
                       uint64_t *out)
{
    const struct span_view from = span_of_source(source);

    for (uint32_t i = 0; i < to->span_words; i++)
        out[i] = span_word(&from, i);
}

/* Into `known`, with its words. NULL: a state that means nothing under `to` is none. */
static const struct weir_span_source *span_source(const struct weir_span_source *source,
                                                  const struct weir_limit *to,
                                                  struct weir_span_source *known)
{
    if (!source || !weir_limit_converts(source->limit, to))
        return NULL;
    *known = *source;
    if (known->words == 0)
        known->words = weir_span_words(known->limit, known->span);
    return known;
}

uint32_t weir_span_needs(const struct weir_span_source *source, const struct weir_limit *to,
                         uint64_t cost, uint32_t count)
{
    const struct span_upkeep *upkeep = algorithm_upkeep(to)->span;
    struct weir_span_source known;

    return upkeep->needs ? upkeep->needs(span_source(source, to, &known), to, cost, count)
                         : to->span_words;
}

uint32_t span_full_words(const struct weir_limit *limit)
{
    const struct span_upkeep *upkeep = algorithm_upkeep(limit)->span;

    return limit->span_words > 0 && upkeep->full_words ? upkeep->full_words(limit)
                                                       : limit->span_words;
}

void weir_span_resize(const struct weir_span_source *source, const struct weir_limit *to,
                      uint64_t *out, uint32_t words)
{
    const struct span_upkeep *upkeep = algorithm_upkeep(to)->span;
    uint32_t whole = words > 0 ? words : to->span_words;
    const struct weir_span_source fresh = {to, out, 0, whole};
    struct weir_span_source known;

    for (uint32_t i = 0; i < whole; i++)
        out[i] = 0;
    source = span_source(source, to, &known);
    if (upkeep->resize)
        upkeep->resize(source ? source : &fresh, to, out, words);
    else if (source) /* only N differs: the counters stay */
        copy_words(source, to, out);
}

void weir_span_convert(const struct weir_limit *from, const uint64_t *span,
                       const struct weir_limit *to, uint64_t *out)
{
    const struct weir_span_source source = {.limit = from, .span = span};

    weir_span_resize(&source, to, out, 0);
}

static void compact(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns)
{
    if (span_algorithm(limit)->compact)
        span_algorithm(limit)->compact(limit, span, now_ns);
}

void weir_span_compact(const struct weir_limit *limit, uint64_t *span, uint64_t now_ns)
{
    const struct span_view view = span_trusted(limit, span);

    compact(limit, &view, now_ns);
}

void weir_edits_apply(const struct weir_edits *edits, uint64_t *span)
{
    for (uint32_t i = 0; i < edits->count; i++)
        span[edits->word[i]] = edits->value[i];
}

/* --- Any state: a span, or a cell ------------------------------------------------------------- */

static bool decide_span(const struct weir_limit *limit, uint64_t *span, const struct weir_use *use,
                        struct weir_report *report)
{
    const struct span_view view = span_trusted(limit, span);
    bool allowed = span_test(limit, &view, use->now_ns, use->cost);

    if (allowed) {
        if (!span_fits(limit, &view, use->now_ns, use->cost, 1))
            compact(limit, &view, use->now_ns);
        span_charge_in_place(limit, &view, use);
    }
    if (report)
        span_report(limit, &view, use, allowed, report);
    return allowed;
}

bool weir_decide(const struct weir_limit *limit, void *state, const struct weir_use *use,
                 struct weir_report *report, uint64_t *delay_ns)
{
    uint64_t delay = 0;
    bool allowed;

    if (limit->span_words != 0) {
        allowed = decide_span(limit, state, use, report);
    } else {
        struct weir_cell *cell = state;

        allowed = cell_test(limit, cell, use->now_ns, use->cost, &delay);
        if (allowed)
            cell_charge(limit, cell, use->now_ns, use->cost);
        if (report)
            weir_cell_report(limit, cell, use, allowed, report);
    }
    if (delay_ns)
        *delay_ns = delay;
    return allowed;
}
