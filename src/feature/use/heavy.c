/* SPDX-License-Identifier: Apache-2.0 */
/* see heavy.h */
#include "feature/use/heavy.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"

#define NO_ENTRY UINT16_MAX
#define SUFFIX_SIZE 17 /* '~' and 64 bits of the hash in hexadecimal */

struct count {
    uint64_t hash[2];
    uint64_t count, error;
};

/* An item's texts and sums. */
struct item {
    struct weir_heavy_use use;
    uint8_t name_size;
    uint16_t text_size;
    char name[WEIR_HEAVY_NAME_MAX];
    char text[WEIR_HEAVY_TEXT_MAX];
};

struct weir_heavy {
    uint32_t room, used, mask; /* mask: of the index */
    uint32_t last;             /* the item that was counted last */
    uint64_t weight, floor;    /* floor: of what merging has dropped */
    uint16_t *heap, *place, *index;
    struct count *counts;
    struct item *items;
};

int weir_heavy_open(struct weir_heavy **heavy, uint32_t room)
{
    struct weir_heavy *h = calloc(1, sizeof *h);
    uint32_t index = 16;
    while (index < 2 * room)
        index *= 2;
    if (!h)
        return WEIR_ERR_MEMORY;
    h->room = room;
    h->mask = index - 1;
    h->heap = calloc(room, sizeof *h->heap);
    h->place = calloc(room, sizeof *h->place);
    h->index = calloc(index, sizeof *h->index);
    h->counts = calloc(room, sizeof *h->counts);
    h->items = calloc(room, sizeof *h->items);
    if (!h->heap || !h->place || !h->index || !h->counts || !h->items) {
        weir_heavy_close(h);
        return WEIR_ERR_MEMORY;
    }
    memset(h->index, 0xff, index * sizeof *h->index);
    *heavy = h;
    return 0;
}

void weir_heavy_close(struct weir_heavy *heavy)
{
    if (!heavy)
        return;
    free(heavy->heap);
    free(heavy->place);
    free(heavy->index);
    free(heavy->counts);
    free(heavy->items);
    free(heavy);
}

void weir_heavy_clear(struct weir_heavy *heavy)
{
    if (heavy->used > 0)
        memset(heavy->index, 0xff, (heavy->mask + 1) * sizeof *heavy->index);
    heavy->used = 0;
    heavy->weight = heavy->floor = 0;
}

/* --- The index -------------------------------------------------------------------------------- */

static uint32_t home(const struct weir_heavy *h, const uint64_t hash[2])
{
    return (uint32_t)hash[0] & h->mask;
}

/* The index slot that has the item, or the free one where it would go. */
static uint32_t index_find(const struct weir_heavy *h, const uint64_t hash[2])
{
    uint32_t slot = home(h, hash);
    while (h->index[slot] != NO_ENTRY) {
        const struct count *c = &h->counts[h->index[slot]];
        if (c->hash[0] == hash[0] && c->hash[1] == hash[1])
            break;
        slot = (slot + 1) & h->mask;
    }
    return slot;
}

/* Shifts back what a probe would otherwise no longer reach (Knuth, TAOCP vol. 3, 6.4, R). */
static void index_remove(struct weir_heavy *h, const uint64_t hash[2])
{
    uint32_t hole = index_find(h, hash);
    for (uint32_t slot = (hole + 1) & h->mask; h->index[slot] != NO_ENTRY;
         slot = (slot + 1) & h->mask) {
        uint32_t from_home = (slot - home(h, h->counts[h->index[slot]].hash)) & h->mask;
        uint32_t from_hole = (slot - hole) & h->mask;
        if (from_home >= from_hole) {
            h->index[hole] = h->index[slot];
            hole = slot;
        }
    }
    h->index[hole] = NO_ENTRY;
}

/* --- The heap --------------------------------------------------------------------------------- */

static uint64_t heap_count(const struct weir_heavy *h, uint32_t at)
{
    return h->counts[h->heap[at]].count;
}

static void heap_put(struct weir_heavy *h, uint32_t at, uint16_t entry)
{
    h->heap[at] = entry;
    h->place[entry] = (uint16_t)at;
}

