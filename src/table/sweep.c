/* SPDX-License-Identifier: Apache-2.0 */
/* see sweep.h */
#include "table/sweep.h"

#include <stdlib.h>

#include "core/cell.h"
#include "table/account.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/span/heap.h"
#include "table/undo.h"

struct params_sweep {
    uint64_t at;    /* the next bucket */
    bool pressure;  /* hardly any place is left */
    bool partial;   /* a bucket could not be locked, so that no parameters are known to be unused */
    uint32_t count; /* of candidates */
    struct params_set candidates, used;
    uint32_t pinned[WEIR_TABLE_PARAMS_MAX];    /* table_param.pinned when the sweep began */
    uint16_t successor[WEIR_TABLE_PARAMS_MAX]; /* the id that states are carried over to; 0: none */
};

/* What is equal in all parameters whose states are carried over to each other in place: to the same
 * rate of one account with other numbers, and not to another of several rates, which would forget
 * an hour's use within a second. weir_limit_converts holds between them. */
struct kind {
    uint64_t words[5];
};

/* Parameters as they are when the sweep begins: another process may change them in the file. */
struct ranked {
    struct kind kind;
    uint64_t rate;
    uint16_t index;
    bool packs; /* else no state is carried over */
};

static struct ranked rank(const struct weir_table *table, uint32_t index)
{
    struct ranked ranked = {.index = (uint16_t)index};
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, (uint16_t)(index + 1), &room);
    uint64_t account = account_of(table, (uint16_t)(index + 1));

    if (!limit || account >= table->fixed.params_max)
        return ranked;
    ranked.kind = (struct kind){{account << 32 | limit->spec.algorithm, limit->spec.window_ns,
                                 (uint64_t)limit->spec.segments << 32 | limit->spec.strict,
                                 limit->spec.calendar, limit->spec.rollover > 0}};
    ranked.rate = limit->spec.rate;
    ranked.packs = limit->packs && !params_account_is_shared(table->accounts[account].name);
    return ranked;
}

static int compare_kinds(const struct kind *a, const struct kind *b)
{
    for (size_t i = 0; i < sizeof a->words / sizeof *a->words; i++)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

/* Those that carry states over first, by kind, the slowest first. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = compare_kinds(&a->kind, &b->kind);

    if (a->packs != b->packs)
        return a->packs ? -1 : 1;
    if (order != 0)
        return order;
    if (a->rate != b->rate)
        return a->rate < b->rate ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* The first of the sorted parameters that are of this kind; NULL: none. */
static const struct ranked *find_kind(const struct ranked *sorted, uint32_t count,
                                      const struct kind *kind)
{
    uint32_t begin = 0, end = count;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;

        if (sorted[middle].packs && compare_kinds(&sorted[middle].kind, kind) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < count && sorted[begin].packs && compare_kinds(&sorted[begin].kind, kind) == 0
               ? &sorted[begin]
               : NULL;
}

/* Finds for each candidate pinned parameters of the same account: where plans have several, the
 * slowest, under which no state is fresh earlier than under those that its key has now. Without
 * memory, none has any. */
static void find_successors(struct weir_table *table, const struct params_set *pinned,
                            struct params_sweep *sweep)
{
    struct ranked *sorted = calloc(WEIR_TABLE_PARAMS_MAX, sizeof *sorted);
    uint32_t count = 0;

    if (!sorted)
        return;
    for (uint32_t i = 0; i < table->fixed.params_max; i++)
        if (params_set_has(pinned, i))
            sorted[count++] = rank(table, i);
    qsort(sorted, count, sizeof *sorted, compare_ranked);
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        if (!params_set_has(&sweep->candidates, i))
            continue;

        const struct ranked from = rank(table, i);
        const struct ranked *to = from.packs ? find_kind(sorted, count, &from.kind) : NULL;

        if (!to)
            continue;
        sweep->successor[i] = (uint16_t)(to->index + 1);
        params_pin(table, sweep->successor[i]); /* no other sweep may drop it meanwhile */
    }
    free(sorted);
}

static struct params_sweep *begin(struct weir_table *table, bool pressure)
{
    uint32_t count = table->fixed.params_max;
    struct params_set pinned;
    struct params_sweep *sweep = calloc(1, sizeof *sweep);

    if (!sweep || params_lock(table) < 0) {
        free(sweep);
        return NULL;
    }
    params_pinned(table, &pinned);
    sweep->pressure = pressure;
    for (uint32_t i = 0; i < count; i++) {
        if (!region_has_params(table, (uint16_t)(i + 1)) || params_set_has(&pinned, i))
            continue;
        params_set_add(&sweep->candidates, i);
        sweep->pinned[i] = table->params[i].pinned;
        params_set_swept(&table->params[i], table->service->me);
        sweep->count++;
    }
    find_successors(table, &pinned, sweep);
    params_unlock(table);
    if (sweep->count > 0)
        return sweep;
    free(sweep);
    return NULL;
}

/* Carries a cell over to its limit's new parameters. False: one of them is damaged. */
static bool carry_over(struct weir_table_owner *owner, struct table_bucket *bucket, uint32_t i,
                       const uint16_t ids[2], uint64_t now_ns)
{
    struct weir_limit rooms[2];
    const struct weir_limit *from_limit = region_limit(owner->table, ids[0], &rooms[0]);
    const struct weir_limit *to_limit = region_limit(owner->table, ids[1], &rooms[1]);
    struct weir_cell cell;
    uint32_t state[3];

    if (!from_limit || !from_limit->packs || !to_limit || !to_limit->packs)
        return false;
    cell_unpack(from_limit, bucket->slot[i].state, &cell);
    weir_cell_convert(from_limit, to_limit, &cell, now_ns);
    cell_pack(to_limit, &cell, state);
    undo_save_slot(owner, bucket, i);
    slot_put(bucket, i, slot_tag(bucket, i), slot_is_second(bucket, i), ids[1], state);
    undo_finish(owner);
    return true;
}

static bool is_candidate(const struct params_sweep *sweep, uint16_t param)
{
    return param != 0 && param <= WEIR_TABLE_PARAMS_MAX &&
           params_set_has(&sweep->candidates, param - 1u);
}

/* Decides about one state, if it is of a candidate. The bucket is locked. */
static void sweep_slot(struct weir_table *table, struct params_sweep *sweep,
                       struct table_bucket *bucket, uint32_t i, uint64_t now_ns)
{
    uint16_t param = __atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED);

    if (!is_candidate(sweep, param))
        return;

    const uint16_t ids[2] = {param, sweep->successor[param - 1]};

    if (slot_fresh_at(table, bucket, i) <= now_ns) {
        sweep->partial |= !slot_clear(table->service, bucket, i);
    } else if (ids[1] != 0 && carry_over(table->service, bucket, i, ids, now_ns)) {
        return;
    } else if (sweep->pressure) {
        owner_count(table->service, COUNT_EVICTIONS);
        account_count_eviction(table, param);
        sweep->partial |= !slot_clear(table->service, bucket, i);
    } else {
        params_set_add(&sweep->used, param - 1u);
    }
}

