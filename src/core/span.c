/* SPDX-License-Identifier: Apache-2.0 */
/* see span.h, and weir/limit.h, "States in a span": dispatches on the algorithm; and weir_decide */
#include "core/span.h"
#include "core/cell.h"
#include "core/concurrency.h"
#include "core/expiry_list.h"
#include "core/log.h"
#include "core/segments.h"

static struct span_change begin(const struct span_view *span, struct weir_edits *edits)
{
    edits->count = 0;
    return (struct span_change){*span, edits};
}

bool span_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_test(limit, span, now_ns, cost);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_test(limit, span, now_ns, cost);
    return concurrency_test(limit, span, now_ns, cost);
}

bool weir_span_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost)
{
    const struct span_view view = span_trusted(limit, span);

    return span_test(limit, &view, now_ns, cost);
}

static void charge(const struct weir_limit *limit, const struct span_change *change,
                   const struct weir_use *use)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_charge(limit, change, use);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_charge(limit, change, use);
    else
        concurrency_charge(limit, change, use);
}

void span_charge_in_place(const struct weir_limit *limit, const struct span_view *span,
                          const struct weir_use *use)
{
    const struct span_change change = {.span = *span};

    charge(limit, &change, use);
}

void span_charge(const struct weir_limit *limit, const struct span_view *span,
                 const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = begin(span, edits);

    charge(limit, &change, use);
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

    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_refund(limit, &change, use);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_refund(limit, &change, use);
    else
        concurrency_refund(limit, &change, use);
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
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_report(limit, span, use, report);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_report(limit, span, use, report);
    else
        expiry_list_report(limit, span, use, report);
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
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_fresh_at(limit, span);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_fresh_at(limit, span);
    return expiry_list_fresh_at(limit, span);
}

uint64_t weir_span_fresh_at(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view view = span_trusted(limit, span);

    return span_fresh_at(limit, &view);
}

bool span_valid(const struct weir_limit *limit, const struct span_view *span)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_valid(limit, span);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_valid(limit, span);
    return expiry_list_valid(limit, span);
}

bool weir_span_valid(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view view = span_trusted(limit, span);

    return span_valid(limit, &view);
}

uint32_t span_words(const struct weir_limit *limit, const struct span_view *span)
{
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_span_words(limit, span);
    if (limit->spec.algorithm == WEIR_CONCURRENCY)
        return expiry_list_span_words(limit, span);
    return limit->span_words;
}

uint32_t weir_span_words(const struct weir_limit *limit, const uint64_t *span)
{
    const struct span_view header = {(uint64_t *)(uintptr_t)span, SPAN_HEADER_WORDS};

    return span_words(limit, &header);
}

bool span_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
               uint64_t cost, uint32_t count)
{
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_fits(limit, span, now_ns, cost);
    if (limit->spec.algorithm == WEIR_CONCURRENCY)
        return expiry_list_fit(limit, span, now_ns, cost > 0 ? count : 0);
    return true;
}

bool weir_span_fits(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost, uint32_t count)
{
    const struct span_view view = span_trusted(limit, span);

    return span_fits(limit, &view, now_ns, cost, count);
}

static void copy_segments(const struct weir_span_source *source, const struct weir_limit *to,
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
    struct weir_span_source known;

    if (to->spec.algorithm == WEIR_SLIDING_LOG)
        return log_needs(span_source(source, to, &known), to, cost);
    if (to->spec.algorithm == WEIR_CONCURRENCY)
        return expiry_list_need(span_source(source, to, &known), to, cost > 0 ? count : 0);
    return to->span_words;
}

uint32_t span_full_words(const struct weir_limit *limit)
{
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_needs(NULL, limit, 0) > LOG_HEADER_WORDS + log_events_max(limit)
                   ? log_needs(NULL, limit, 0)
                   : LOG_HEADER_WORDS + log_events_max(limit);
    if (limit->spec.algorithm == WEIR_CONCURRENCY)
        return expiry_list_need(NULL, limit, (uint32_t)limit->spec.rate);
    return limit->span_words;
}

void weir_span_resize(const struct weir_span_source *source, const struct weir_limit *to,
                      uint64_t *out, uint32_t words)
{
    uint32_t whole = words > 0 ? words : to->span_words;
    const struct weir_span_source fresh = {to, out, 0, whole};
    struct weir_span_source known;

    for (uint32_t i = 0; i < whole; i++)
        out[i] = 0;
    source = span_source(source, to, &known);
    if (to->spec.algorithm == WEIR_SLIDING_LOG)
        log_resize(source ? source : &fresh, to, out, words);
    else if (to->spec.algorithm == WEIR_CONCURRENCY)
        expiry_list_resize(source ? source : &fresh, to, out, words);
    else if (source) /* only N differs: the counters stay */
        copy_segments(source, to, out);
}

void weir_span_convert(const struct weir_limit *from, const uint64_t *span,
                       const struct weir_limit *to, uint64_t *out)
{
    const struct weir_span_source source = {.limit = from, .span = span};

    weir_span_resize(&source, to, out, 0);
}

void weir_span_compact(const struct weir_limit *limit, uint64_t *span, uint64_t now_ns)
{
    const struct span_view view = span_trusted(limit, span);

    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_compact(limit, &view, now_ns);
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
    bool allowed = weir_span_test(limit, span, use->now_ns, use->cost);

    if (allowed) {
        if (!weir_span_fits(limit, span, use->now_ns, use->cost, 1))
            weir_span_compact(limit, span, use->now_ns);
        span_charge_in_place(limit, &view, use);
    }
    if (report)
        weir_span_report(limit, span, use, allowed, report);
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
