/* see copy.h */
#include "table/copy.h"

#include <stdlib.h>
#include <string.h>

#include "table/params.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span_heap.h"
#include "table/undo.h"

struct copy {
    struct weir_table *to;
    const struct weir_table *from;
    struct weir_table_owner *owner; /* writes to `to` */
    uint16_t *ids;                  /* of `to`, by those of `from`; 0: not copied */
    uint64_t now_ns;
};

static void copy_params(struct copy *copy)
{
    for (uint32_t i = 0; i < copy->from->fixed.params_max; i++) {
        const struct table_param *param = &copy->from->params[i];
        const struct weir_limit *known = region_limit(copy->from, (uint16_t)(i + 1));

        if (known == NULL)
            continue;

        struct weir_limit limit = *known;
        uint64_t account = copy->from->accounts[param->account].name;

        if (params_intern(copy->to, &limit, account) == 0)
            copy->ids[i + 1] = limit.id;
    }
}

/* Copies what a slot holds into `state`: itself, or a span of its own, as large as its content. */
static bool copy_state(struct copy *copy, const struct table_bucket *bucket, uint32_t i,
                       const struct weir_limit *limit, uint32_t state[3])
{
    const struct weir_span_source source = {limit, slot_state_span(copy->from, bucket, i, limit),
                                            copy->now_ns};
    uint32_t words = 2; /* a cell */

    memcpy(state, bucket->slot[i].state, 3 * sizeof state[0]);
    if (!region_has_span(limit))
        return true;
    if (source.span == NULL)
        return false;
    if (limit->span_words > 0)
        words = weir_span_needs(&source, limit, 0, 0);

    uint64_t offset = heap_take(copy->owner, words);

    if (offset == 0)
        return false;

    uint64_t *span = heap_span(copy->to, offset, words);

    if (limit->span_words > 0)
        weir_span_resize(&source, limit, span, heap_words(copy->to, offset));
    else
        memcpy(span, source.span, (size_t)words * 8);
    state[0] = (uint32_t)offset;
    state[1] = (uint32_t)(offset >> 32);
    state[2] = 0;
    return true;
}

/* Makes a slot of the new region empty, if somebody has it. */
static void clear_slot(struct copy *copy, struct table_bucket *bucket, uint32_t i)
{
    const struct weir_limit *limit = region_limit(copy->to, bucket->param[i]);

    if (limit != NULL && region_has_span(limit))
        heap_give(copy->owner, slot_span(bucket, i));
    slot_set_param(bucket, i, 0);
}

static void copy_slot(struct copy *copy, uint64_t index, uint32_t i)
{
    struct weir_table *to = copy->to;
    const struct table_bucket *bucket = &copy->from->buckets[index];
    const struct weir_limit *limit = region_limit(copy->from, bucket->param[i]);
    struct position at = {index, slot_tag(bucket, i)};
    uint32_t state[3];

    if (limit == NULL || copy->ids[bucket->param[i]] == 0 ||
        slot_fresh_at(copy->from, bucket, i) <= copy->now_ns)
        return;
    if (slot_is_second(bucket, i))
        at.bucket = position_other(&copy->from->map, at.bucket, at.tag);
    at = position_move(&copy->from->map, copy->from->fixed.identity_bits, at, &to->map);

    uint64_t other = position_other(&to->map, at.bucket, at.tag);
    struct table_bucket *pair[2] = {region_bucket(to, at.bucket), region_bucket(to, other)};
    struct place place = {.taken = {0, 0}};

    if (placement_free(to, pair, copy->now_ns, &place) == PLACE_NONE &&
        placement_evict(copy->owner, pair, copy->ids[bucket->param[i]], copy->now_ns, &place) ==
            PLACE_NONE)
        return;
    clear_slot(copy, place.bucket, place.slot);

    if (!copy_state(copy, bucket, i, limit, state))
        return;
    slot_put(place.bucket, place.slot, at.tag, place.bucket != pair[0], copy->ids[bucket->param[i]],
             state);
    if (region_has_span(limit))
        *heap_owner_of(to, slot_span(place.bucket, place.slot)) =
            (uint64_t)(place.bucket - to->buckets) << 3 | place.slot;
}

int copy_region(struct weir_table *to, const struct weir_table *from)
{
    struct weir_table_owner *owner = calloc(1, sizeof *owner);
    uint16_t *ids = calloc((size_t)from->fixed.params_max + 1, sizeof *ids);
    struct table_header *header = to->header;
    int err = WEIR_ERR_MEMORY;

    if (owner == NULL || ids == NULL)
        goto free_both;
    owner->slots.held = calloc(header->params_max, sizeof *owner->slots.held);
    if (owner->slots.held == NULL)
        goto free_both;
    /* The new file is nobody's yet: this owner needs no slot of its own and no file lock. */
    owner->table = to;
    owner->slot = &to->owners[0];
    owner->me = 1u << 8;
    owner->fd = -1;
    owner->no_run = UINT32_MAX;
    to->service = owner;
    if (header->identity_bits > from->fixed.identity_bits) {
        header->identity_bits = from->fixed.identity_bits;
        header->check = layout_header_check(header);
        to->map = position_map_of(header);
    }
    header->t0_ns = from->fixed.t0_ns;
    header->mark_ns = from->header->mark_ns;
    to->fixed = *header;

    struct copy copy = {to, from, owner, ids, header->t0_ns};

    copy_params(&copy);
    for (uint64_t b = 0; b < from->fixed.buckets; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            if (from->buckets[b].param[i] != 0)
                copy_slot(&copy, b, i);
            undo_finish(owner);
        }
    to->service = NULL;
    err = 0;
free_both:
    if (owner != NULL)
        free(owner->slots.held);
    free(ids);
    free(owner);
    return err;
}
