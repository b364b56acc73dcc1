/* SPDX-License-Identifier: Apache-2.0 */
/* see top_denied.h */
#include "engine/top_denied.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"

#define INDEX_SIZE (2 * WEIR_TOP_DENIED_KEYS) /* half full at most: probes stay short */
#define NO_ENTRY UINT16_MAX
#define SUFFIX_SIZE 17 /* '~' and 64 bits of the hash in hexadecimal */

struct weir_top_denied {
    atomic_flag locked;
    uint16_t count;
    uint16_t heap[WEIR_TOP_DENIED_KEYS];  /* entry numbers; the smallest count is heap[0] */
    uint16_t place[WEIR_TOP_DENIED_KEYS]; /* entry number -> its place in the heap */
    uint16_t index[INDEX_SIZE];
    struct weir_denied_key entries[WEIR_TOP_DENIED_KEYS];
};

int weir_top_denied_open(struct weir_top_denied **top_denied)
{
    struct weir_top_denied *o = calloc(1, sizeof *o);
    if (!o)
        return WEIR_ERR_MEMORY;
    atomic_flag_clear(&o->locked);
    for (size_t i = 0; i < INDEX_SIZE; i++)
        o->index[i] = NO_ENTRY;
    *top_denied = o;
    return 0;
}

void weir_top_denied_close(struct weir_top_denied *top_denied)
{
    free(top_denied);
}

static bool try_lock(struct weir_top_denied *o)
{
    return !atomic_flag_test_and_set_explicit(&o->locked, memory_order_acquire);
}

static void unlock(struct weir_top_denied *o)
{
    atomic_flag_clear_explicit(&o->locked, memory_order_release);
}

/* --- The index -------------------------------------------------------------------------------- */

static size_t home(const uint64_t hash[2])
{
    return hash[0] % INDEX_SIZE;
}

/* The index slot that holds the key, or the free one where it would go. */
static size_t index_find(const struct weir_top_denied *o, const uint64_t hash[2])
{
    size_t slot = home(hash);
    while (o->index[slot] != NO_ENTRY) {
        const struct weir_denied_key *e = &o->entries[o->index[slot]];
        if (e->hash[0] == hash[0] && e->hash[1] == hash[1])
            break;
        slot = (slot + 1) % INDEX_SIZE;
    }
    return slot;
}

/* Removes by shifting back what a probe would otherwise no longer reach (Knuth, TAOCP vol. 3, 6.4,
 * algorithm R), so that no tombstones collect. */
static void index_remove(struct weir_top_denied *o, const uint64_t hash[2])
{
    size_t hole = index_find(o, hash);
    for (size_t slot = (hole + 1) % INDEX_SIZE; o->index[slot] != NO_ENTRY;
         slot = (slot + 1) % INDEX_SIZE) {
        size_t from_home = (slot + INDEX_SIZE - home(o->entries[o->index[slot]].hash)) % INDEX_SIZE;
        size_t from_hole = (slot + INDEX_SIZE - hole) % INDEX_SIZE;
        if (from_home >= from_hole) {
            o->index[hole] = o->index[slot];
            hole = slot;
        }
    }
    o->index[hole] = NO_ENTRY;
}

/* --- The heap --------------------------------------------------------------------------------- */

static uint64_t heap_count(const struct weir_top_denied *o, size_t at)
{
    return o->entries[o->heap[at]].denied;
}

static void heap_put(struct weir_top_denied *o, size_t at, uint16_t entry)
{
    o->heap[at] = entry;
    o->place[entry] = (uint16_t)at;
}

/* A count only grows, so an entry only sinks. */
static void heap_sink(struct weir_top_denied *o, size_t at)
{
    uint16_t entry = o->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= o->count)
            break;
        if (child + 1 < o->count && heap_count(o, child + 1) < heap_count(o, child))
            child++;
        if (o->entries[entry].denied <= heap_count(o, child))
            break;
        heap_put(o, at, o->heap[child]);
        at = child;
    }
    heap_put(o, at, entry);
}

