/* see placement.h */
#include "table/placement.h"

#include "table/slot.h"

/* The first slot of a bucket that nobody has, or whose state is fresh. */
static enum placement find_free(const struct weir_table *table, struct table_bucket *bucket,
                                uint32_t taken, uint64_t now_ns, struct place *place)
{
    place->bucket = bucket;
    for (place->slot = 0; place->slot < BUCKET_SLOTS; place->slot++)
        if (bucket->param[place->slot] == 0 && !(taken >> place->slot & 1))
            return PLACE_EMPTY;
    for (place->slot = 0; place->slot < BUCKET_SLOTS; place->slot++)
        if (!(taken >> place->slot & 1) && slot_fresh_at(table, bucket, place->slot) <= now_ns)
            return PLACE_RECLAIM;
    return PLACE_NONE;
}

enum placement placement_free(const struct weir_table *table, struct table_bucket *const pair[2],
                              uint64_t now_ns, struct place *place)
{
    for (uint32_t b = 0; b < 2; b++) {
        enum placement found = find_free(table, pair[b], place->taken[b], now_ns, place);

        if (found != PLACE_NONE)
            return found;
    }
    return PLACE_NONE;
}

enum placement placement_evict(const struct weir_table *table, struct table_bucket *const pair[2],
                               uint64_t now_ns, struct place *place)
{
    uint64_t nearest = UINT64_MAX;
    enum placement result = PLACE_NONE;

    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            if ((place->taken[b] >> i & 1) || (pair[b]->param[i] & PARAM_SHARED))
                continue;

            uint64_t fresh_at = slot_fresh_at(table, pair[b], i);

            if (fresh_at >= nearest || slot_denies(table, pair[b], i, now_ns))
                continue;
            nearest = fresh_at;
            place->bucket = pair[b];
            place->slot = i;
            result = PLACE_EVICT;
        }
    return result;
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
