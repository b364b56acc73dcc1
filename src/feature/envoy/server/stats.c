/* SPDX-License-Identifier: Apache-2.0 */
/* see stats.h */
#include "feature/envoy/server/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "base/map.h"
#include "core/text/siphash.h"

#define ENTRIES_FIRST 128

struct entry {
    struct weir_envoy_counters counters;
    uint64_t hash;
    size_t size;
    char key[]; /* and behind it, of the same size, its name */
};

struct weir_envoy_stats {
    pthread_mutex_t lock;    /* the owner adding, against others walking */
    struct weir_map entries; /* of struct entry */
    uint32_t fixed, dynamic;
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
    bool opened = weir_map_open(&made->entries, ENTRIES_FIRST);
    made->other = entry_make(other, 0);
    if (!opened || !made->other) {
        weir_map_close(&made->entries);
        free(made->other);
        free(made);
        return WEIR_ERR_MEMORY;
    }
    /* Addresses of this process are hardly a secret, but clients do not have them. */
    made->secret[0] = (uint64_t)(uintptr_t)made;
    made->secret[1] = (uint64_t)(uintptr_t)made->entries.slots;
    pthread_mutex_init(&made->lock, NULL);
    *stats = made;
    return 0;
}

void weir_envoy_stats_close(struct weir_envoy_stats *stats)
{
    if (!stats)
        return;
    uint32_t at = 0;
    for (void *entry; (entry = weir_map_next(&stats->entries, &at));)
        free(entry);
    free(stats->other);
    weir_map_close(&stats->entries);
    pthread_mutex_destroy(&stats->lock);
    free(stats);
}

struct wanted {
    struct weir_bytes key;
    uint64_t hash;
};

static uint64_t entry_hash(const void *item)
{
    return ((const struct entry *)item)->hash;
}

static bool entry_is(const void *item, const void *key)
{
    const struct entry *entry = item;
    const struct wanted *wanted = key;
    return entry->hash == wanted->hash && entry->size == wanted->key.size &&
           !memcmp(entry->key, wanted->key.data, wanted->key.size);
}

static const struct weir_map_kind entries_kind = {entry_hash, entry_is};

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
    bool room = weir_map_add(&stats->entries, &entries_kind, entry);
    pthread_mutex_unlock(&stats->lock);
    if (!room) {
        free(entry);
        return NULL;
    }
    ++*count;
    return entry;
}

struct weir_envoy_counters *weir_envoy_stats_find(struct weir_envoy_stats *stats,
                                                  struct weir_bytes key, bool fixed)
{
    uint64_t hash[2];
    weir_siphash128(stats->secret, key.data, key.size, hash);
    const struct wanted wanted = {key, hash[0]};
    struct entry *entry = weir_map_find(&stats->entries, &entries_kind, hash[0], &wanted);
    if (!entry)
        entry = add(stats, key, hash[0], fixed);
    return entry ? &entry->counters : &stats->other->counters;
}

void weir_envoy_stats_walk(struct weir_envoy_stats *stats, weir_envoy_stats_visit visit,
                           void *context)
{
    pthread_mutex_lock(&stats->lock);
    uint32_t at = 0;
    for (const struct entry *entry; (entry = weir_map_next(&stats->entries, &at));)
        visit(context, entry_name(entry), &entry->counters);
    pthread_mutex_unlock(&stats->lock);
    visit(context, entry_name(stats->other), &stats->other->counters);
}
