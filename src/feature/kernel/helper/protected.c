/* SPDX-License-Identifier: Apache-2.0 */
/* see protected.h */
#include "feature/kernel/helper/protected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

void kernel_protected_free(struct kernel_protected *protected)
{
    free(protected->own.list);
    free(protected->named.list);
    free(protected->all.list);
    *protected = (struct kernel_protected){.known = false};
}

static int ranges_reserve(struct kernel_ranges *ranges, size_t count)
{
    size_t room = ranges->room ? ranges->room : FIRST_ROOM;
    struct kernel_range *list;

    if (count <= ranges->room)
        return 0;
    while (room < count)
        room *= 2;
    list = realloc(ranges->list, room * sizeof *list);
    if (!list)
        return -ENOMEM;
    ranges->list = list;
    ranges->room = room;
    return 0;
}

static void range_fill(struct kernel_range *range, uint8_t family, uint8_t bits,
                       const uint8_t *address)
{
    size_t size = family == 4 ? 4 : 16;
    struct weir_address ones;

    memset(range, 0, sizeof *range);
    range->first[0] = range->last[0] = family;
    weir_address_ones(&ones, family, bits);
    for (size_t i = 0; i < size; i++) {
        range->first[1 + i] = address[i] & ones.bytes[i];
        range->last[1 + i] = (uint8_t)(address[i] | ~ones.bytes[i]);
    }
}

int kernel_ranges_add(struct kernel_ranges *ranges, uint8_t family, uint8_t bits,
                      const uint8_t *address)
{
    int err =
        ranges->count < KERNEL_PROTECTED_MAX ? ranges_reserve(ranges, ranges->count + 1) : -E2BIG;

    if (err < 0)
        return err;
    range_fill(&ranges->list[ranges->count++], family, bits, address);
    return 0;
}

static int by_first(const void *left, const void *right)
{
    const struct kernel_range *a = left, *b = right;

    return memcmp(a->first, b->first, sizeof a->first);
}

/* Sorts them and makes one of those that have addresses in common. */
static void ranges_merge(struct kernel_ranges *ranges)
{
    size_t kept = 0;

    if (!ranges->list)
        return;
    qsort(ranges->list, ranges->count, sizeof *ranges->list, by_first);
    for (size_t i = 1; i < ranges->count; i++) {
        struct kernel_range *last = &ranges->list[kept], *next = &ranges->list[i];

        if (memcmp(next->first, last->last, sizeof next->first) > 0)
            ranges->list[++kept] = *next;
        else if (memcmp(next->last, last->last, sizeof next->last) > 0)
            memcpy(last->last, next->last, sizeof last->last);
    }
    ranges->count = ranges->count ? kept + 1 : 0;
}

/* Whether a range has an address in common with one of them, which are merged. */
static bool ranges_overlap(const struct kernel_ranges *ranges, const struct kernel_range *range)
{
    size_t low = 0, high = ranges->count; /* the first that ends at or behind its beginning */

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(ranges->list[middle].last, range->first, KERNEL_POINT) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges->count && memcmp(ranges->list[low].first, range->last, KERNEL_POINT) <= 0;
}

/* Makes `all` of what is known. */
static int protected_build(struct kernel_protected *protected)
{
    static const uint8_t loopback4[4] = {127}, loopback6[16] = {[15] = 1};
    struct kernel_ranges *all = &protected->all;
    const struct kernel_ranges *own = &protected->own, *named = &protected->named;
    int err = ranges_reserve(all, own->count + named->count + 2);

    protected->known = false;
    if (err < 0)
        return err;
    range_fill(&all->list[0], 4, 8, loopback4);
    range_fill(&all->list[1], 6, 128, loopback6);
    if (own->count)
        memcpy(all->list + 2, own->list, own->count * sizeof *all->list);
    if (named->count)
        memcpy(all->list + 2 + own->count, named->list, named->count * sizeof *all->list);
    all->count = own->count + named->count + 2;
    ranges_merge(all);
    protected->known = true;
    return 0;
}

int kernel_protected_own(struct kernel_protected *protected, struct kernel_ranges *own)
{
    bool more = false;
    int err;

    ranges_merge(own);
    for (size_t i = 0; i < own->count && !more; i++)
        more = !ranges_overlap(&protected->own, &own->list[i]);
    free(protected->own.list);
    protected->own = *own;
    *own = (struct kernel_ranges){.list = NULL};
    err = protected_build(protected);
    return err < 0 ? err : more;
}

int kernel_protected_name(struct kernel_protected *protected,
                          const struct weir_kernel_message *message)
{
    int err = 0;

    if (message->head.flags & WEIR_KERNEL_REPLACE) {
        protected->named.count = 0;
    }
    for (uint16_t i = 0; i < message->head.count && err == 0; i++) {
        const struct weir_kernel_element *network = &message->elements[i];

        err =
            kernel_ranges_add(&protected->named, network->family, network->bits, network->address);
    }
    if (err < 0) {
        protected->known = false;
        return err;
    }
    return protected->known ? protected_build(protected) : 0;
}

bool kernel_protected_overlaps(const struct kernel_protected *protected, uint8_t family,
                               uint8_t bits, const uint8_t *address)
{
    struct kernel_range range;

    range_fill(&range, family, bits, address);
    return !protected->known || ranges_overlap(&protected->all, &range);
}
