/* see params.h */
#include "table/params.h"

#include <fcntl.h>
#include <string.h>

#include "core/cell.h"
#include "core/siphash.h"
#include "table/owner.h"
#include "table/span_heap.h"
#include "table/undo.h"

/* table_param.live */
enum { PARAM_NONE, PARAM_LIVE, PARAM_DROPPED };

static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    /* The analyzer takes the address of a member for NULL when a table has few parameters. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments && a->strict == b->strict &&
           a->rollover == b->rollover && a->calendar == b->calendar;
}

/* Where the search for a spec starts. Specs are configuration, so that the key needs no secret. */
static uint32_t first_probe(const struct weir_table *table, const struct weir_limit_spec *spec)
{
    const uint64_t words[] = {spec->algorithm, spec->rate,   spec->window_ns, spec->burst,
                              spec->segments,  spec->strict, spec->rollover,  spec->calendar};
    const uint64_t key[2] = {0, 0};
    uint64_t hash[2];

    weir_siphash128(key, words, sizeof words, hash);
    return (uint32_t)(hash[0] % table->header->params_max);
}

/* The parameters of this spec; else NULL and *vacant is where they may go (NULL: nowhere). */
static struct table_param *lookup_spec(const struct weir_table *table,
                                       const struct weir_limit_spec *spec,
                                       struct table_param **vacant)
{
    uint32_t count = table->header->params_max, at = first_probe(table, spec);

    *vacant = NULL;
    for (uint32_t tries = 0; tries < count; tries++, at = at + 1 < count ? at + 1 : 0) {
        struct table_param *param = &table->params[at];
        uint32_t live = __atomic_load_n(&param->live, __ATOMIC_ACQUIRE);

        if (live == PARAM_LIVE) {
            if (same_spec(&param->limit.spec, spec))
                return param;
            continue;
        }
        if (*vacant == NULL)
            *vacant = param;
        if (live == PARAM_NONE)
            break;
    }
    return NULL;
}

/* Reserves the overflow span; one transaction of the service owner, ended by publishing. */
static int publish(struct weir_table *table, struct table_param *param,
                   const struct weir_limit *limit)
{
    struct weir_table_owner *owner = table->service;
    uint32_t *heap_lock = &table->header->heap_lock;

    memset(&param->limit, 0, sizeof param->limit);
    param->limit = *limit;
    param->limit.id = (uint16_t)(param - table->params + 1);
    /* What is this process' own has no meaning to others. */
    param->limit.name = NULL;
    param->limit.local = NULL;
    param->limit.spec.bounds = NULL;
    param->limit.spec.bound_count = 0;
    param->check = layout_param_check(&param->limit);
    param->cell = (struct weir_cell){0, 0};
    param->span = 0;
    if (limit->span_words > 0) {
        owner_lock(owner, heap_lock);
        param->span = heap_take(owner, limit->span_words);
        if (param->span == 0) {
            undo_cancel(owner);
            owner_unlock(heap_lock);
            return WEIR_ERR_FULL;
        }
        undo_save32(owner, &param->live);
    }
    UNDO_BARRIER();
    __atomic_store_n(&param->live, PARAM_LIVE, __ATOMIC_RELEASE);
    undo_finish(owner);
    if (limit->span_words > 0)
        owner_unlock(heap_lock);
    return 0;
}

static int file_lock(const struct weir_table *table, short type)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)LOCK_INTERN, .l_len = 1};

    return table->fd < 0 ? 0 : fcntl(table->fd, F_OFD_SETLKW, &lock);
}

int weir_table_intern(struct weir_table *table, struct weir_limit *limit)
{
    struct table_param *vacant, *param = lookup_spec(table, &limit->spec, &vacant);
    int err = 0;

    if (param == NULL) {
        pthread_mutex_lock(&table->mutex);
        if (file_lock(table, F_WRLCK) != 0) {
            pthread_mutex_unlock(&table->mutex);
            return WEIR_ERR_IO;
        }
        param = lookup_spec(table, &limit->spec, &vacant); /* somebody may have been faster */
        if (param == NULL && limit->span_words <= SPAN_WORDS_MAX && vacant != NULL) {
            err = publish(table, vacant, limit);
            param = err == 0 ? vacant : NULL;
        }
        file_lock(table, F_UNLCK);
        pthread_mutex_unlock(&table->mutex);
    }
    if (param == NULL)
        return WEIR_ERR_FULL;
    limit->id = param->limit.id;
    return err;
}

