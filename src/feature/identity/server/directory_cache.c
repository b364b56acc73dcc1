/* SPDX-License-Identifier: Apache-2.0 */
/* see directory_cache.h */
#include "feature/identity/server/directory_cache.h"

#include <stdlib.h>
#include <string.h>

/* Two words of a digest, multiplied by secret odd numbers. */
static uint32_t home_of(const struct weir_directory_cache *cache, const uint8_t *digest)
{
    uint64_t a, b;
    memcpy(&a, digest, sizeof a);
    memcpy(&b, digest + sizeof a, sizeof b);
    uint64_t mix = (a ^ cache->seed) * (cache->seed | 1);
    mix = (mix ^ mix >> 32 ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mix >> 32) & cache->mask;
}

int weir_directory_cache_open(struct weir_directory_cache *cache, uint32_t max, uint64_t seed)
{
    uint32_t slots = 2;
    while (slots < 2 * max)
        slots *= 2;
    *cache = (struct weir_directory_cache){.max = max, .mask = slots - 1, .seed = seed};
    cache->entries = calloc(max, sizeof *cache->entries);
    cache->slots = calloc(slots, sizeof *cache->slots);
    if (cache->entries && cache->slots)
        return 0;
    free(cache->entries);
    free(cache->slots);
    return WEIR_ERR_MEMORY;
}

void weir_directory_cache_close(struct weir_directory_cache *cache)
{
    for (uint32_t i = 0; i < cache->count; i++)
        free(cache->entries[i].record);
    free(cache->entries);
    free(cache->slots);
    *cache = (struct weir_directory_cache){.max = 0};
}

/* The slot of a digest, or the empty one where it would stand. */
static uint32_t slot_of(const struct weir_directory_cache *cache, const uint8_t *digest)
{
    uint32_t slot = home_of(cache, digest);
    while (cache->slots[slot] &&
           memcmp(cache->entries[cache->slots[slot] - 1].digest, digest, WEIR_DIGEST_BYTES) != 0)
        slot = (slot + 1) & cache->mask;
    return slot;
}

struct weir_directory_entry *weir_directory_cache_find(struct weir_directory_cache *cache,
                                                       const uint8_t digest[WEIR_DIGEST_BYTES])
{
    uint32_t index = cache->slots[slot_of(cache, digest)];
    if (!index)
        return NULL;
    struct weir_directory_entry *entry = &cache->entries[index - 1];
    entry->found = true;
    return entry;
}

/* Empties a slot and moves those up that would not be found any more (Knuth, 6.4, algorithm R). */
static void slot_clear(struct weir_directory_cache *cache, uint32_t hole)
{
    for (uint32_t at = (hole + 1) & cache->mask; cache->slots[at]; at = (at + 1) & cache->mask) {
        uint32_t home = home_of(cache, cache->entries[cache->slots[at] - 1].digest);
        bool reaches = ((at - home) & cache->mask) >= ((at - hole) & cache->mask);
        if (reaches) {
            cache->slots[hole] = cache->slots[at];
            hole = at;
        }
    }
    cache->slots[hole] = 0;
}

/* The index of an entry that has gone: ends, since each is skipped once at most. */
static uint32_t evict(struct weir_directory_cache *cache)
{
    struct weir_directory_entry *entry = &cache->entries[cache->hand];
    while (entry->found) {
        entry->found = false;
        cache->hand = (cache->hand + 1) % cache->max;
        entry = &cache->entries[cache->hand];
    }
    uint32_t index = cache->hand;
    slot_clear(cache, slot_of(cache, entry->digest));
    free(entry->record);
    cache->hand = (cache->hand + 1) % cache->max;
    return index;
}

struct weir_directory_entry *weir_directory_cache_put(struct weir_directory_cache *cache,
                                                      const uint8_t digest[WEIR_DIGEST_BYTES])
{
    struct weir_directory_entry *entry = weir_directory_cache_find(cache, digest);
    if (entry)
        return entry;
    uint32_t index = cache->count < cache->max ? cache->count++ : evict(cache);
    entry = &cache->entries[index];
    *entry = (struct weir_directory_entry){.found = false};
    memcpy(entry->digest, digest, WEIR_DIGEST_BYTES);
    /* Its digest is in the entry already, so the search has to be for an empty slot. */
    uint32_t slot = home_of(cache, digest);
    while (cache->slots[slot])
        slot = (slot + 1) & cache->mask;
    cache->slots[slot] = index + 1;
    return entry;
}

void weir_directory_cache_remove(struct weir_directory_cache *cache,
                                 const uint8_t digest[WEIR_DIGEST_BYTES])
{
    uint32_t slot = slot_of(cache, digest), index = cache->slots[slot];
    if (!index)
        return;
    struct weir_directory_entry *entry = &cache->entries[index - 1];
    struct weir_directory_entry *last = &cache->entries[cache->count - 1];
    free(entry->record);
    slot_clear(cache, slot);
    if (entry != last) {
        cache->slots[slot_of(cache, last->digest)] = index;
        *entry = *last;
    }
    cache->count--;
    if (cache->hand >= cache->count)
        cache->hand = 0;
}