/* A new entry has a count of 1, which nothing is below: it goes up past all larger ones. */
static void heap_rise(struct weir_top_denied *o, size_t at)
{
    uint16_t entry = o->heap[at];
    while (at > 0 && heap_count(o, (at - 1) / 2) > o->entries[entry].denied) {
        heap_put(o, at, o->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(o, at, entry);
}

/* --- Recording -------------------------------------------------------------------------------- */

static void copy_key(struct weir_denied_key *e, struct weir_bytes key)
{
    if (key.size <= WEIR_TOP_DENIED_KEY_MAX) {
        if (key.size > 0)
            memcpy(e->key, key.data, key.size);
        e->key_size = (uint8_t)key.size;
        return;
    }
    size_t size = WEIR_TOP_DENIED_KEY_MAX - SUFFIX_SIZE;
    for (int back = 0; back < 3 && ((unsigned char)key.data[size] & 0xC0) == 0x80; back++)
        size--; /* not through the middle of a UTF-8 character */
    memcpy(e->key, key.data, size);
    e->key[size++] = '~';
    e->key_size = (uint8_t)(weir_hex_write64(e->key + size, e->hash[0]) - e->key);
}

static void fill(struct weir_denied_key *e, const uint64_t hash[2], struct weir_bytes name,
                 struct weir_bytes key)
{
    e->hash[0] = hash[0];
    e->hash[1] = hash[1];
    size_t name_size = name.size < WEIR_TOP_DENIED_NAME_MAX ? name.size : WEIR_TOP_DENIED_NAME_MAX;
    if (name_size > 0)
        memcpy(e->name, name.data, name_size);
    e->name_size = (uint8_t)name_size;
    copy_key(e, key);
}

static void record(struct weir_top_denied *o, const uint64_t hash[2], struct weir_bytes name,
                   struct weir_bytes key)
{
    size_t slot = index_find(o, hash);
    if (o->index[slot] != NO_ENTRY) {
        uint16_t known = o->index[slot];
        o->entries[known].denied++;
        heap_sink(o, o->place[known]);
        return;
    }
    if (o->count < WEIR_TOP_DENIED_KEYS) {
        uint16_t added = o->count++;
        o->entries[added].denied = 1;
        o->entries[added].error = 0;
        fill(&o->entries[added], hash, name, key);
        o->index[slot] = added;
        heap_put(o, added, added);
        heap_rise(o, added);
        return;
    }
    uint16_t victim = o->heap[0];
    struct weir_denied_key *e = &o->entries[victim];
    index_remove(o, e->hash);
    e->error = e->denied;
    e->denied++;
    fill(e, hash, name, key);
    o->index[index_find(o, hash)] = victim; /* removing may have moved the free slot */
    heap_sink(o, 0);
}

void weir_top_denied_record(struct weir_top_denied *top_denied, const uint64_t hash[2],
                            struct weir_bytes name, struct weir_bytes key)
{
    if (!try_lock(top_denied))
        return;
    record(top_denied, hash, name, key);
    unlock(top_denied);
}

/* --- Collecting ------------------------------------------------------------------------------- */

static struct weir_denied_key *find_in(struct weir_denied_key *list, size_t count,
                                       const uint64_t hash[2])
{
    for (size_t i = 0; i < count; i++)
        if (list[i].hash[0] == hash[0] && list[i].hash[1] == hash[1])
            return &list[i];
    return NULL;
}

static bool has_name(const struct weir_denied_key *e, struct weir_bytes name)
{
    return e->name_size == name.size && memcmp(e->name, name.data, name.size) == 0;
}

size_t weir_top_denied_collect(struct weir_top_denied *top_denied, struct weir_bytes name,
                               struct weir_denied_key *list, size_t count, size_t max)
{
    size_t before = count;
    while (!try_lock(top_denied))
        sched_yield();
    for (size_t i = 0; i < top_denied->count && count < max; i++)
        if (!name.data || has_name(&top_denied->entries[i], name))
            list[count++] = top_denied->entries[i];
    unlock(top_denied);

    /* Folded after unlocking, so that the worker misses as little as can be. A sketch has a key
     * once: only entries of the others can be the same. */
    for (size_t i = before; i < count;) {
        struct weir_denied_key *same = find_in(list, before, list[i].hash);
        if (!same) {
            i++;
            continue;
        }
        same->denied += list[i].denied;
        same->error += list[i].error;
        list[i] = list[--count];
    }
    return count;
}

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare(const void *left, const void *right)
{
    const struct weir_denied_key *a = left, *b = right;
    if (a->denied != b->denied)
        return a->denied < b->denied ? 1 : -1;
    int order = compare_bytes(a->name, a->name_size, b->name, b->name_size);
    return order != 0 ? order : compare_bytes(a->key, a->key_size, b->key, b->key_size);
}

void weir_top_denied_sort(struct weir_denied_key *list, size_t count)
{
    if (count > 0)
        qsort(list, count, sizeof *list, compare);
}
