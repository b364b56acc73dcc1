/* SPDX-License-Identifier: Apache-2.0 */
/* see stats.h */
#include "feature/envoy/server/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "core/text/siphash.h"

#define SLOTS_FIRST 256

struct entry {
    struct weir_envoy_counters counters;
    uint64_t hash;
    size_t size;
    char key[]; /* and behind it, of the same size, its name */
};

struct weir_envoy_stats {
    pthread_mutex_t lock; /* the owner adding, against others walking */
    struct entry **slots; /* open addressing, at most half full */
    uint32_t mask, count, fixed, dynamic;
    uint64_t secret[2]; /* keys may be what clients send */
    struct entry *other;
};

const char *const weir_envoy_count_names[WEIR_ENVOY_COUNT_TOTAL] = {
#define COUNT_NAME(name) #name,
    WEIR_ENVOY_COUNTS(COUNT_NAME)
#undef COUNT_NAME
};

/* --- Names ------------------------------------------------------------------------------------ */

static size_t digits_at(const char *text, size_t size, size_t at)
{
    size_t count = 0;
    while (count < 3 && at + count < size && text[at + count] >= '0' && text[at + count] <= '9')
        count++;
    return count;
}

/* The length of an IPv4 address there, 0: there is none; as \d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}. */
static size_t address_at(const char *text, size_t size, size_t at)
{
    size_t end = at;
    for (int part = 0; part < 4; part++) {
        size_t digits = digits_at(text, size, end);
        if (!digits)
            return 0;
        end += digits;
        if (part < 3 && (end >= size || text[end++] != '.'))
            return 0;
    }
    return end - at;
}

/* Makes a name of a key: what a line of statsd and of /stats may hold. */
static void make_name(char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte < ' ' || byte == 0x7F || byte == ':' || byte == '|')
            name[i] = '_';
    }
    for (size_t at = 0; at < size;) {
        size_t address = address_at(name, size, at);
        for (size_t i = at; i < at + address; i++)
            if (name[i] == '.')
                name[i] = '_';
        at += address ? address : 1;
    }
}

/* --- Entries ---------------------------------------------------------------------------------- */

static struct entry *entry_make(struct weir_bytes key, uint64_t hash)
{
    struct entry *entry = calloc(1, sizeof *entry + 2 * key.size);
    if (!entry)
        return NULL;
    entry->hash = hash;
    entry->size = key.size;
    memcpy(entry->key, key.data, key.size);
    memcpy(entry->key + key.size, key.data, key.size);
    make_name(entry->key + key.size, key.size);
    return entry;
}

static struct weir_bytes entry_name(const struct entry *entry)
{
    return (struct weir_bytes){entry->key + entry->size, entry->size};
}

int weir_envoy_stats_open(struct weir_envoy_stats **stats)
{
    static const struct weir_bytes other = {WEIR_ENVOY_OTHER_KEY, sizeof WEIR_ENVOY_OTHER_KEY - 1};
    struct weir_envoy_stats *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    made->slots = calloc(SLOTS_FIRST, sizeof *made->slots);
    made->other = entry_make(other, 0);
    if (!made->slots || !made->other) {
        free(made->slots);
        free(made->other);
        free(made);
        return WEIR_ERR_MEMORY;
    }
    made->mask = SLOTS_FIRST - 1;
    /* Addresses of this process are hardly a secret, but clients do not have them. */
    made->secret[0] = (uint64_t)(uintptr_t)made;
    made->secret[1] = (uint64_t)(uintptr_t)made->slots;
    pthread_mutex_init(&made->lock, NULL);
    *stats = made;
    return 0;
}

void weir_envoy_stats_close(struct weir_envoy_stats *stats)
{
    if (!stats)
        return;
    for (uint32_t i = 0; i <= stats->mask; i++)
        free(stats->slots[i]);
    free(stats->other);
    free(stats->slots);
    pthread_mutex_destroy(&stats->lock);
    free(stats);
}

static struct entry **place_of(struct entry **slots, uint32_t mask, struct weir_bytes key,
                               uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash;; at++) {
        struct entry **place = &slots[at & mask];
        if (!*place || ((*place)->hash == hash && (*place)->size == key.size &&
                        !memcmp((*place)->key, key.data, key.size)))
            return place;
    }
}

static bool grow(struct weir_envoy_stats *stats)
{
    uint32_t mask = stats->mask * 2 + 1;
    struct entry **slots = calloc((size_t)mask + 1, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i <= stats->mask; i++) {
        struct entry *entry = stats->slots[i];
        if (entry)
            *place_of(slots, mask, (struct weir_bytes){entry->key, entry->size}, entry->hash) =
                entry;
    }
    free(stats->slots);
    stats->slots = slots;
    stats->mask = mask;
    return true;
}

static struct entry *add(struct weir_envoy_stats *stats, struct weir_bytes key, uint64_t hash,
                         bool fixed)
{
    uint32_t *count = fixed ? &stats->fixed : &stats->dynamic;
    uint32_t most = fixed ? WEIR_ENVOY_FIXED_KEYS_MAX : WEIR_ENVOY_KEYS_MAX;
    if (*count >= most || key.size > WEIR_ENVOY_KEY_MAX)
        return NULL;
    struct entry *entry = entry_make(key, hash);
    if (!entry)
        return NULL;
    pthread_mutex_lock(&stats->lock);
    bool room = 2 * stats->count <= stats->mask || grow(stats);
    if (room)
        *place_of(stats->slots, stats->mask, key, hash) = entry;
    pthread_mutex_unlock(&stats->lock);
    if (!room) {
        free(entry);
        return NULL;
    }
    ++*count;
    stats->count++;
    return entry;
}

struct weir_envoy_counters *weir_envoy_stats_find(struct weir_envoy_stats *stats,
                                                  struct weir_bytes key, bool fixed)
{
    uint64_t hash[2];
    weir_siphash128(stats->secret, key.data, key.size, hash);
    struct entry *entry = *place_of(stats->slots, stats->mask, key, hash[0]);
    if (!entry)
        entry = add(stats, key, hash[0], fixed);
    return entry ? &entry->counters : &stats->other->counters;
}

void weir_envoy_stats_walk(struct weir_envoy_stats *stats, weir_envoy_stats_visit visit,
                           void *context)
{
    pthread_mutex_lock(&stats->lock);
    for (uint32_t i = 0; i <= stats->mask; i++) {
        const struct entry *entry = stats->slots[i];
        if (entry)
            visit(context, entry_name(entry), &entry->counters);
    }
    pthread_mutex_unlock(&stats->lock);
    visit(context, entry_name(stats->other), &stats->other->counters);
}
