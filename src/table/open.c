/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h: opening and closing, and the time of a region */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/reason.h"
#include "table/file.h"
#include "table/params.h"
#include "table/sweep.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

/* Memory of huge pages where the system has them: aligned, so that the first one counts. */
static int open_private(struct weir_table *table, const struct weir_table_options *options,
                        struct weir_reason *reason)
{
    struct table_header plan;
    int err = layout_plan(&plan, options, reason);

    if (err < 0)
        return err;

    uint64_t size = plan.bytes + HUGE_PAGE;
    uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED) {
        reason_text(reason, "not enough memory for the state");
        return WEIR_ERR_MEMORY;
    }

    uint64_t skip = (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;

    if (skip > 0)
        munmap(map, skip);
    if (HUGE_PAGE - skip > 0)
        munmap(map + skip + plan.bytes, HUGE_PAGE - skip);
    table->map_bytes = plan.bytes;
    if (!options->sparse)
        madvise(map + skip, plan.bytes, MADV_HUGEPAGE); /* only a hint: small pages do as well */
    table->base = map + skip;
    return region_format(table, map + skip, &plan, options);
}

static void close_region(struct weir_table *table)
{
    region_unmap(table);
    if (table->fd >= 0)
        close(table->fd);
    pthread_mutex_destroy(&table->mutex);
    sweep_close(table);
    free(table->pinned);
    free(table->path);
    free(table);
}

int weir_table_open(struct weir_table **result, const struct weir_table_options *options,
                    struct weir_reason *reason)
{
    struct weir_table *table = calloc(1, sizeof *table);
    struct weir_reason unwanted;
    bool alone = false;
    int err;

    if (reason == NULL)
        reason = &unwanted;
    reason->text[0] = 0;
    if (table == NULL)
        return WEIR_ERR_MEMORY;
    table->pinned = calloc(WEIR_TABLE_PARAMS_MAX, sizeof *table->pinned);
    if (table->pinned == NULL || pthread_mutex_init(&table->mutex, NULL) != 0) {
        free(table->pinned);
        free(table);
        return WEIR_ERR_MEMORY;
    }
    table->fd = -1;
    table->patience_ns = options->patience_ns;
    err = options->path != NULL ? file_open(table, options, &alone, reason)
                                : open_private(table, options, reason);
    if (err < 0)
        goto close_region;
    err = weir_table_attach(table, &table->service);
    if (err < 0) {
        reason_text(reason, err == WEIR_ERR_FULL ? "too many processes have the state file open"
                                                 : "cannot attach to the state file");
        goto close_region;
    }
    if (alone)
        params_count(table);
    err = table->fd >= 0 ? file_opened(table) : 0;
    if (err < 0)
        goto detach_service;
    *result = table;
    return 0;

detach_service:
    weir_table_detach(table->service);
close_region:
    close_region(table);
    return err;
}

void weir_table_close(struct weir_table *table)
{
    if (table == NULL)
        return;
    weir_table_detach(table->service);
    close_region(table);
}

uint32_t weir_table_span_percent(const struct weir_table *table)
{
    return table->fixed.span_percent;
}

const uint64_t *weir_table_secret(const struct weir_table *table)
{
    return table->fixed.secret;
}

uint64_t weir_table_time(const struct weir_table *table, uint64_t boot_ns)
{
    const struct table_header *fixed = &table->fixed;

    return fixed->t0_ns + (boot_ns > fixed->boot_ns ? boot_ns - fixed->boot_ns : 0);
}

void weir_table_mark(struct weir_table *table, uint64_t now_ns)
{
    uint64_t *mark = &table->header->mark_ns;
    uint64_t seen = __atomic_load_n(mark, __ATOMIC_RELAXED);

    while (seen < now_ns && !__atomic_compare_exchange_n(mark, &seen, now_ns, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}