/* A count only grows, so an entry only sinks. */
static void heap_sink(struct weir_heavy *h, uint32_t at)
{
    uint16_t entry = h->heap[at];
    uint64_t count = h->counts[entry].count;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= h->used)
            break;
        if (child + 1 < h->used && heap_count(h, child + 1) < heap_count(h, child))
            child++;
        if (count <= heap_count(h, child))
            break;
        heap_put(h, at, h->heap[child]);
        at = child;
    }
    heap_put(h, at, entry);
}

static void heap_rise(struct weir_heavy *h, uint32_t at)
{
    uint16_t entry = h->heap[at];
    while (at > 0 && heap_count(h, (at - 1) / 2) > h->counts[entry].count) {
        heap_put(h, at, h->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(h, at, entry);
}

/* --- Counting --------------------------------------------------------------------------------- */

/* Adds an item that is not there to a summary that is not full. */
static uint16_t add(struct weir_heavy *h, const struct count *count)
{
    uint16_t entry = (uint16_t)h->used++;
    h->counts[entry] = *count;
    h->index[index_find(h, count->hash)] = entry;
    heap_put(h, entry, entry);
    heap_rise(h, entry);
    return entry;
}

struct weir_heavy_use *weir_heavy_count(struct weir_heavy *heavy, const uint64_t hash[2],
                                        uint64_t weight, bool *fresh)
{
    uint32_t slot = index_find(heavy, hash);
    uint16_t entry = heavy->index[slot];
    heavy->weight += weight;
    *fresh = entry == NO_ENTRY;
    if (entry != NO_ENTRY) {
        heavy->counts[entry].count += weight;
        heap_sink(heavy, heavy->place[entry]);
    } else if (heavy->used < heavy->room) {
        const struct count count = {{hash[0], hash[1]}, weight + heavy->floor, heavy->floor};
        entry = add(heavy, &count);
    } else {
        entry = heavy->heap[0];
        struct count *c = &heavy->counts[entry];
        index_remove(heavy, c->hash);
        c->hash[0] = hash[0];
        c->hash[1] = hash[1];
        c->error = c->count > heavy->floor ? c->count : heavy->floor;
        c->count = c->error + weight;
        heavy->index[index_find(heavy, hash)] = entry;
        heap_sink(heavy, 0);
    }
    heavy->last = entry;
    struct item *item = &heavy->items[entry];
    if (*fresh) {
        item->use = (struct weir_heavy_use){0};
        item->name_size = item->text_size = 0;
    }
    return &item->use;
}

static void copy_text(struct item *item, const uint64_t hash[2], struct weir_bytes text)
{
    size_t size = text.size;
    if (size > WEIR_HEAVY_TEXT_MAX) {
        size = WEIR_HEAVY_TEXT_MAX - SUFFIX_SIZE;
        for (int back = 0; back < 3 && ((unsigned char)text.data[size] & 0xC0) == 0x80; back++)
            size--; /* not through the middle of a UTF-8 character */
    }
    if (size > 0)
        memcpy(item->text, text.data, size);
    if (text.size > WEIR_HEAVY_TEXT_MAX) {
        item->text[size++] = '~';
        size = (size_t)(weir_hex_write64(item->text + size, hash[0]) - item->text);
    }
    item->text_size = (uint16_t)size;
}

void weir_heavy_name(struct weir_heavy *heavy, struct weir_bytes name, struct weir_bytes text)
{
    struct item *item = &heavy->items[heavy->last];
    size_t size = name.size < WEIR_HEAVY_NAME_MAX ? name.size : WEIR_HEAVY_NAME_MAX;
    if (size > 0)
        memcpy(item->name, name.data, size);
    item->name_size = (uint8_t)size;
    copy_text(item, heavy->counts[heavy->last].hash, text);
}

void weir_heavy_vote(struct weir_heavy_use *use, uint32_t route, uint64_t weight)
{
    uint32_t votes = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
    if (use->route == route) {
        use->route_votes =
            use->route_votes > UINT32_MAX - votes ? UINT32_MAX : use->route_votes + votes;
    } else if (use->route_votes >= votes) {
        use->route_votes -= votes;
    } else {
        use->route = route;
        use->route_votes = votes - use->route_votes;
    }
}

/* --- Merging ---------------------------------------------------------------------------------- */

struct merged {
    struct count count;
    const struct item *item;            /* of the first summary that has it */
    const struct weir_heavy_use *other; /* of the second one; NULL: it has none */
};

static int by_count(const void *left, const void *right)
{
    const struct merged *a = left, *b = right;
    if (a->count.count != b->count.count)
        return a->count.count < b->count.count ? 1 : -1;
    int order = memcmp(a->count.hash, b->count.hash, sizeof a->count.hash);
    return order;
}

static void join_use(struct weir_heavy_use *use, const struct weir_heavy_use *other)
{
    uint32_t route = other->route, votes = other->route_votes;
    uint64_t cost = use->cost + other->cost, denied = use->denied + other->denied;
    uint64_t exhausted = use->exhausted + other->exhausted;
    if (other->seen_ns >= use->seen_ns) {
        uint32_t own_route = use->route, own_votes = use->route_votes;
        *use = *other;
        use->route = own_route;
        use->route_votes = own_votes;
    }
    use->cost = cost;
    use->denied = denied;
    use->exhausted = exhausted;
    weir_heavy_vote(use, route, votes);
}

uint64_t weir_heavy_floor(const struct weir_heavy *heavy)
{
    uint64_t least = heavy->used == heavy->room ? heap_count(heavy, 0) : 0;
    return least > heavy->floor ? least : heavy->floor;
}

/* Lists the items of both; returns how many. */
static uint32_t list_both(const struct weir_heavy *a, const struct weir_heavy *b,
                          struct merged *list)
{
    uint64_t floor_a = weir_heavy_floor(a), floor_b = weir_heavy_floor(b);
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->used; i++) {
        struct merged *m = &list[count++];
        uint16_t in_b = b->index[index_find(b, a->counts[i].hash)];
        *m = (struct merged){a->counts[i], &a->items[i], NULL};
        if (in_b == NO_ENTRY) {
            m->count.count += floor_b;
            m->count.error += floor_b;
        } else {
            m->count.count += b->counts[in_b].count;
            m->count.error += b->counts[in_b].error;
            m->other = &b->items[in_b].use;
        }
    }
    for (uint32_t i = 0; i < b->used; i++) {
        if (a->index[index_find(a, b->counts[i].hash)] != NO_ENTRY)
            continue;
        struct merged *m = &list[count++];
        *m = (struct merged){b->counts[i], &b->items[i], NULL};
        m->count.count += floor_a;
        m->count.error += floor_a;
    }
    return count;
}

int weir_heavy_merge(struct weir_heavy *into, const struct weir_heavy *from)
{
    uint32_t both = into->used + from->used;
    uint64_t floor = weir_heavy_floor(into) + weir_heavy_floor(from);
    if (from->weight == 0)
        return 0;
    struct merged *list = malloc((both + 1) * sizeof *list);
    struct item *items = malloc((into->room + 1) * sizeof *items);
    if (!list || !items) {
        free(list);
        free(items);
        return WEIR_ERR_MEMORY;
    }
    uint32_t count = list_both(into, from, list), kept;
    qsort(list, count, sizeof *list, by_count);
    kept = count < into->room ? count : into->room;
    if (count > kept && list[kept].count.count > floor)
        floor = list[kept].count.count;
    for (uint32_t i = 0; i < kept; i++) {
        items[i] = *list[i].item;
        if (list[i].other)
            join_use(&items[i].use, list[i].other);
    }
    uint64_t weight = into->weight + from->weight;
    weir_heavy_clear(into);
    for (uint32_t i = kept; i-- > 0;) /* smallest first: no entry rises */
        into->items[add(into, &list[i].count)] = items[i];
    into->weight = weight;
    into->floor = floor;
    free(list);
    free(items);
    return 0;
}

/* --- Reading ---------------------------------------------------------------------------------- */

uint64_t weir_heavy_weight(const struct weir_heavy *heavy)
{
    return heavy->weight;
}

uint32_t weir_heavy_used(const struct weir_heavy *heavy)
{
    return heavy->used;
}

uint32_t weir_heavy_room(const struct weir_heavy *heavy)
{
    return heavy->room;
}

void weir_heavy_get(const struct weir_heavy *heavy, uint32_t at, struct weir_heavy_entry *entry)
{
    const struct count *count = &heavy->counts[at];
    const struct item *item = &heavy->items[at];
    entry->hash[0] = count->hash[0];
    entry->hash[1] = count->hash[1];
    entry->count = count->count;
    entry->error = count->error;
    entry->use = item->use;
    entry->name_size = item->name_size;
    entry->text_size = item->text_size;
    memcpy(entry->name, item->name, item->name_size);
    memcpy(entry->text, item->text, item->text_size);
}
