/* SPDX-License-Identifier: Apache-2.0 */
/* see slot.h */
#include "table/slot.h"

#include "core/cell.h"
#include "core/span/span.h"
#include "table/owner.h"
#include "table/span/heap.h"
#include "table/undo.h"

void slot_put(struct table_bucket *bucket, uint32_t i, uint64_t tag, bool second, uint16_t param,
              const uint32_t state[3])
{
    uint32_t marks = bucket->marks & ~(MARK_MASK << MARK_BITS * i);

    slot_set_param(bucket, i, 0);
    UNDO_BARRIER();
    bucket->slot[i].tag_lo = (uint32_t)(tag >> 4);
    slot_write_state(bucket, i, state);
    __atomic_store_n(&bucket->tag_hi[i], (uint16_t)(tag >> 36), __ATOMIC_RELAXED);
    marks |= position_marks(tag, second) & MARK_MASK << MARK_BITS * i;
    __atomic_store_n(&bucket->marks, marks, __ATOMIC_RELAXED);
    UNDO_BARRIER();
    slot_set_param(bucket, i, param);
}

struct span_view slot_state_span(const struct weir_table *table, const struct table_bucket *bucket,
                                 uint32_t i, const struct weir_limit *limit)
{
    return heap_state(table, limit, slot_span(bucket, i));
}

/* Reads a state that is a cell. */
static bool read_cell(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
                      const struct weir_limit *limit, struct weir_cell *cell)
{
    if (limit->packs) {
        cell_unpack(limit, bucket->slot[i].state, cell);
        return true;
    }
    const struct span_view span = slot_state_span(table, bucket, i, limit);

    if (span.at)
        *cell = (struct weir_cell){span_word(&span, 0), span_word(&span, 1)};
    return span.at;
}

bool slot_cell(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
               struct weir_cell *cell)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);

    return limit && limit->span_words == 0 && read_cell(table, bucket, i, limit, cell);
}

uint64_t slot_fresh_at(const struct weir_table *table, const struct table_bucket *bucket,
                       uint32_t i)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);
    struct weir_cell cell;

    if (!limit)
        return 0;
    if (limit->span_words == 0)
        return read_cell(table, bucket, i, limit, &cell) ? cell_fresh_at(limit, &cell) : 0;

    const struct span_view span = slot_state_span(table, bucket, i, limit);

    return span_fresh_at(limit, &span);
}

/* Units that were given are evicted as what was used: the fewest first, by their binary digits, and
 * after all states that deny nothing. */
static uint64_t prepaid_remaining(const struct weir_limit *limit, const struct weir_cell *cell,
                                  uint64_t now_ns, struct slot_view *view)
{
    uint64_t left = prepaid_left(cell, now_ns);
    unsigned digits = left > 0 ? 64u - (unsigned)wide_leading_zeros(left) : 0;

    view->denies = left > 0;
    return limit->capacity - limit->capacity / 64 * digits;
}

/* What remains of the capacity at `now_ns`. The calendar of a quota is not known here (see
 * quota.h), so the use of its last period counts as that of the present one. */
static uint64_t cell_remaining(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint64_t now_ns, struct slot_view *view)
{
    const struct weir_use one = {.now_ns = now_ns, .cost = 1};
    struct weir_report report;
    uint64_t delay_ns;

    view->fresh_at_ns = cell_fresh_at(limit, cell);
    if (prepaid_is(limit))
        return prepaid_remaining(limit, cell, now_ns, view);
    view->denies = !cell_test(limit, cell, now_ns, 1, &delay_ns);
    if (cell_is_quota(limit)) {
        uint64_t used = (uint32_t)cell->b;

        return used < limit->capacity ? limit->capacity - used : 0;
    }
    weir_cell_report(limit, cell, &one, false, &report);
    return report.remaining;
}

static uint64_t span_remaining(const struct weir_limit *limit, const struct span_view *span,
                               uint64_t now_ns, struct slot_view *view)
{
    const struct weir_use one = {.now_ns = now_ns, .cost = 1};
    struct weir_report report;

    view->fresh_at_ns = span_fresh_at(limit, span);
    view->denies = !span_test(limit, span, now_ns, 1);
    span_report(limit, span, &one, false, &report);
    return report.remaining;
}

bool slot_look(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
               uint64_t now_ns, struct slot_view *view)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);
    struct weir_cell cell;
    uint64_t remaining;

    *view = (struct slot_view){0, 0, false, limit && limit->yields};
    if (!limit)
        return false;
    if (limit->span_words == 0) {
        if (!read_cell(table, bucket, i, limit, &cell))
            return true;
        remaining = cell_remaining(limit, &cell, now_ns, view);
    } else {
        const struct span_view span = slot_state_span(table, bucket, i, limit);

        if (!span.at)
            return true;
        remaining = span_remaining(limit, &span, now_ns, view);
    }
    if (remaining < limit->capacity)
        view->used = (uint32_t)(((limit->capacity - remaining) << 16) / limit->capacity);
    return true;
}

bool slot_valid(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);
    struct weir_cell cell;

    if (!limit)
        return false;
    if (limit->span_words == 0)
        return read_cell(table, bucket, i, limit, &cell) && weir_cell_valid(limit, &cell);

    const struct span_view span = slot_state_span(table, bucket, i, limit);

    return span.at && span_valid(limit, &span);
}

bool slot_clear(struct weir_table_owner *owner, struct table_bucket *bucket, uint32_t i)
{
    struct weir_table *table = owner->table;
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);
    uint32_t *heap_lock = &table->header->heap_lock;

    if (!limit || !region_has_span(limit)) {
        slot_set_param(bucket, i, 0);
        return true;
    }
    if (!owner_lock(owner, heap_lock))
        return false;
    undo_save_param(owner, bucket, i);
    slot_set_param(bucket, i, 0);
    heap_give(owner, slot_span(bucket, i));

    bool cleared = undo_finish(owner);

    owner_unlock(heap_lock);
    return cleared;
}
