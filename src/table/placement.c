/* SPDX-License-Identifier: Apache-2.0 */
/* see placement.h */
#include "table/placement.h"

#include "table/account.h"
#include "table/slot.h"

/* The first slot of a bucket that is empty, or whose state is fresh. */
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

/* The live states of two buckets, one of which may be evicted. */
struct candidate {
    struct slot_view view;
    uint32_t account;
    uint8_t bucket, slot; /* of the pair */
};

struct candidates {
    uint32_t count;
    struct candidate at[2 * BUCKET_SLOTS];
};

static void look_at_all(struct weir_table_owner *owner, struct table_bucket *const pair[2],
                        uint64_t now_ns, const struct place *place, struct candidates *all)
{
    all->count = 0;
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            struct candidate *candidate = &all->at[all->count];

            if ((place->taken[b] >> i & 1) ||
                !slot_look(owner->table, pair[b], i, now_ns, &candidate->view))
                continue;
            candidate->account = account_of(owner->table, pair[b]->param[i]);
            candidate->bucket = (uint8_t)b;
            candidate->slot = (uint8_t)i;
            account_note(owner, &owner->slots, candidate->account, candidate->view.denies);
            all->count++;
        }
}

/* The account of the pair that holds most, of those above their guarantee; `mine` if there is none.
 */
static uint32_t largest(const struct weir_table_owner *owner, const struct candidates *all,
                        uint32_t mine)
{
    uint32_t most = 0, result = mine;

    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t account = all->at[i].account, held = account_held(owner, &owner->slots, account);

        if (held > most && account_is_above(owner, &owner->slots, account)) {
            most = held;
            result = account;
        }
    }
    return result;
}

bool placement_is_before(const struct slot_view *a, const struct slot_view *b, bool denying_first)
{
    if (a->denies != b->denies)
        return a->denies == denying_first;
    if (a->used != b->used)
        return a->used < b->used;
    return a->fresh_at_ns < b->fresh_at_ns;
}

/* Which states may be evicted: those that yield to any other, or those of one account, perhaps also
 * those that deny. */
struct choice {
    bool yielding, denying, denying_first;
    uint32_t account;
};

static const struct candidate *find_victim(const struct candidates *all,
                                           const struct choice *choice)
{
    const struct candidate *victim = NULL;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct candidate *candidate = &all->at[i];
        bool may_evict = choice->yielding ? candidate->view.yields
                                          : candidate->account == choice->account &&
                                                (choice->denying || !candidate->view.denies);

        if (may_evict && (!victim || placement_is_before(&candidate->view, &victim->view,
                                                         choice->denying_first)))
            victim = candidate;
    }
    return victim;
}

enum placement placement_evict(struct weir_table_owner *owner, struct table_bucket *const pair[2],
                               uint16_t param, uint64_t now_ns, struct place *place)
{
    struct choice choice = {.yielding = true, .account = account_of(owner->table, param)};
    const struct candidate *victim;
    struct candidates all;

    account_refresh(owner, now_ns);
    look_at_all(owner, pair, now_ns, place, &all);
    victim = find_victim(&all, &choice);
    if (!victim) {
        choice.yielding = false;
        if (!account_is_above(owner, &owner->slots, choice.account)) {
            uint32_t other = largest(owner, &all, choice.account);

            choice.denying = other != choice.account;
            choice.account = other;
        }
        choice.denying_first = account_mostly_denies(owner, &owner->slots, choice.account);
        if (choice.denying_first && !choice.denying)
            return PLACE_NONE;
        victim = find_victim(&all, &choice);
    }
    if (!victim)
        return PLACE_NONE;
    place->bucket = pair[victim->bucket];
    place->slot = victim->slot;
    return PLACE_EVICT;
}
