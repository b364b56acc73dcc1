/* SPDX-License-Identifier: Apache-2.0 */
/* see segments.h */
#include "core/span/segments.h"

#include "core/window.h"

#define SEGMENTS_STORED_SHIFT 56
#define SEGMENTS_SUM_MASK ((UINT64_C(1) << SEGMENTS_STORED_SHIFT) - 1)

/* The ring, unpacked. */
struct segments {
    uint64_t newest, sum;
    uint32_t stored;
};

/* The window as seen at one time: the counters of segments index-S+1..index, summed, and that of
 * index-S. */
struct segments_view {
    uint64_t index, elapsed_ns, newer;
    uint32_t oldest;
};

/* S and w, which are divided by. The parameters of a state lie in the same memory as the state. */
static uint32_t segments_length(const struct weir_limit *limit)
{
    uint32_t length = limit->spec.segments;

    return length < WEIR_SEGMENTS_MAX ? length : WEIR_SEGMENTS_MAX;
}

static uint64_t segments_width(const struct weir_limit *limit)
{
    uint64_t width = limit->segment_ns;

    return width > 0 ? width : 1;
}

/* False: the header cannot be right; the ring is then empty. */
static bool segments_load(const struct weir_limit *limit, const struct span_view *span,
                          struct segments *ring)
{
    uint64_t word1 = span_word(span, 1);

    ring->newest = span_word(span, 0);
    ring->sum = word1 & SEGMENTS_SUM_MASK;
    ring->stored = (uint32_t)(word1 >> SEGMENTS_STORED_SHIFT);
    if (ring->stored <= segments_length(limit) + 1 && ring->newest <= WINDOW_TIME_MAX_NS &&
        ring->stored <= ring->newest + 1)
        return true;
    *ring = (struct segments){0, 0, 0};
    return false;
}

static void segments_store(const struct span_change *change, const struct segments *ring)
{
    span_write(change, 0, ring->newest);
    span_write(change, 1,
               (ring->sum & SEGMENTS_SUM_MASK) | (uint64_t)ring->stored << SEGMENTS_STORED_SHIFT);
}

static uint32_t segments_slot(const struct weir_limit *limit, uint64_t segment)
{
    return (uint32_t)(segment % (segments_length(limit) + 1));
}

static uint32_t segments_count(const struct span_view *span, uint32_t slot)
{
    return (uint32_t)(span_word(span, SEGMENTS_HEADER_WORDS + slot / 2) >> (slot % 2 * 32));
}

static void segments_set(const struct span_change *change, uint32_t slot, uint32_t count)
{
    uint32_t word = SEGMENTS_HEADER_WORDS + slot / 2, shift = slot % 2 * 32;
    uint64_t other = span_read(change, word) & ~(UINT64_C(0xffffffff) << shift);

    span_write(change, word, other | (uint64_t)count << shift);
}

/* The counter of a segment; 0 where the ring does not store it. */
static uint32_t segments_at(const struct weir_limit *limit, const struct span_view *span,
                            const struct segments *ring, uint64_t segment)
{
    if (segment > ring->newest || segment + ring->stored <= ring->newest)
        return 0;
    return segments_count(span, segments_slot(limit, segment));
}

static void segments_view(const struct weir_limit *limit, const struct span_view *span,
                          uint64_t now_ns, const struct segments *ring, struct segments_view *view)
{
    uint32_t length = segments_length(limit);
    uint64_t index = now_ns / segments_width(limit);

    view->elapsed_ns = now_ns - index * segments_width(limit);
    if (index < ring->newest) {
        index = ring->newest;
        view->elapsed_ns = 0;
    }
    view->index = index;
    view->newer = 0;
    view->oldest = 0;
    if (index > ring->newest + length || ring->stored == 0)
        return;

    uint64_t segment = ring->newest + 1 - ring->stored;
    uint32_t slot = segments_slot(limit, segment);

    view->newer = ring->sum;
    for (; segment + length <= index; segment++) {
        uint32_t count = segments_count(span, slot);

        view->newer = span_less(view->newer, count);
        if (segment + length == index)
            view->oldest = count;
        slot = slot == length ? 0 : slot + 1;
    }
}

bool segments_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                   uint64_t cost)
{
    struct segments ring;
    struct segments_view view;
    uint64_t rate = limit->spec.rate;

    segments_load(limit, span, &ring);
    segments_view(limit, span, now_ns, &ring, &view);
    if (cost > rate || view.newer > rate - cost)
        return false;

    uint64_t room = rate - cost - view.newer;

    if (view.oldest <= room)
        return true;
    if (limit->spec.strict)
        return false;
    return window_weight_fits(view.oldest, segments_width(limit) - view.elapsed_ns, room,
                              segments_width(limit));
}

