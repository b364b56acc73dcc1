/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h */
#include "store/redis/share/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_hash(const struct lease_slot *slot, const uint64_t hash[2])
{
    return slot->hash[0] == hash[0] && slot->hash[1] == hash[1] && slot->since_ns != 0;
}

/* Which of a set goes first: free, cold, idle. The larger the later. */
static uint64_t worth(const struct lease_slot *slot)
{
    if (slot->since_ns == 0)
        return 0;
    if (slot->entry == NULL)
        return slot->since_ns / 2;
    if (slot->entry->first != NULL || slot->entry->sent)
        return UINT64_MAX;
    return UINT64_MAX / 2 + slot->entry->seen_ns / 2;
}

struct lease_slot *lease_table_slot(struct redis_leases *leases, const uint64_t hash[2],
                                    uint64_t now_ns)
{
    struct lease_slot *set =
        &leases->slots[(size_t)((uint32_t)hash[1] & leases->set_mask) * LEASE_SET];
    struct lease_slot *out = set;

    for (uint32_t i = 0; i < LEASE_SET; i++)
        if (is_hash(&set[i], hash))
            return &set[i];
    for (uint32_t i = 1; i < LEASE_SET; i++)
        if (worth(&set[i]) < worth(out))
            out = &set[i];
    if (worth(out) == UINT64_MAX)
        return NULL;
    if (out->entry != NULL)
        lease_table_leave(leases, out->entry);
    *out = (struct lease_slot){.hash = {hash[0], hash[1]}, .since_ns = now_ns | 1};
    return out;
}

/* Whether shares of one are shares of the other: the same limit, and the same key in Redis, which
 * has the tag in it. */
static bool same_budget(const struct weir_check *of, const struct weir_check *check)
{
    const struct weir_limit_spec *a = &of->limit->spec, *b = &check->limit->spec;

    return of->tag == check->tag && a->algorithm == b->algorithm && a->rate == b->rate &&
           a->window_ns == b->window_ns && a->burst == b->burst && a->segments == b->segments &&
           a->strict == b->strict;
}

static void copy_check(struct lease_entry *entry, const struct weir_check *check, size_t name_size)
{
    char *key = entry->text;

    entry->limit = *check->limit;
    entry->limit.local = NULL;
    if (check->limit->name != NULL) {
        memcpy(entry->text, check->limit->name, name_size);
        entry->limit.name = entry->text;
        key += name_size;
    }
    if (check->key.size > 0)
        memcpy(key, check->key.data, check->key.size);
    entry->check = *check;
    entry->check.limit = &entry->limit;
    entry->check.key.data = key;
}

static struct lease_entry *new_entry(struct redis_leases *leases, const struct weir_check *check,
                                     const struct lease_terms *terms, uint64_t now_ns)
{
    size_t name_size = check->limit->name != NULL ? strlen(check->limit->name) + 1 : 0;
    struct lease_entry *entry;

    if (leases->entries >= leases->entries_max)
        return NULL;
    entry = calloc(1, sizeof *entry + name_size + check->key.size);
    if (entry == NULL)
        return NULL;
    entry->terms = *terms;
    lease_init(&entry->lease, now_ns);
    copy_check(entry, check, name_size);
    entry->seen_ns = now_ns;
    entry->next = leases->all;
    if (entry->next != NULL)
        entry->next->previous = entry;
    leases->all = entry;
    leases->entries++;
    leases->counters.held = leases->entries;
    lease_wheel_set(&leases->wheel, &entry->timer, now_ns + LEASE_LIFE_MAX_NS);
    return entry;
}

void lease_table_free(struct redis_leases *leases, struct lease_entry *entry)
{
    lease_wheel_stop(&leases->wheel, &entry->timer);
    if (entry->slot != NULL) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
    }
    if (entry->previous != NULL)
        entry->previous->next = entry->next;
    else
        leases->all = entry->next;
    if (entry->next != NULL)
        entry->next->previous = entry->previous;
    leases->entries--;
    leases->counters.held = leases->entries;
    free(entry);
}

void lease_table_queue(struct redis_leases *leases, struct lease_entry *entry)
{
    if (entry->queued || entry->sent)
        return;
    entry->queued = true;
    entry->next_queued = NULL;
    *leases->queue_end = entry;
    leases->queue_end = &entry->next_queued;
    leases->busy++;
}

void lease_table_leave(struct redis_leases *leases, struct lease_entry *entry)
{
    lease_wheel_stop(&leases->wheel, &entry->timer);
    if (entry->slot != NULL) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
        entry->slot = NULL;
    }
    entry->gives_back = true;
    lease_table_queue(leases, entry);
}

struct lease_entry *lease_table_entry(struct redis_leases *leases, struct lease_slot *slot,
                                      const struct weir_check *check, uint64_t now_ns)
{
    struct lease_terms terms;

    if (slot->entry != NULL) {
        if (same_budget(&slot->entry->check, check))
            return slot->entry;
        lease_table_leave(leases, slot->entry);
    }
    if (check->key.size > REDIS_LEASES_KEY_MAX ||
        !lease_terms_init(&terms, check->limit, leases->life_ns))
        return NULL;
    if (now_ns > slot->since_ns && now_ns - slot->since_ns > LEASE_HOT_LIVES * terms.life_ns) {
        slot->since_ns = now_ns | 1;
        slot->decisions = 0;
    }
    if (++slot->decisions < LEASE_HOT_LIVES * terms.hot_decisions)
        return NULL;
    slot->entry = new_entry(leases, check, &terms, now_ns);
    if (slot->entry != NULL)
        slot->entry->slot = slot;
    return slot->entry;
}
