/* SPDX-License-Identifier: Apache-2.0 */
/* see make_room.h */
#include "table/span/make_room.h"

#include <string.h>

#include "table/account.h"
#include "table/owner.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span/heap.h"
#include "table/undo.h"

/* Random pages to look at, one state in each, which takes some microseconds. */
#define CANDIDATES 16
/* The same when there is no sample of the accounts yet. */
#define FIRST_SAMPLE 256
/* Places at which to try to free a whole run, and how many states may be evicted or moved for that:
 * mostly a hundred, which takes some ten microseconds; at worst a millisecond. */
#define DRAINS 3
#define DRAIN_STEPS 4096

/* A slot that owns a span, locked. */
struct victim {
    struct table_bucket *bucket;
    uint32_t slot, account;
    uint64_t span;
    struct slot_view view;
};

/* A state that was seen; it may be gone or changed meanwhile. */
struct candidate {
    uint64_t page, span;
    uint32_t account;
    struct slot_view view;
};

struct room {
    uint64_t now_ns;
    uint64_t own;  /* the span of the state that needs room; 0: a new one */
    uint32_t most; /* the most that states of its own account may have used to be evicted for it */
    uint32_t words, mine, payer;
    bool denying;   /* the payer mostly denies: its states that do not deny are spared */
    uint32_t steps; /* that are left */
    uint32_t count;
    struct candidate candidates[CANDIDATES];
};

/* Finds the next span of a page and locks its slot. Returns 1; 0: there is none, or owner->stuck;
 * -1: the span has no slot at the moment, or its bucket is busy. */
static int next_victim(struct weir_table_owner *owner, uint64_t page, uint32_t *i, uint64_t now_ns,
                       struct victim *victim)
{
    struct weir_table *table = owner->table;

    if (!owner_lock(owner, &table->header->heap_lock))
        return 0;
    victim->span = heap_next_in(table, page, i);

    uint64_t at = victim->span != 0 ? *heap_owner_of(table, victim->span) : SPAN_UNOWNED;

    owner_unlock(&table->header->heap_lock);
    if (victim->span == 0)
        return 0;
    if (at >> 3 >= table->fixed.buckets || (at & 7) >= BUCKET_SLOTS)
        return -1;
    victim->bucket = region_bucket(table, at >> 3);
    victim->slot = at & 7;
    if (!owner_try_stale(owner, &victim->bucket->lock))
        return -1;

    uint16_t param = victim->bucket->param[victim->slot];
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, param, &room);

    if (!limit || !region_has_span(limit) ||
        slot_span(victim->bucket, victim->slot) != victim->span) {
        owner_unlock(&victim->bucket->lock);
        return -1;
    }
    victim->account = account_of(table, param);
    slot_look(table, victim->bucket, victim->slot, now_ns, &victim->view);
    return 1;
}

/* Empties a locked slot, unless owner->stuck, and unlocks it. */
static void evict(struct weir_table_owner *owner, const struct victim *victim, uint64_t now_ns)
{
    struct weir_table *table = owner->table;
    uint16_t *param = &victim->bucket->param[victim->slot];

    if (!owner_lock(owner, &table->header->heap_lock)) {
        owner_unlock(&victim->bucket->lock);
        return;
    }
    if (victim->view.fresh_at_ns <= now_ns) {
        owner_count(owner, COUNT_RECLAIMED);
    } else {
        owner_count(owner, COUNT_EVICTIONS);
        account_count_eviction(table, *param);
    }
    undo_save_param(owner, victim->bucket, victim->slot);
    __atomic_store_n(param, 0, __ATOMIC_RELAXED);
    heap_give(owner, victim->span);
    undo_finish(owner);
    owner_unlock(&table->header->heap_lock);
    owner_unlock(&victim->bucket->lock);
}

/* Moves the state of a locked slot to a span of another page. Unlocks the slot only if that
 * succeeds. */