static void sweep_bucket(struct weir_table *table, struct params_sweep *sweep,
                         struct table_bucket *bucket, uint64_t now_ns)
{
    /* The holder of the lock may be moving a state here. An owner that takes it later sees that the
     * parameters are swept, and moves none (target.c). */
    bool any = __atomic_load_n(&bucket->lock, __ATOMIC_ACQUIRE) != 0;

    for (uint32_t i = 0; i < BUCKET_SLOTS && !any; i++)
        any = is_candidate(sweep, __atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED));
    if (!any)
        return;
    if (!owner_lock(table->service, &bucket->lock)) {
        sweep->partial = true;
        return;
    }
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        sweep_slot(table, sweep, bucket, i, now_ns);
    owner_unlock(&bucket->lock);
}

/* Drops what no state has and no process has pinned since the sweep began. What a later sweep has
 * taken over is left to that one. */
static void finish(struct weir_table *table, const struct params_sweep *sweep, uint64_t now_ns)
{
    struct params_set pinned;

    if (params_lock(table) < 0)
        return;
    params_pinned(table, &pinned);
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        struct table_param *param = &table->params[i];

        if (!params_set_has(&sweep->candidates, i) || param->swept != table->service->me)
            continue;
        params_set_swept(param, 0);
        if (!sweep->partial && !params_set_has(&sweep->used, i) && !params_set_has(&pinned, i) &&
            param->pinned == sweep->pinned[i] && !overflow_is_live(param, now_ns))
            params_drop(table, param);
    }
    params_unlock(table);
}

void sweep_close(struct weir_table *table)
{
    const struct params_sweep *sweep = table->sweep;

    for (uint32_t i = 0; sweep && i < table->fixed.params_max; i++)
        if (sweep->successor[i] != 0)
            params_unpin(table, sweep->successor[i]);
    free(table->sweep);
    table->sweep = NULL;
}

bool sweep_step(struct weir_table *table, uint64_t now_ns, uint64_t buckets, bool pressure)
{
    struct params_sweep *sweep = table->sweep;
    uint64_t end;

    if (!sweep) {
        table->sweep = begin(table, pressure);
        return table->sweep;
    }
    end = sweep->at + buckets < table->fixed.buckets ? sweep->at + buckets : table->fixed.buckets;
    for (; sweep->at < end; sweep->at++)
        sweep_bucket(table, sweep, &table->buckets[sweep->at], now_ns);
    if (end < table->fixed.buckets)
        return true;
    finish(table, sweep, now_ns);
    sweep_close(table);
    return false;
}

/* Empties a slot. A span that is not its own is left alone: the file may be damaged. */
static void empty_slot(struct weir_table_owner *owner, uint64_t index, uint32_t i)
{
    struct weir_table *table = owner->table;
    struct table_bucket *bucket = region_bucket(table, index);
    uint64_t span = slot_span(bucket, i);

    undo_save_param(owner, bucket, i);
    slot_set_param(bucket, i, 0);
    if (heap_words(table, span) > 0 && *heap_owner_of(table, span) == (index << 3 | i))
        heap_give(owner, span);
    undo_finish(owner);
}

int sweep_dropped(struct weir_table *table)
{
    struct weir_table_owner *owner = owner_open_alone(table);
    uint32_t *heap_lock = &table->header->heap_lock;

    if (!owner)
        return WEIR_ERR_MEMORY;
    if (!owner_lock(owner, heap_lock)) { /* never: all owners are gone */
        free(owner);
        return WEIR_ERR_BUSY;
    }
    for (uint64_t b = 0; b < table->fixed.buckets; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
            if (params_is_dropped(table, table->buckets[b].param[i]))
                empty_slot(owner, b, i);
    owner_unlock(heap_lock);
    free(owner);
    return 0;
}
