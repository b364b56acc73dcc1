/* see weir/limit.h, "States in a span": dispatches on the algorithm */
#include "core/span.h"
#include "core/concurrency.h"
#include "core/entries.h"
#include "core/log.h"
#include "core/segments.h"

bool weir_span_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_test(limit, span, now_ns, cost);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        return log_test(limit, span, now_ns, cost);
    return concurrency_test(limit, span, now_ns, cost);
}

void span_charge(const struct weir_limit *limit, const struct span_change *change,
                 const struct weir_use *use)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_charge(limit, change, use);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_charge(limit, change, use);
    else
        concurrency_charge(limit, change, use);
}

void weir_span_charge(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = {.span = span, .edits = edits};

    edits->count = 0;
    span_charge(limit, &change, use);
}

void weir_span_refund(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits)
{
    const struct span_change change = {.span = span, .edits = edits};

    edits->count = 0;
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_refund(limit, &change, use);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_refund(limit, &change, use);
    else
        concurrency_refund(limit, &change, use);
}

uint32_t weir_span_release(const struct weir_limit *limit, const uint64_t *span, uint64_t lease_id,
                           struct weir_edits *edits)
{
    const struct span_change change = {.span = span, .edits = edits};

    edits->count = 0;
    return concurrency_release(limit, &change, lease_id);
}

uint32_t weir_span_end_owner(const struct weir_limit *limit, const uint64_t *span, uint64_t owner,
                             struct weir_edits *edits)
{
    const struct span_change change = {.span = span, .edits = edits};

    edits->count = 0;
    return concurrency_end_owner(limit, &change, owner);
}

void weir_span_report(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, bool allowed, struct weir_report *report)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        segments_report(limit, span, use, report);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_report(limit, span, use, report);
    else
        entries_report(limit, span, use, use->now_ns, report);
    if (allowed)
        report->retry_after_ns = 0;
}

uint64_t weir_span_fresh_at(const struct weir_limit *limit, const uint64_t *span)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_fresh_at(limit, span);
    return entries_fresh_at(limit, span);
}

bool weir_span_valid(const struct weir_limit *limit, const uint64_t *span)
{
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return segments_valid(limit, span);
    return entries_valid(limit, span);
}

void weir_span_convert(const struct weir_limit *from, const uint64_t *span,
                       const struct weir_limit *to, uint64_t *out)
{
    for (uint32_t i = 0; i < to->span_words; i++)
        out[i] = 0;
    if (!weir_limit_converts(from, to))
        return;
    if (to->spec.algorithm != WEIR_SLIDING_WINDOW) {
        entries_convert(from, span, to, out);
        return;
    }
    for (uint32_t i = 0; i < to->span_words; i++) /* only N differs: the counters stay */
        out[i] = span[i];
}

void weir_edits_apply(const struct weir_edits *edits, uint64_t *span)
{
    for (uint32_t i = 0; i < edits->count; i++)
        span[edits->word[i]] = edits->value[i];
}
