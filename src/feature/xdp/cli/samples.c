/* SPDX-License-Identifier: Apache-2.0 */
/* see samples.h */
#include "feature/xdp/cli/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/address.h"

/* The entry of a sample's source, reason and limit; a new one takes the first that is free. NULL:
 * the table is full. */
static struct xdp_top_entry *find(struct xdp_top *top, const struct xdp_sample *sample)
{
    for (size_t i = 0; i < top->count; i++) {
        const struct xdp_sample *other = &top->entries[i].sample;

        if (!memcmp(other->source, sample->source, sizeof sample->source) &&
            other->reason == sample->reason && other->slot == sample->slot)
            return &top->entries[i];
    }
    if (top->count == XDP_TOP_MAX)
        return NULL;
    top->entries[top->count] = (struct xdp_top_entry){.sample = *sample};
    return &top->entries[top->count++];
}

void xdp_top_add(struct xdp_top *top, const struct xdp_sample *sample)
{
    struct xdp_top_entry *entry = find(top, sample);

    if (!entry) {
        top->others++;
        return;
    }
    entry->sample = *sample;
    entry->samples++;
}

static int compare(const void *a, const void *b)
{
    const struct xdp_top_entry *one = a, *other = b;

    return (one->samples < other->samples) - (one->samples > other->samples);
}

static void print_source(const struct xdp_sample *sample)
{
    struct weir_address address = {.family = 6};
    char text[WEIR_ADDRESS_TEXT_MAX];

    memcpy(address.bytes, sample->source, sizeof address.bytes);
    weir_address_fold(&address);
    weir_address_format(&address, text);
    printf("%-39s", text);
}

void xdp_top_print(struct xdp_top *top, const struct xdp_filter *filter, const char *const *reasons,
                   size_t most)
{
    qsort(top->entries, top->count, sizeof *top->entries, compare);
    printf("%-39s %12s  %-16s %-16s %s\n", "source", "packets", "reason", "limit", "last packet");
    for (size_t i = 0; i < top->count && i < most; i++) {
        const struct xdp_sample *sample = &top->entries[i].sample;
        bool of_limit = sample->reason != XDP_DROP_BANNED && sample->reason != XDP_DRY_BANNED &&
                        sample->reason != XDP_DROP_FRAGMENT && sample->reason != XDP_DRY_FRAGMENT;

        print_source(sample);
        printf(" %12" PRIu64 "  %-16s %-16s protocol %u, port %u, %" PRIu32 " bytes\n",
               top->entries[i].samples * (uint64_t)filter->sample,
               sample->reason < XDP_REASON_COUNT ? reasons[sample->reason] : "?",
               of_limit ? filter->limits[sample->slot & (XDP_LIMITS_MAX - 1)].name : "-",
               sample->transport, sample->port, sample->size_bytes);
    }
    if (top->others > 0)
        printf("and %" PRIu64 " samples of more sources than are listed\n", top->others);
    top->count = 0;
    top->others = 0;
}
