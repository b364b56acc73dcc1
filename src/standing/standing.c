/* SPDX-License-Identifier: Apache-2.0 */
/* see standing.h */
#include "standing/standing.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/reason.h"
#include "core/siphash.h"

static const char *const level_names[WEIR_STANDING_LEVELS] = {
    "good", "warned", "throttled", "challenged", "suspended", "revoked", "trusted",
};
static const char *const origin_names[WEIR_STANDING_ORIGINS] = {"list", "penalty", "operator"};

/* Kind, NUL, value: longer ones are hashed twice. */
#define ID_TEXT_MAX (WEIR_STANDING_KIND_MAX + 256)

/* An entry with its value: family 0 is exact. */
struct record {
    uint64_t id[2];
    struct weir_cidr network;
    struct weir_standing_entry entry;
    bool next; /* of the lists that are being read */
};

struct weir_standing {
    struct weir_standing_head head;
    uint64_t count, evicted, refused;
    uint64_t secret[2];
    size_t entries_max;
    bool building;
    struct record *records;
};

const char *weir_standing_level_name(uint8_t level)
{
    return level < WEIR_STANDING_LEVELS ? level_names[level] : NULL;
}

const char *weir_standing_origin_name(uint8_t origin)
{
    return origin < WEIR_STANDING_ORIGINS ? origin_names[origin] : NULL;
}

int weir_standing_level_of(struct weir_bytes name)
{
    for (int level = 0; level < WEIR_STANDING_LEVELS; level++)
        if (weir_bytes_are(name, level_names[level]))
            return level;
    return -1;
}

/* Operators' entries and revocations, then trust, then what lists and penalties say. */
static int rank(const struct weir_standing_entry *entry)
{
    if (entry->origin == WEIR_STANDING_BY_OPERATOR || entry->level == WEIR_STANDING_REVOKED)
        return 2;
    return entry->level == WEIR_STANDING_TRUSTED;
}

/* Trusted is the least strict. */
static int strictness(uint8_t level)
{
    return level == WEIR_STANDING_TRUSTED ? -1 : level;
}

bool weir_standing_before(const struct weir_standing_entry *one,
                          const struct weir_standing_entry *other)
{
    if (rank(one) != rank(other))
        return rank(one) > rank(other);
    if (one->level != other->level)
        return strictness(one->level) > strictness(other->level);
    return one->until_ns > other->until_ns;
}

void weir_standing_join(struct weir_standing_entry *best, const struct weir_standing_entry *one)
{
    if (weir_standing_before(one, best))
        *best = *one;
}

int weir_standing_create(struct weir_standing **standing,
                         const struct weir_standing_options *options, struct weir_reason *reason)
{
    struct weir_standing *map = calloc(1, sizeof *map);

    *standing = NULL;
    if (!map)
        return WEIR_ERR_MEMORY;
    map->entries_max = options->entries_max ? options->entries_max : WEIR_STANDING_ENTRIES_DEFAULT;
    map->head.entries = &map->count;
    memcpy(map->secret, options->secret, sizeof map->secret);
    map->records = calloc(map->entries_max, sizeof *map->records);
    if (!map->records) {
        free(map);
        return WEIR_ERR_MEMORY;
    }
    *standing = map;
    return 0;
}

int weir_standing_open(struct weir_standing **standing, const char *path,
                       struct weir_reason *reason)
{
    *standing = NULL;
    reason_text(reason, path);
    reason_text(reason, ": not there");
    return WEIR_ERR_NOT_FOUND;
}

void weir_standing_close(struct weir_standing *standing)
{
    if (!standing)
        return;
    free(standing->records);
    free(standing);
}

bool weir_standing_replaced(const struct weir_standing *standing)
{
    return false;
}

void weir_standing_secret(const struct weir_standing *standing, uint64_t secret[2])
{
    memcpy(secret, standing->secret, sizeof standing->secret);
}

void weir_standing_id(const struct weir_standing *standing, struct weir_bytes kind,
                      struct weir_bytes value, uint64_t id[2])
{
    char text[ID_TEXT_MAX];
    uint64_t tail[2];

    if (kind.size + 1 + value.size > sizeof text) {
        /* Two hashes: that of the value counts as the value. */
        weir_siphash128(standing->secret, value.data, value.size, tail);
        value = (struct weir_bytes){(const char *)tail, sizeof tail};
    }
    kind.size = kind.size < WEIR_STANDING_KIND_MAX ? kind.size : WEIR_STANDING_KIND_MAX;
    memcpy(text, kind.data, kind.size);
    text[kind.size] = '\0';
    if (value.size > 0)
        memcpy(text + kind.size + 1, value.data, value.size);
    weir_siphash128(standing->secret, text, kind.size + 1 + value.size, id);
}

static bool find(const struct weir_standing *standing, const uint64_t *id,
                 const struct weir_address *address, uint64_t now_ns,
                 struct weir_standing_entry *entry)
{
    bool found = false;

    for (size_t i = 0; i < standing->count; i++) {
        const struct record *record = &standing->records[i];
        bool same = id ? record->network.address.family == 0 &&
                             memcmp(record->id, id, sizeof record->id) == 0
                       : record->network.address.family != 0 &&
                             weir_cidr_contains(&record->network, address);

        if (!same || record->next || record->entry.until_ns <= now_ns)
            continue;
        if (!found)
            *entry = record->entry;
        else
            weir_standing_join(entry, &record->entry);
        found = true;
    }
    return found;
}