static bool move(struct weir_table_owner *owner, const struct victim *victim)
{
    struct weir_table *table = owner->table;
    struct table_bucket *bucket = victim->bucket;
    uint64_t *words = bucket->slot[victim->slot].words;

    if (!owner_lock(owner, &table->header->heap_lock))
        return false;

    uint64_t span = heap_take_remote(owner, victim->span);

    if (span != 0) {
        uint32_t state[3] = {(uint32_t)span, (uint32_t)(span >> 32), 0};
        uint32_t from = heap_words(table, victim->span), to = heap_words(table, span);

        memcpy(table->base + span, table->base + victim->span,
               ((size_t)(from < to ? from : to) + 1) * 8);
        undo_save64(owner, &words[0]);
        undo_save64(owner, &words[1]);
        slot_write_state(bucket, victim->slot, state);
        heap_give(owner, victim->span);
        undo_finish(owner);
    }
    owner_unlock(&table->header->heap_lock);
    if (span != 0)
        owner_unlock(&bucket->lock);
    return span != 0;
}

/* Whether a state may be evicted for the one that needs room. A state that denies may be only if
 * its account holds more than its guarantee and the other's account does not; of an account that
 * mostly denies, only states that deny may be. */
static bool may_evict(const struct room *room, uint64_t span, uint32_t account,
                      const struct slot_view *view)
{
    if (span == room->own)
        return false;
    if (view->fresh_at_ns <= room->now_ns)
        return true;
    if (account != room->payer)
        return false;
    if (room->payer == room->mine)
        return !view->denies && view->used <= room->most;
    return view->denies || !room->denying;
}

/* Looks at a state in a random page, and notes its account. */
static bool look_somewhere(struct weir_table_owner *owner, uint64_t now_ns, uint64_t *page,
                           struct victim *victim)
{
    uint32_t i;

    *page = owner_random(owner) % owner->table->fixed.pages;
    i = (uint32_t)owner_random(owner) % (PAGE_WORDS / 4);
    /* In a page of larger spans, `i` may lie behind the last one: then take the first. */
    for (int tries = 0; tries < 2; tries++, i = 0) {
        int found = next_victim(owner, *page, &i, now_ns, victim);

        if (found == 0)
            continue;
        if (found > 0 && victim->view.fresh_at_ns > now_ns)
            account_note(owner, &owner->spans, victim->account, victim->view.denies);
        return found > 0;
    }
    return false;
}

/* Collects states that may be evicted; removes fresh ones at once. */
static void find_candidates(struct weir_table_owner *owner, struct room *room)
{
    struct victim victim;
    uint64_t page;

    if (account_forget(owner, &owner->spans, room->now_ns))
        for (uint32_t i = 0; i < FIRST_SAMPLE && !owner->stuck; i++)
            if (look_somewhere(owner, room->now_ns, &page, &victim))
                owner_unlock(&victim.bucket->lock);
    for (uint32_t i = 0; i < CANDIDATES && !owner->stuck; i++) {
        if (!look_somewhere(owner, room->now_ns, &page, &victim))
            continue;
        if (victim.view.fresh_at_ns <= room->now_ns && victim.span != room->own) {
            evict(owner, &victim, room->now_ns);
            continue;
        }
        owner_unlock(&victim.bucket->lock);
        room->candidates[room->count++] =
            (struct candidate){page, victim.span, victim.account, victim.view};
    }
}

/* Chooses the account whose states are evicted: that of the new state, or the one that holds most.
 */
static void find_payer(const struct weir_table_owner *owner, struct room *room)
{
    uint32_t most = 0;

    room->payer = room->mine;
    if (account_is_above(owner, &owner->spans, room->mine))
        return;
    for (uint32_t i = 0; i < room->count; i++) {
        uint32_t account = room->candidates[i].account;
        uint32_t held = account_held(owner, &owner->spans, account);

        if (held > most && account_is_above(owner, &owner->spans, account)) {
            most = held;
            room->payer = account;
        }
    }
}

