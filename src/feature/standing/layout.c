/* SPDX-License-Identifier: Apache-2.0 */
/* see layout.h */
#include "feature/standing/layout.h"

#include <string.h>

#include "core/text/siphash.h"

_Static_assert(sizeof(struct standing_record) == 48, "a record has 48 bytes");
_Static_assert(sizeof(struct standing_reason) == 128, "a reason has 128 bytes");
_Static_assert(offsetof(struct standing_header, changes) == 128, "one line for readers");
_Static_assert(offsetof(struct standing_header, counts) == 192, "one line for readers");

/* Of a page, so that groups of slots are lines. */
#define HEADER_BYTES 4096

/* One more than entries: an entry is replaced by a new record. */
static uint64_t records_count(const struct standing_header *header)
{
    return header->entries_max + 1;
}

void standing_layout_plan(struct standing_header *header, uint64_t entries_max,
                          const uint64_t secret[2])
{
    uint64_t slots = 8;

    /* At most half full, so that a walk along the slots is short. */
    while (slots < 2 * entries_max)
        slots *= 2;
    *header = (struct standing_header){
        .magic = STANDING_MAGIC,
        .version = STANDING_VERSION,
        .layout = standing_layout_version(),
        .entries_max = entries_max,
        .slots_count = slots,
        .secret = {secret[0], secret[1]},
    };
    header->bytes = HEADER_BYTES + slots + slots * sizeof(uint64_t) +
                    records_count(header) * sizeof(struct standing_record) +
                    (uint64_t)WEIR_STANDING_REASONS_MAX * sizeof(struct standing_reason);
    header->check = standing_layout_check(header);
}

void standing_layout_bind(struct weir_standing *map, uint8_t *base,
                          const struct standing_header *header)
{
    map->base = base;
    map->bytes = header->bytes;
    map->header = (struct standing_header *)(void *)base;
    map->head.entries = &map->header->entries;
    base += HEADER_BYTES;
    map->marks = (uint64_t *)(void *)base;
    base += header->slots_count;
    map->slots = (uint64_t *)(void *)base;
    base += header->slots_count * sizeof(uint64_t);
    map->records = (struct standing_record *)(void *)base;
    base += records_count(header) * sizeof(struct standing_record);
    map->reasons = (struct standing_reason *)(void *)base;
    map->mask = header->slots_count - 1;
    map->records_count = (uint32_t)records_count(header);
    memcpy(map->secret, header->secret, sizeof map->secret);
}

uint64_t standing_layout_check(const struct standing_header *header)
{
    static const uint64_t secret[2] = {STANDING_MAGIC, STANDING_VERSION};
    uint64_t hash[2];

    weir_siphash128(secret, header, offsetof(struct standing_header, check), hash);
    return hash[0];
}

uint32_t standing_layout_version(void)
{
    return (uint32_t)(sizeof(struct standing_header) << 16 |
                      offsetof(struct standing_value, shape) << 8 |
                      offsetof(struct standing_record, next));
}

static uint64_t big_endian(const uint8_t *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof number);
    return __builtin_bswap64(number);
}

void standing_address_bits(const struct weir_address *address, uint64_t bits[2])
{
    bits[0] = big_endian(address->bytes);
    bits[1] = big_endian(address->bytes + 8);
    if (address->family == 4) {
        bits[0] &= UINT64_C(0xffffffff00000000);
        bits[1] = 0;
    }
}