bool weir_standing_find(const struct weir_standing *standing, const uint64_t id[2], uint64_t now_ns,
                        struct weir_standing_entry *entry)
{
    return find(standing, id, NULL, now_ns, entry);
}

bool weir_standing_find_address(const struct weir_standing *standing,
                                const struct weir_address *address, uint64_t now_ns,
                                struct weir_standing_entry *entry)
{
    return address->family != 0 && find(standing, NULL, address, now_ns, entry);
}

static void drop(struct weir_standing *standing, size_t at)
{
    standing->records[at] = standing->records[--standing->count];
}

static bool may_go(const struct weir_standing_entry *entry)
{
    return entry->origin != WEIR_STANDING_BY_OPERATOR && entry->level != WEIR_STANDING_REVOKED;
}

/* Whether there is room now for an entry of that origin. */
static bool make_room(struct weir_standing *standing, uint8_t origin)
{
    bool penalty = origin == WEIR_STANDING_BY_PENALTY;
    size_t penalties = 0, best = SIZE_MAX;

    for (size_t i = 0; i < standing->count; i++)
        penalties += standing->records[i].entry.origin == WEIR_STANDING_BY_PENALTY;
    penalty = penalty && penalties >= standing->entries_max / 2;
    if (!penalty && standing->count < standing->entries_max)
        return true;
    for (size_t i = 0; i < standing->count; i++) {
        const struct weir_standing_entry *one = &standing->records[i].entry;

        if (may_go(one) && (!penalty || one->origin == WEIR_STANDING_BY_PENALTY) &&
            (best == SIZE_MAX || one->until_ns < standing->records[best].entry.until_ns))
            best = i;
    }
    if (best == SIZE_MAX)
        return false;
    drop(standing, best);
    standing->evicted++;
    return true;
}

static bool same_value(const struct record *a, const struct record *b)
{
    return memcmp(a->id, b->id, sizeof a->id) == 0 &&
           memcmp(&a->network, &b->network, sizeof a->network) == 0 &&
           a->entry.origin == b->entry.origin && a->next == b->next;
}

static int set(struct weir_standing *standing, struct record *record)
{
    const struct weir_standing_entry *entry = &record->entry;

    if (entry->level >= WEIR_STANDING_LEVELS || entry->origin >= WEIR_STANDING_ORIGINS ||
        entry->reason_size > WEIR_STANDING_REASON_MAX)
        return WEIR_ERR_RANGE;
    record->next = standing->building && entry->origin == WEIR_STANDING_BY_LIST;
    for (size_t i = 0; i < standing->count; i++)
        if (same_value(&standing->records[i], record)) {
            if (record->next)
                weir_standing_join(&standing->records[i].entry, entry);
            else
                standing->records[i].entry = *entry;
            return 0;
        }
    if (!make_room(standing, entry->origin)) {
        standing->refused++;
        return WEIR_ERR_FULL;
    }
    standing->records[standing->count++] = *record;
    return 0;
}

static bool clear(struct weir_standing *standing, const struct record *record)
{
    for (size_t i = 0; i < standing->count; i++)
        if (same_value(&standing->records[i], record)) {
            drop(standing, i);
            return true;
        }
    return false;
}

int weir_standing_set(struct weir_standing *standing, const uint64_t id[2],
                      const struct weir_standing_entry *entry)
{
    struct record record = {.id = {id[0], id[1]}, .entry = *entry};

    return set(standing, &record);
}

bool weir_standing_clear(struct weir_standing *standing, const uint64_t id[2],
                         enum weir_standing_origin origin)
{
    struct record record = {.id = {id[0], id[1]}, .entry.origin = (uint8_t)origin};

    return clear(standing, &record);
}

int weir_standing_set_network(struct weir_standing *standing, const struct weir_cidr *network,
                              const struct weir_standing_entry *entry)
{
    struct record record = {.network = *network, .entry = *entry};

    if (network->address.family == 0)
        return WEIR_ERR_RANGE;
    return set(standing, &record);
}

bool weir_standing_clear_network(struct weir_standing *standing, const struct weir_cidr *network,
                                 enum weir_standing_origin origin)
{
    struct record record = {.network = *network, .entry.origin = (uint8_t)origin};

    return clear(standing, &record);
}

void weir_standing_begin_lists(struct weir_standing *standing)
{
    standing->building = true;
}

void weir_standing_end_lists(struct weir_standing *standing)
{
    for (size_t i = standing->count; i-- > 0;) {
        struct record *record = &standing->records[i];

        if (record->entry.origin != WEIR_STANDING_BY_LIST)
            continue;
        if (!record->next)
            drop(standing, i);
        else
            record->next = false;
    }
    standing->building = false;
}

void weir_standing_cancel_lists(struct weir_standing *standing)
{
    for (size_t i = standing->count; i-- > 0;)
        if (standing->records[i].next)
            drop(standing, i);
    standing->building = false;
}

size_t weir_standing_sweep(struct weir_standing *standing, uint64_t now_ns, size_t most)
{
    size_t swept = 0;

    for (size_t i = standing->count; i-- > 0 && swept < most;)
        if (standing->records[i].entry.until_ns <= now_ns) {
            drop(standing, i);
            swept++;
        }
    return swept;
}

void weir_standing_stats(const struct weir_standing *standing, struct weir_standing_stats *stats)
{
    *stats = (struct weir_standing_stats){.entries = standing->count,
                                          .entries_max = standing->entries_max,
                                          .evicted = standing->evicted,
                                          .refused = standing->refused};
    for (size_t i = 0; i < standing->count; i++)
        stats->levels[standing->records[i].entry.level][standing->records[i].entry.origin]++;
}
