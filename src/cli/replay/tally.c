/* SPDX-License-Identifier: Apache-2.0 */
/* see tally.h */
#include "cli/replay/tally.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/error.h>

#define SLOTS_MIN 1024 /* a power of two */
#define HUGE_PAGE ((size_t)2 << 20)

struct replay_tally {
    struct replay_count *counts;
    uint32_t rules;
    void *memory;             /* of the slots */
    struct replay_key *slots; /* open addressing; requests == 0: empty */
    size_t slot_count, used;  /* slot_count is a power of two, at most 3/4 are used */
    uint64_t keys_max;
};

/* Empty slots in memory that the caller frees, on huge pages where there are so many. NULL: none.
 */
static struct replay_key *new_slots(size_t count, void **memory)
{
    size_t size = count * sizeof(struct replay_key);
    size_t unit = size >= HUGE_PAGE ? HUGE_PAGE : sizeof(struct replay_key);
    *memory = calloc(1, size + unit);
    if (!*memory)
        return NULL;
    char *start = *memory;
    start += unit - (uintptr_t)start % unit;
    if (unit == HUGE_PAGE)
        madvise(start, size, MADV_HUGEPAGE); /* only a hint */
    return (struct replay_key *)(void *)start;
}

struct replay_tally *replay_tally_open(uint32_t rules, uint64_t keys_max)
{
    struct replay_tally *tally = calloc(1, sizeof *tally);
    if (!tally)
        return NULL;
    tally->rules = rules;
    tally->keys_max = keys_max;
    tally->slot_count = SLOTS_MIN;
    tally->counts = calloc(rules > 0 ? rules : 1, sizeof *tally->counts);
    tally->slots = new_slots(SLOTS_MIN, &tally->memory);
    if (!tally->counts || !tally->slots) {
        replay_tally_close(tally);
        return NULL;
    }
    for (uint32_t i = 0; i < rules; i++)
        tally->counts[i].keys_complete = true;
    return tally;
}

void replay_tally_close(struct replay_tally *tally)
{
    if (!tally)
        return;
    for (size_t i = 0; tally->slots && i < tally->slot_count; i++)
        free(tally->slots[i].text);
    free(tally->memory);
    free(tally->counts);
    free(tally);
}

static size_t first_slot(size_t slot_count, uint32_t rule, const uint64_t hash[2])
{
    return (size_t)(hash[0] ^ rule) & (slot_count - 1);
}

void replay_tally_prefetch(const struct replay_tally *tally, uint32_t rule, const uint64_t hash[2])
{
    __builtin_prefetch(&tally->slots[first_slot(tally->slot_count, rule, hash)], 1);
}

/* The slot of a key, or the empty one where it belongs. */
static struct replay_key *find_slot(struct replay_key *slots, size_t slot_count, uint32_t rule,
                                    const uint64_t hash[2])
{
    size_t at = first_slot(slot_count, rule, hash);
    for (;; at = (at + 1) & (slot_count - 1)) {
        struct replay_key *slot = &slots[at];
        if (slot->requests == 0 ||
            (slot->hash[0] == hash[0] && slot->hash[1] == hash[1] && slot->rule == rule))
            return slot;
    }
}

static int grow(struct replay_tally *tally)
{
    size_t slot_count = tally->slot_count * 2;
    void *memory;
    struct replay_key *slots = new_slots(slot_count, &memory);
    if (!slots)
        return WEIR_ERR_MEMORY;
    for (size_t i = 0; i < tally->slot_count; i++) {
        const struct replay_key *key = &tally->slots[i];
        if (key->requests > 0)
            *find_slot(slots, slot_count, key->rule, key->hash) = *key;
    }
    free(tally->memory);
    tally->memory = memory;
    tally->slots = slots;
    tally->slot_count = slot_count;
    return 0;
}

static int keep_text(struct replay_key *slot, struct weir_bytes key)
{
    slot->text = malloc(key.size > 0 ? key.size : 1);
    if (!slot->text)
        return WEIR_ERR_MEMORY;
    if (key.size > 0)
        memcpy(slot->text, key.data, key.size);
    slot->text_size = (uint32_t)key.size;
    return 0;
}

int replay_tally_add(struct replay_tally *tally, uint32_t rule, const uint64_t hash[2],
                     struct weir_bytes key, bool allowed)
{
    struct replay_count *count = &tally->counts[rule];
    count->requests++;
    count->denied += !allowed;
    struct replay_key *slot = find_slot(tally->slots, tally->slot_count, rule, hash);
    if (slot->requests == 0) {
        if (tally->used >= tally->keys_max) {
            count->keys_complete = false;
            return 0;
        }
        if (tally->used >= tally->slot_count / 4 * 3) {
            if (grow(tally) < 0)
                return WEIR_ERR_MEMORY;
            slot = find_slot(tally->slots, tally->slot_count, rule, hash);
        }
        tally->used++;
        count->keys++;
        slot->rule = rule;
        slot->hash[0] = hash[0];
        slot->hash[1] = hash[1];
    }
    slot->requests++;
    if (allowed)
        return 0;
    count->denied_keys += slot->denied++ == 0;
    return !slot->text ? keep_text(slot, key) : 0;
}

struct replay_count replay_tally_count(const struct replay_tally *tally, uint32_t rule)
{
    return tally->counts[rule];
}

/* Whether `a` is to be listed before `b`. */
static bool is_before(const struct replay_key *a, const struct replay_key *b)
{
    if (a->denied != b->denied)
        return a->denied > b->denied;
    uint32_t size = a->text_size < b->text_size ? a->text_size : b->text_size;
    int order = memcmp(a->text, b->text, size);
    return order != 0 ? order < 0 : a->text_size < b->text_size;
}

size_t replay_tally_top(const struct replay_tally *tally, uint32_t rule,
                        const struct replay_key **top, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < tally->slot_count; i++) {
        const struct replay_key *key = &tally->slots[i];
        if (key->denied == 0 || key->rule != rule)
            continue;
        if (count == max && (max == 0 || !is_before(key, top[max - 1])))
            continue;
        size_t at = count < max ? count++ : max - 1;
        for (; at > 0 && is_before(key, top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = key;
    }
    return count;
}