bool weir_table_knows(const struct weir_table *table, const struct weir_limit *limit)
{
    struct table_param *vacant;

    return lookup_spec(table, &limit->spec, &vacant) != NULL;
}

uint32_t weir_table_param_count(const struct weir_table *table)
{
    uint32_t live = 0;

    for (uint32_t i = 0; i < table->header->params_max; i++)
        live += __atomic_load_n(&table->params[i].live, __ATOMIC_RELAXED) == PARAM_LIVE;
    return live;
}

static bool overflow_fresh(const struct weir_table *table, const struct table_param *param,
                           uint64_t now_ns)
{
    if (param->limit.span_words == 0)
        return cell_fresh_at(&param->limit, &param->cell) <= now_ns;

    const uint64_t *span = heap_span(table, param->span, param->limit.span_words);

    return span == NULL || weir_span_fresh_at(&param->limit, span) <= now_ns;
}

/* Whether more than half of the parameters are taken: sweeping walks the whole table. */
static bool crowded(const struct weir_table *table)
{
    return weir_table_param_count(table) > table->header->params_max / 2;
}

void params_sweep(struct weir_table *table, uint64_t now_ns)
{
    uint64_t used[(WEIR_TABLE_PARAMS_MAX + 63) / 64 + 1] = {0};
    struct weir_table_owner *owner = table->service;

    if (!crowded(table))
        return;
    for (uint64_t b = 0; b < table->header->buckets; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            uint32_t id = table->buckets[b].param[i] & (PARAM_SHARED - 1);

            if (id <= WEIR_TABLE_PARAMS_MAX)
                used[id / 64] |= UINT64_C(1) << id % 64;
        }
    for (uint32_t i = 0; i < table->header->params_max; i++) {
        struct table_param *param = &table->params[i];
        uint32_t id = i + 1;

        if (param->live != PARAM_LIVE || (used[id / 64] >> id % 64 & 1) ||
            !overflow_fresh(table, param, now_ns))
            continue;
        owner_lock(owner, &table->header->heap_lock);
        undo_save32(owner, &param->live);
        param->live = PARAM_DROPPED;
        if (param->limit.span_words > 0)
            heap_give(owner, param->span);
        undo_finish(owner);
        owner_unlock(&table->header->heap_lock);
    }
}

/* Whether these parameters are what was once compiled. */
static bool compiles(const struct weir_limit *limit)
{
    static const uint64_t any_calendar[WEIR_BOUNDS_MIN] = {0, 1};
    struct weir_limit_spec spec = limit->spec;
    struct weir_limit compiled;

    if (limit->name != NULL || limit->local != NULL || spec.bounds != NULL || spec.bound_count != 0)
        return false;
    if (spec.algorithm == WEIR_QUOTA) {
        spec.bounds = any_calendar;
        spec.bound_count = WEIR_BOUNDS_MIN;
    }
    return weir_limit_init(&compiled, &spec, NULL) == 0 && compiled.span_words == limit->span_words;
}

bool params_consistent(const struct weir_table *table)
{
    for (uint32_t i = 0; i < table->header->params_max; i++) {
        const struct table_param *param = &table->params[i];
        uint32_t words = param->limit.span_words;

        if (param->live == PARAM_NONE || param->live == PARAM_DROPPED)
            continue;
        if (param->live != PARAM_LIVE || param->check != layout_param_check(&param->limit) ||
            param->limit.id != i + 1 || !compiles(&param->limit))
            return false;
        if (words > 0 && heap_span(table, param->span, words) == NULL)
            return false;
    }
    return true;
}
