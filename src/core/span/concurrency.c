/* SPDX-License-Identifier: Apache-2.0 */
/* see concurrency.h */
#include "core/span/concurrency.h"

#include "core/span/expiry_list.h"

/* Words of a lease behind those of an entry. */
enum { LEASE_ID = 2, LEASE_OWNER = 3 };

bool concurrency_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                      uint64_t cost)
{
    const struct span_change read_only = {.span = *span};
    struct entries list;
    uint32_t first;

    if (cost > limit->spec.rate)
        return false;
    expiry_list_load(limit, &read_only, &list);
    if (list.sum <= limit->spec.rate - cost) /* even if nothing has expired */
        return true;
    return expiry_list_live(&read_only, &list, now_ns, &first) <= limit->spec.rate - cost;
}

void concurrency_charge(const struct weir_limit *limit, const struct span_change *change,
                        const struct weir_use *use)
{
    struct entries list;

    if (use->cost == 0)
        return;
    expiry_list_load(limit, change, &list);
    expiry_list_purge(change, &list, use->now_ns);

    uint32_t n = expiry_list_insert(change, &list, use->now_ns + limit->spec.window_ns, use->cost);

    if (n == 0) /* then nothing was purged either */
        return;
    span_write(change, expiry_list_word(n) + LEASE_ID, use->lease.id);
    span_write(change, expiry_list_word(n) + LEASE_OWNER, use->lease.owner);
    expiry_list_store(change, &list);
}

/* The newest lease with this id; 0: none. */
static uint32_t concurrency_find(const struct span_change *change, const struct entries *list,
                                 uint64_t lease_id, struct entry *entry)
{
    uint32_t n = list->tail;

    for (uint32_t left = list->taken; n != 0 && left > 0; n = entry->previous, left--) {
        expiry_list_read(change, n, entry);
        if (span_read(change, expiry_list_word(n) + LEASE_ID) == lease_id)
            return n;
    }
    return 0;
}

void concurrency_refund(const struct weir_limit *limit, const struct span_change *change,
                        const struct weir_use *use)
{
    struct entries list;
    struct entry entry;

    if (use->cost == 0)
        return;
    expiry_list_load(limit, change, &list);
    uint32_t n = concurrency_find(change, &list, use->lease.id, &entry);

    if (n == 0 || entry.expiry_ns <= use->now_ns)
        return;
    expiry_list_give_back(change, &list, n, use->cost);
    expiry_list_store(change, &list);
}

uint32_t concurrency_release(const struct weir_limit *limit, const struct span_change *change,
                             uint64_t lease_id)
{
    struct entries list;
    struct entry entry;

    expiry_list_load(limit, change, &list);
    uint32_t n = concurrency_find(change, &list, lease_id, &entry);

    if (n == 0)
        return 0;
    expiry_list_unlink(change, &list, n);
    expiry_list_store(change, &list);
    return 1;
}

/* Whether a lease of `owner` is to end: it is this one's, or its owner is none of those alive. */
static bool ends(uint64_t owner, uint64_t wanted, const struct weir_lease_owners *alive)
{
    if (!alive)
        return owner == wanted;
    return owner != 0 && alive->id[owner % WEIR_LEASE_OWNERS] != owner;
}

static uint32_t end_leases(const struct weir_limit *limit, const struct span_change *change,
                           uint64_t owner, const struct weir_lease_owners *alive)
{
    struct entries list;
    struct entry entry;
    uint32_t ended = 0, left;

    expiry_list_load(limit, change, &list);
    left = list.taken;
    for (uint32_t n = list.head; n != 0 && left > 0; n = entry.next, left--) {
        if (change->edits->count + ENTRIES_UNLINK_EDITS + ENTRIES_HEADER_WORDS > WEIR_EDITS_MAX)
            break;
        expiry_list_read(change, n, &entry);
        if (!ends(span_read(change, expiry_list_word(n) + LEASE_OWNER), owner, alive))
            continue;
        expiry_list_unlink(change, &list, n);
        ended++;
    }
    if (ended > 0)
        expiry_list_store(change, &list);
    return ended;
}

uint32_t concurrency_end_owner(const struct weir_limit *limit, const struct span_change *change,
                               uint64_t owner)
{
    return owner != 0 ? end_leases(limit, change, owner, NULL) : 0;
}

uint32_t concurrency_end_dead(const struct weir_limit *limit, const struct span_change *change,
                              const struct weir_lease_owners *alive)
{
    return end_leases(limit, change, 0, alive);
}

uint32_t concurrency_renew(const struct weir_limit *limit, const struct span_change *change,
                           const struct weir_use *use)
{
    struct entries list;
    struct entry entry;

    expiry_list_load(limit, change, &list);
    uint32_t n = concurrency_find(change, &list, use->lease.id, &entry);

    if (n == 0)
        return 0;

    uint64_t owner = span_read(change, expiry_list_word(n) + LEASE_OWNER);

    expiry_list_unlink(change, &list, n);
    n = expiry_list_insert(change, &list, use->now_ns + limit->spec.window_ns, entry.cost);
    if (n == 0) /* of a damaged state */
        return 0;
    span_write(change, expiry_list_word(n) + LEASE_ID, use->lease.id);
    span_write(change, expiry_list_word(n) + LEASE_OWNER, owner);
    expiry_list_store(change, &list);
    return 1;
}

int concurrency_init(struct weir_limit *limit, struct weir_reason *reason)
{
    limit->span_words = expiry_list_words(expiry_list_most(limit));
    return 0;
}
