/* SPDX-License-Identifier: Apache-2.0 */
/* see copy.h */
#include "table/file/copy.h"

#include <stdlib.h>
#include <string.h>

#include "core/span/span_change.h"
#include "table/account.h"
#include "table/owner.h"
#include "table/params.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span/heap.h"
#include "table/undo.h"

struct copy {
    struct weir_table *to;
    struct weir_table_owner *owner; /* writes to `to` */
    struct position_map map;        /* of the source */
    uint32_t identity_bits;         /* of the source */
    uint64_t now_ns;
};

/* A live state. `at`: the first bucket and the tag of its key in the source. */
struct moved {
    struct position at;
    const struct weir_limit *limit; /* that it was made under */
    struct span_view span;          /* where limit needs one; else none, and ... */
    uint32_t state[3];              /* ... this is the packed cell */
    uint16_t param;                 /* of the new region */
};

/* Sets what a slot of the new region holds: the cell, or a span of its own. */
static bool fill_state(struct copy *copy, const struct moved *from, uint32_t state[3])
{
    const struct weir_limit *limit = from->limit;
    const struct weir_span_source source = {limit, from->span.at, copy->now_ns, from->span.words};
    uint32_t words = 2; /* a cell */

    memcpy(state, from->state, 3 * sizeof state[0]);
    if (!region_has_span(limit))
        return true;
    if (!source.span) /* of a file that was damaged while it was in use */
        return false;
    if (limit->span_words > 0)
        words = weir_span_needs(&source, limit, 0, 0);

    uint64_t offset = heap_take(copy->owner, words);

    if (offset == 0)
        return false;

    uint64_t *span = heap_span(copy->to, offset, words);

    if (!span)
        return false;
    if (limit->span_words > 0)
        weir_span_resize(&source, limit, span, heap_words(copy->to, offset));
    else
        memcpy(span, source.span, (size_t)words * 8);
    state[0] = (uint32_t)offset;
    state[1] = (uint32_t)(offset >> 32);
    state[2] = 0;
    return true;
}

/* Empties a slot of the new region. */
static void clear_slot(struct copy *copy, struct table_bucket *bucket, uint32_t i)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(copy->to, bucket->param[i], &room);

    if (limit && region_has_span(limit))
        heap_give(copy->owner, slot_span(bucket, i));
    slot_set_param(bucket, i, 0);
}

static void put_state(struct copy *copy, const struct moved *from)
{
    struct weir_table *to = copy->to;
    struct position at = position_move(&copy->map, copy->identity_bits, from->at, &to->map);
    uint64_t other = position_other(&to->map, at.bucket, at.tag);
    struct table_bucket *pair[2] = {region_bucket(to, at.bucket), region_bucket(to, other)};
    struct place place = {.taken = {0, 0}};
    uint32_t state[3];

    if (placement_free(to, pair, copy->now_ns, &place) == PLACE_NONE &&
        placement_evict(copy->owner, pair, from->param, copy->now_ns, &place) == PLACE_NONE)
        return;
    clear_slot(copy, place.bucket, place.slot);
    if (fill_state(copy, from, state)) {
        slot_put(place.bucket, place.slot, at.tag, place.bucket != pair[0], from->param, state);
        if (region_has_span(from->limit))
            *heap_owner_of(to, slot_span(place.bucket, place.slot)) =
                (uint64_t)(place.bucket - to->buckets) << 3 | place.slot;
    }
    undo_finish(copy->owner);
}

/* `mark_ns`: the latest time of the source. end() follows, also after an error. */
static int begin(struct copy *copy, uint64_t mark_ns)
{
    struct weir_table *to = copy->to;
    struct table_header *header = &to->fixed;
    struct weir_table_owner *owner = owner_open_alone(to);

    copy->owner = owner;
    if (!owner)
        return WEIR_ERR_MEMORY;
    owner->slots.held = calloc(header->params_max, sizeof *owner->slots.held);
    if (!owner->slots.held)
        return WEIR_ERR_MEMORY;
    to->service = owner;
    if (header->identity_bits > copy->identity_bits) {
        header->identity_bits = copy->identity_bits;
        header->check = layout_header_check(header);
        to->map = position_map_of(header);
    }
    header->t0_ns = copy->now_ns;
    header->mark_ns = mark_ns;
    to->header->identity_bits = header->identity_bits;
    to->header->check = header->check;
    to->header->t0_ns = header->t0_ns;
    to->header->mark_ns = mark_ns;
    return 0;
}

static void end(struct copy *copy)
{
    copy->to->service = NULL;
    if (copy->owner)
        free(copy->owner->slots.held);
    free(copy->owner);
}

/* Sets the ids that the parameters of `from` have in `to`; 0: none. */
static void copy_params(struct weir_table *to, const struct weir_table *from, uint16_t *ids)
{
    for (uint32_t i = 0; i < from->fixed.params_max; i++) {
        uint32_t account = account_of(from, (uint16_t)(i + 1));
        struct weir_limit room;
        const struct weir_limit *known = region_limit(from, (uint16_t)(i + 1), &room);

        if (!known || account >= from->fixed.params_max)
            continue;

        struct weir_limit limit = *known;

        if (params_intern(to, &limit, from->accounts[account].name) == 0)
            ids[i + 1] = limit.id;
    }
}

static void copy_slot(struct copy *copy, const struct weir_table *from, const uint16_t *ids,
                      uint64_t index, uint32_t i)
{
    const struct table_bucket *bucket = &from->buckets[index];
    uint16_t param = __atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED);
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(from, param, &room);
    struct moved state = {.at = {index, slot_tag(bucket, i)}, .limit = limit};

    if (!limit || ids[param] == 0 || slot_fresh_at(from, bucket, i) <= copy->now_ns)
        return;
    if (slot_is_second(bucket, i))
        state.at.bucket = position_other(&from->map, index, state.at.tag);
    state.param = ids[param];
    memcpy(state.state, bucket->slot[i].state, sizeof state.state);
    if (region_has_span(limit))
        state.span = slot_state_span(from, bucket, i, limit);
    put_state(copy, &state);
}

int copy_region(struct weir_table *to, const struct weir_table *from)
{
    const struct table_header *header = &from->fixed;
    uint16_t *ids = calloc((size_t)header->params_max + 1, sizeof *ids);
    struct copy copy = {.to = to,
                        .map = from->map,
                        .identity_bits = header->identity_bits,
                        .now_ns = header->t0_ns};
    int err = !ids ? WEIR_ERR_MEMORY : begin(&copy, from->header->mark_ns);

    if (err == 0) {
        copy_params(to, from, ids);
        for (uint64_t b = 0; b < header->buckets; b++)
            for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
                if (from->buckets[b].param[i] != 0)
                    copy_slot(&copy, from, ids, b, i);
    }
    end(&copy);
    free(ids);
    return err;
}