/* Takes the candidate to evict first from the list. */
static bool next_candidate(struct room *room, struct candidate *first)
{
    struct candidate *best = NULL;

    for (uint32_t i = 0; i < room->count; i++) {
        struct candidate *one = &room->candidates[i];

        if (may_evict(room, one->span, one->account, &one->view) &&
            (!best || placement_is_before(&one->view, &best->view, room->denying)))
            best = one;
    }
    if (!best)
        return false;
    *first = *best;
    *best = room->candidates[--room->count];
    return true;
}

/* Evicts a state in a span of one size in another page than `page`, so that a state can move there.
 */
static bool free_one_span(struct weir_table_owner *owner, struct room *room, uint64_t page,
                          uint32_t words)
{
    for (; room->steps > 0 && !owner->stuck; room->steps--) {
        struct victim victim;
        uint64_t at;

        if (!look_somewhere(owner, room->now_ns, &at, &victim))
            continue;
        if (at != page && heap_words(owner->table, victim.span) == words &&
            may_evict(room, victim.span, victim.account, &victim.view)) {
            evict(owner, &victim, room->now_ns);
            return true;
        }
        owner_unlock(&victim.bucket->lock);
    }
    return false;
}

/* Evicts or moves all states of a page. */
static bool drain(struct weir_table_owner *owner, struct room *room, uint64_t page)
{
    struct victim victim;
    uint32_t i = 0;

    for (; room->steps > 0; room->steps--) {
        int found = next_victim(owner, page, &i, room->now_ns, &victim);

        if (found <= 0)
            return found == 0 && !owner->stuck;
        if (may_evict(room, victim.span, victim.account, &victim.view)) {
            evict(owner, &victim, room->now_ns);
        } else if (!move(owner, &victim)) {
            uint32_t words = heap_words(owner->table, victim.span);

            owner_unlock(&victim.bucket->lock);
            if (heap_run(words) > 0 || !free_one_span(owner, room, page, words))
                return false;
            i--; /* once more */
        }
    }
    return false;
}

/* Frees as many adjacent pages as the room needs, around that of a candidate. */
static bool drain_around(struct weir_table_owner *owner, struct room *room, uint64_t page)
{
    uint64_t pages = owner->table->fixed.pages;
    uint32_t count = heap_run(room->words) > 0 ? heap_run(room->words) : 1;

    if (count > pages)
        return false;
    if (page + count > pages)
        page = pages - count;
    for (uint32_t i = 0; i < count; i++)
        if (!drain(owner, room, page + i))
            return false;
    return true;
}

/* Evicts a candidate, if it still may be evicted. */
static bool evict_candidate(struct weir_table_owner *owner, const struct room *room,
                            const struct candidate *candidate)
{
    struct victim victim;
    uint32_t i = 0;
    int found;

    while ((found = next_victim(owner, candidate->page, &i, room->now_ns, &victim)) != 0) {
        if (found < 0)
            continue;
        if (victim.span == candidate->span &&
            may_evict(room, victim.span, victim.account, &victim.view)) {
            evict(owner, &victim, room->now_ns);
            return true;
        }
        owner_unlock(&victim.bucket->lock);
    }
    return false;
}

void make_room(struct weir_table_owner *owner, uint64_t now_ns)
{
    struct weir_table *table = owner->table;
    struct room room = {.now_ns = now_ns,
                        .own = owner->need_span,
                        .most = owner->need_used > 0 ? owner->need_used / 2 : UINT32_MAX,
                        .words = owner->need,
                        .mine = account_of(table, owner->need_param),
                        .steps = DRAIN_STEPS};
    struct candidate first;

    find_candidates(owner, &room);
    if (heap_run(room.words) == 0 && heap_has_room(table, room.words)) /* fresh ones have gone */
        return;
    find_payer(owner, &room);
    room.denying = account_mostly_denies(owner, &owner->spans, room.payer);
    if (room.denying && room.payer == room.mine)
        return; /* placement.h */
    for (uint32_t drains = 0; drains < DRAINS && !owner->stuck && next_candidate(&room, &first);) {
        if (heap_words(table, first.span) == heap_round(room.words)) {
            if (evict_candidate(owner, &room, &first))
                return;
            continue;
        }
        if (drain_around(owner, &room, first.page))
            return;
        drains++;
    }
}
