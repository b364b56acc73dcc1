/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h: what holds of a region at rest
 *
 * Run by tests, and whenever a file is opened that nobody else has open: from then on every state
 * is taken for what it seems to be.
 */
#include "core/reason.h"
#include "table/overflow.h"
#include "table/params.h"
#include "table/slot.h"
#include "table/span_heap.h"

static int damaged(struct weir_reason *reason, const char *what, uint64_t where)
{
    reason->text[0] = 0;
    reason_text(reason, what);
    reason_text(reason, ", number ");
    reason_number(reason, where);
    return WEIR_ERR_DAMAGED;
}

/* Whether the two buckets of a key hold it once. */
static bool is_once(const struct weir_table *table, uint64_t index, uint32_t i)
{
    const struct table_bucket *bucket = &table->buckets[index];
    uint64_t tag = slot_tag(bucket, i);
    bool second = slot_is_second(bucket, i);
    uint64_t other = position_other(&table->map, index, tag);

    return slot_find(bucket, tag, second) == (int)i &&
           slot_find(&table->buckets[other], tag, !second) < 0;
}

static int validate_slot(const struct weir_table *table, uint64_t index, uint32_t i,
                         uint64_t *spans, struct weir_reason *reason)
{
    const struct table_bucket *bucket = &table->buckets[index];
    const struct weir_limit *limit = region_limit(table, bucket->param[i]);

    if (limit == NULL)
        return damaged(reason, "a slot with unknown parameters in bucket", index);
    if (!is_once(table, index, i))
        return damaged(reason, "a key that stands twice in bucket", index);
    if (region_has_span(limit)) {
        uint64_t span = slot_span(bucket, i);

        if (heap_state(table, limit, span) == NULL)
            return damaged(reason, "a slot without its span in bucket", index);
        if (*heap_owner_of(table, span) != (index << 3 | i))
            return damaged(reason, "a span of another slot in bucket", index);
        ++*spans;
    }
    if (!slot_valid(table, bucket, i))
        return damaged(reason, "an impossible state in bucket", index);
    return 0;
}

int weir_table_validate(const struct weir_table *table, struct weir_reason *reason)
{
    const struct table_header *header = table->header;
    struct weir_reason unwanted;
    uint64_t spans = 0;

    if (reason == NULL)
        reason = &unwanted;
    if (header->check != layout_header_check(header) || layout_check(header) < 0)
        return damaged(reason, "the header", 0);
    if (!heap_consistent(table))
        return damaged(reason, "the pages of the span heap", 0);

    if (!params_consistent(table))
        return damaged(reason, "the parameters", 0);
    if (!overflow_consistent(table))
        return damaged(reason, "the overflow cells", 0);

    int err = 0;

    for (uint64_t b = 0; err == 0 && b < table->fixed.buckets; b++)
        for (uint32_t i = 0; err == 0 && i < BUCKET_SLOTS; i++)
            if (table->buckets[b].param[i] != 0)
                err = validate_slot(table, b, i, &spans, reason);
    if (err == 0 && spans != heap_spans(table))
        err = damaged(reason, "spans that nobody has, or too few", heap_spans(table));
    return err;
}
