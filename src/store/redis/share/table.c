/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h */
#include "store/redis/share/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_hash(const struct share_slot *slot, const uint64_t hash[2])
{
    return slot->hash[0] == hash[0] && slot->hash[1] == hash[1] && slot->since_ns != 0;
}

/* Which of a set goes first: free, cold, idle. The larger the later. */
static uint64_t worth(const struct share_slot *slot)
{
    if (slot->since_ns == 0)
        return 0;
    if (slot->entry == NULL)
        return slot->since_ns / 2;
    if (slot->entry->first != NULL || slot->entry->sent)
        return UINT64_MAX;
    return UINT64_MAX / 2 + slot->entry->seen_ns / 2;
}

struct share_slot *share_table_slot(struct redis_shares *shares, const uint64_t hash[2],
                                    uint64_t now_ns)
{
    struct share_slot *set =
        &shares->slots[(size_t)((uint32_t)hash[1] & shares->set_mask) * SHARE_SET];
    struct share_slot *out = set;

    for (uint32_t i = 0; i < SHARE_SET; i++)
        if (is_hash(&set[i], hash))
            return &set[i];
    for (uint32_t i = 1; i < SHARE_SET; i++)
        if (worth(&set[i]) < worth(out))
            out = &set[i];
    if (worth(out) == UINT64_MAX)
        return NULL;
    if (out->entry != NULL)
        share_table_leave(shares, out->entry);
    *out = (struct share_slot){.hash = {hash[0], hash[1]}, .since_ns = now_ns | 1};
    return out;
}

/* Whether portions of one are portions of the other: the same limit, and the same key in Redis,
 * which has the tag in it. */
static bool same_budget(const struct weir_check *of, const struct weir_check *check)
{
    const struct weir_limit_spec *a = &of->limit->spec, *b = &check->limit->spec;

    return of->tag == check->tag && a->algorithm == b->algorithm && a->rate == b->rate &&
           a->window_ns == b->window_ns && a->burst == b->burst && a->segments == b->segments &&
           a->strict == b->strict;
}

static void copy_check(struct share_entry *entry, const struct weir_check *check, size_t name_size)
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

static struct share_entry *new_entry(struct redis_shares *shares, const struct weir_check *check,
                                     const struct share_terms *terms, uint64_t now_ns)
{
    size_t name_size = check->limit->name != NULL ? strlen(check->limit->name) + 1 : 0;
    struct share_entry *entry;

    if (shares->entries >= shares->entries_max)
        return NULL;
    entry = calloc(1, sizeof *entry + name_size + check->key.size);
    if (entry == NULL)
        return NULL;
    entry->terms = *terms;
    share_init(&entry->share, now_ns);
    copy_check(entry, check, name_size);
    entry->seen_ns = now_ns;
    entry->next = shares->all;
    if (entry->next != NULL)
        entry->next->previous = entry;
    shares->all = entry;
    shares->entries++;
    shares->counters.held = shares->entries;
    share_wheel_set(&shares->wheel, &entry->timer, now_ns + SHARE_LIFE_MAX_NS);
    return entry;
}

void share_table_free(struct redis_shares *shares, struct share_entry *entry)
{
    share_wheel_stop(&shares->wheel, &entry->timer);
    if (entry->slot != NULL) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
    }
    if (entry->previous != NULL)
        entry->previous->next = entry->next;
    else
        shares->all = entry->next;
    if (entry->next != NULL)
        entry->next->previous = entry->previous;
    shares->entries--;
    shares->counters.held = shares->entries;
    free(entry);
}

void share_table_queue(struct redis_shares *shares, struct share_entry *entry)
{
    if (entry->queued || entry->sent)
        return;
    entry->queued = true;
    entry->next_queued = NULL;
    *shares->queue_end = entry;
    shares->queue_end = &entry->next_queued;
    shares->busy++;
}

void share_table_leave(struct redis_shares *shares, struct share_entry *entry)
{
    share_wheel_stop(&shares->wheel, &entry->timer);
    if (entry->slot != NULL) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
        entry->slot = NULL;
    }
    entry->gives_back = true;
    share_table_queue(shares, entry);
}

struct share_entry *share_table_entry(struct redis_shares *shares, struct share_slot *slot,
                                      const struct weir_check *check, uint64_t now_ns)
{
    struct share_terms terms;

    if (slot->entry != NULL) {
        if (same_budget(&slot->entry->check, check))
            return slot->entry;
        share_table_leave(shares, slot->entry);
    }
    if (check->key.size > REDIS_SHARES_KEY_MAX ||
        !share_terms_init(&terms, check->limit, shares->life_ns))
        return NULL;
    if (now_ns > slot->since_ns && now_ns - slot->since_ns > SHARE_HOT_LIVES * terms.life_ns) {
        slot->since_ns = now_ns | 1;
        slot->decisions = 0;
    }
    if (++slot->decisions < SHARE_HOT_LIVES * terms.hot_decisions)
        return NULL;
    slot->entry = new_entry(shares, check, &terms, now_ns);
    if (slot->entry != NULL)
        slot->entry->slot = slot;
    return slot->entry;
}
