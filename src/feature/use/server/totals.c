/* SPDX-License-Identifier: Apache-2.0 */
/* see totals.h */
#include "feature/use/server/totals.h"

#include <string.h>

#include "feature/use/server/observer.h"

#define MS_NS UINT64_C(1000000)

static const char others[] = "other";

static struct weir_totals_row *row_of(struct weir_totals *totals, enum weir_totals_family family,
                                      const char *name, size_t size)
{
    struct weir_totals_row *rows = totals->rows[family];

    if (size == strlen(others) && !memcmp(name, others, size))
        return &rows[WEIR_TOTALS_NAMES]; /* a limit may have this name: one series, not two */
    for (unsigned i = 0; size > 0 && size < WEIR_TOTALS_NAME_MAX && i < WEIR_TOTALS_NAMES; i++) {
        if (rows[i].name[0] == '\0')
            memcpy(rows[i].name, name, size);
        if (!memcmp(rows[i].name, name, size) && rows[i].name[size] == '\0')
            return &rows[i];
    }
    return &rows[WEIR_TOTALS_NAMES];
}

void weir_totals_bursts(struct weir_totals *totals, const struct weir_heavy *batch)
{
    struct weir_heavy_entry entry;

    for (uint32_t i = 0; i < weir_heavy_used(batch); i++) {
        weir_heavy_get(batch, i, &entry);
        row_of(totals, WEIR_TOTALS_BURSTS, entry.name, entry.name_size)->count +=
            entry.count - entry.error;
        totals->rows[WEIR_TOTALS_BURSTS][WEIR_TOTALS_NAMES].count += entry.error;
    }
}

void weir_totals_places(struct weir_totals *totals, const struct weir_heavy *batch)
{
    struct weir_heavy_entry entry;

    for (uint32_t i = 0; i < weir_heavy_used(batch); i++) {
        weir_heavy_get(batch, i, &entry);
        if (entry.name_size != strlen(WEIR_USE_ROUTE) ||
            memcmp(entry.name, WEIR_USE_ROUTE, entry.name_size) != 0)
            continue;
        struct weir_totals_row *row =
            row_of(totals, WEIR_TOTALS_ROUTES, entry.text, entry.text_size);
        row->count += entry.count - entry.error;
        row->denied += entry.use.denied;
        totals->rows[WEIR_TOTALS_ROUTES][WEIR_TOTALS_NAMES].count += entry.error;
    }
}

void weir_totals_denial(struct weir_totals *totals, const struct weir_denial *denial)
{
    unsigned i = 0;

    if (denial->limit_size == 0 || denial->retry_after_ns == WEIR_NEVER)
        return; /* no limit asked it to wait */
    struct weir_totals_row *row =
        row_of(totals, WEIR_TOTALS_WAITS, denial->limit, denial->limit_size);
    while (i < WEIR_RETRY_BOUNDS &&
           denial->retry_after_ns > weir_retry_bounds_s[i] * UINT64_C(1000000000))
        i++;
    row->waits[i]++;
    row->count++;
    row->sum_ms += denial->retry_after_ns / MS_NS;
}

const char *weir_totals_name(const struct weir_totals *totals, enum weir_totals_family family,
                             unsigned row)
{
    const struct weir_totals_row *one = &totals->rows[family][row];

    if (row == WEIR_TOTALS_NAMES)
        return one->count > 0 ? others : NULL;
    return one->name[0] != '\0' ? one->name : NULL;
}
