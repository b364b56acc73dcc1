/* SPDX-License-Identifier: Apache-2.0 */
/* see region.h */
#include "table/region.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "table/span/heap.h"

void region_bind(struct weir_table *table, uint8_t *base, const struct table_header *header)
{
    table->base = base;
    table->header = (struct table_header *)(void *)base;
    table->fixed = *header;
    table->params = (struct table_param *)(void *)(base + header->params_at);
    table->accounts = (struct table_account *)(void *)(base + header->accounts_at);
    table->pins = (uint64_t *)(void *)(base + header->pins_at);
    table->owners = (struct table_owner_slot *)(void *)(base + header->owners_at);
    table->spill = (struct table_undo *)(void *)(base + header->spill_at);
    table->chunk_holders = (uint64_t *)(void *)(base + CHUNK_HOLDERS_AT);
    table->pages = (struct table_page *)(void *)(base + header->pages_at);
    table->buckets = (struct table_bucket *)(void *)(base + header->buckets_at);
    table->map = position_map_of(header);
}

int region_format(struct weir_table *table, uint8_t *base, const struct table_header *plan,
                  const struct weir_table_options *options)
{
    struct table_header *header = (struct table_header *)(void *)base;

    *header = *plan;
    memcpy(header->secret, options->secret, sizeof header->secret);
    if (header->secret[0] == 0 && header->secret[1] == 0 &&
        getrandom(header->secret, sizeof header->secret, 0) != (ssize_t)sizeof header->secret)
        return WEIR_ERR_IO;
    header->check = layout_header_check(header);
    header->t0_ns = options->wall_ns;
    header->boot_ns = options->boot_ns;
    header->mark_ns = options->wall_ns;
    region_bind(table, base, header);
    heap_format(table);
    return 0;
}

void region_unmap(struct weir_table *table)
{
    if (table->map_bytes > 0)
        munmap(table->base, table->map_bytes);
    table->map_bytes = 0;
}