void segments_charge(const struct weir_limit *limit, const struct span_change *change,
                     const struct weir_use *use)
{
    struct segments ring;
    struct segments_view view;
    uint64_t count = 0, length = segments_length(limit);

    if (use->cost == 0)
        return;
    segments_load(limit, &change->span, &ring);
    segments_view(limit, &change->span, use->now_ns, &ring, &view);

    uint32_t slot = segments_slot(limit, view.index);

    if (view.newer + view.oldest == 0) {
        ring.stored = 1;
    } else if (view.index == ring.newest) {
        count = segments_count(&change->span, slot);
    } else {
        uint64_t gone = view.index - ring.newest;
        uint32_t skipped = segments_slot(limit, ring.newest + 1);

        for (; skipped != slot; skipped = skipped == length ? 0 : skipped + 1)
            segments_set(change, skipped, 0);
        ring.stored = (uint32_t)(ring.stored + gone <= length ? ring.stored + gone : length + 1);
    }

    uint64_t charged = use->cost > UINT32_MAX - count ? UINT32_MAX - count : use->cost;

    ring.newest = view.index;
    ring.sum = view.newer + view.oldest + charged;
    segments_store(change, &ring);
    segments_set(change, slot, (uint32_t)(count + charged));
}

/* In place: a refund is no time that the state has seen. */
void segments_refund(const struct weir_limit *limit, const struct span_change *change,
                     const struct weir_use *use)
{
    struct segments ring;
    uint64_t segment = use->charged_at_ns / segments_width(limit);

    segments_load(limit, &change->span, &ring);
    if (segment + segments_length(limit) < use->now_ns / segments_width(limit))
        return;

    uint32_t count = segments_at(limit, &change->span, &ring, segment);
    uint32_t back = use->cost < count ? (uint32_t)use->cost : count;

    if (back == 0)
        return;
    ring.sum = span_less(ring.sum, back);
    segments_store(change, &ring);
    segments_set(change, segments_slot(limit, segment), count - back);
}

/* The first time at which a cost that is denied now is admitted: see window_retry, segment by
 * segment. In the segment `index` the counter `oldest` fades while `newer` stand still. */
static uint64_t segments_retry_at(const struct weir_limit *limit, const struct span_view *span,
                                  const struct segments_view *view, uint64_t cost)
{
    struct segments ring;
    uint64_t index = view->index, newer = view->newer, oldest = view->oldest;
    uint64_t total = limit->spec.rate - cost, w = segments_width(limit), rest;

    segments_load(limit, span, &ring);
    while (index <= ring.newest + segments_length(limit)) {
        if (newer <= total) {
            uint64_t room = total - newer;

            if (oldest <= room)
                return index * w;
            if (!limit->spec.strict) {
                struct wide product = wide_multiply(room + 1, w);

                product.hi -= product.lo == 0;
                product.lo--;
                uint64_t left = wide_divide(product.hi, product.lo, oldest, &rest);

                if (left > 0)
                    return index * w + w - left;
            }
        }
        index++;
        oldest = index < segments_length(limit)
                     ? 0
                     : segments_at(limit, span, &ring, index - segments_length(limit));
        newer = span_less(newer, oldest);
    }
    return index * w; /* nothing is left, though the sum of a damaged state says so */
}

void segments_report(const struct weir_limit *limit, const struct span_view *span,
                     const struct weir_use *use, struct weir_report *report)
{
    struct segments ring;
    struct segments_view view;
    uint64_t rate = limit->spec.rate, w = segments_width(limit), rest;
    uint64_t fresh_at_ns = segments_fresh_at(limit, span);

    segments_load(limit, span, &ring);
    segments_view(limit, span, use->now_ns, &ring, &view);
    uint64_t used = view.oldest;

    if (!limit->spec.strict && used != 0 && view.elapsed_ns != 0) {
        struct wide product = wide_multiply(used, w - view.elapsed_ns);

        used = wide_divide(product.hi, product.lo, w, &rest);
    }
    used += view.newer;
    report->limit = rate;
    report->remaining = used < rate ? rate - used : 0;
    report->reset_after_ns = fresh_at_ns > use->now_ns ? fresh_at_ns - use->now_ns : 0;
    report->retry_after_ns = 0;
    if (use->cost > rate)
        report->retry_after_ns = WEIR_NEVER;
    else if (used + use->cost > rate)
        report->retry_after_ns =
            span_less(segments_retry_at(limit, span, &view, use->cost), use->now_ns);
}

uint64_t segments_fresh_at(const struct weir_limit *limit, const struct span_view *span)
{
    struct segments ring;

    segments_load(limit, span, &ring);
    if (ring.sum == 0)
        return 0;

    uint64_t segment = ring.newest;
    uint32_t left = ring.stored;

    while (left > 0 && segments_at(limit, span, &ring, segment) == 0) { /* refunded in full */
        segment--;
        left--;
    }
    if (left == 0) /* the sum of a damaged state */
        return 0;
    return (segment + segments_length(limit) + 1) * segments_width(limit);
}

bool segments_valid(const struct weir_limit *limit, const struct span_view *span)
{
    struct segments ring;
    uint64_t sum = 0;

    if (!segments_load(limit, span, &ring) ||
        ring.newest > WINDOW_TIME_MAX_NS / segments_width(limit))
        return false;
    for (uint32_t i = 0; i < ring.stored; i++)
        sum += segments_count(span, segments_slot(limit, ring.newest - i));
    return sum == ring.sum;
}
