/* see placement.h */
#include "table/placement.h"

#include "table/slot.h"

#define FIRST_ENOUGH 3

static uint32_t empty_slots(const struct table_bucket *bucket)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        mask |= (uint32_t)(bucket->param[i] == 0) << i;
    return mask;
}

static uint32_t count_bits(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* What is known of one bucket while choosing. */
struct view {
    uint32_t empty, free; /* free: empty, or fresh */
    uint64_t fresh_at[BUCKET_SLOTS];
};

static void look(const struct weir_table *table, const struct table_bucket *bucket, uint32_t taken,
                 uint64_t now_ns, struct view *view)
{
    view->empty = empty_slots(bucket) & ~taken;
    view->free = 0;
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        view->fresh_at[i] = slot_fresh_at(table, bucket, i);
        view->free |= (uint32_t)(view->fresh_at[i] <= now_ns) << i;
    }
    view->free &= ~taken;
}

/* The live state nearest to fresh that is not denying. */
static enum placement evict(const struct weir_table *table, struct table_bucket *const pair[2],
                            const struct view views[2], uint64_t now_ns, struct place *place)
{
    uint64_t nearest = UINT64_MAX;
    enum placement result = PLACE_NONE;

    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            if ((place->taken[b] >> i & 1) || views[b].fresh_at[i] >= nearest ||
                slot_denies(table, pair[b], i, now_ns) || (pair[b]->param[i] & PARAM_SHARED) != 0)
                continue;
            nearest = views[b].fresh_at[i];
            place->bucket = pair[b];
            place->slot = i;
            result = PLACE_EVICT;
        }
    return result;
}

enum placement placement_choose(const struct weir_table *table, struct table_bucket *const pair[2],
                                uint64_t now_ns, struct place *place)
{
    uint32_t empty = empty_slots(pair[0]);
    struct view views[2];

    if (count_bits(empty) > BUCKET_SLOTS - FIRST_ENOUGH && (empty & ~place->taken[0]) != 0) {
        place->bucket = pair[0];
        place->slot = (uint32_t)__builtin_ctz(empty & ~place->taken[0]);
        return PLACE_EMPTY;
    }
    for (uint32_t b = 0; b < 2; b++)
        look(table, pair[b], place->taken[b], now_ns, &views[b]);

    uint32_t live = BUCKET_SLOTS - count_bits(views[0].free);
    uint32_t other = BUCKET_SLOTS - count_bits(views[1].free);
    uint32_t b = live < FIRST_ENOUGH || live <= other ? 0 : 1;

    if (views[b].free == 0)
        return evict(table, pair, views, now_ns, place);
    place->bucket = pair[b];
    if (views[b].empty != 0) {
        place->slot = (uint32_t)__builtin_ctz(views[b].empty);
        return PLACE_EMPTY;
    }
    place->slot = (uint32_t)__builtin_ctz(views[b].free);
    return PLACE_RECLAIM;
}

int placement_find_param(const struct weir_table *table, struct table_bucket *const pair[2],
                         uint16_t param, uint64_t now_ns, bool last, struct place *place)
{
    uint64_t best = 0;
    int found = -1;

    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            if (pair[b]->param[i] != param || (place->taken[b] >> i & 1))
                continue;

            uint64_t fresh_at = slot_fresh_at(table, pair[b], i);

            if (fresh_at <= now_ns || (found >= 0 && (fresh_at > best) != last))
                continue;
            best = fresh_at;
            found = (int)i;
            place->bucket = pair[b];
            place->slot = i;
        }
    return found;
}
