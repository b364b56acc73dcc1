/* SPDX-License-Identifier: Apache-2.0 */
/* see state_file.h */
#include "table/file/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/span/span.h"
#include "core/text/reason.h"
#include "table/file/file.h"
#include "table/span/heap.h"

/* Whether the constant part of a header differs from what it was. */
static bool is_another(const struct weir_table *table, const struct table_header *header)
{
    return memcmp(header, &table->fixed, offsetof(struct table_header, check) + 8) != 0 ||
           header->t0_ns != table->fixed.t0_ns || header->boot_ns != table->fixed.boot_ns;
}

bool weir_table_overwritten(const struct weir_table *table)
{
    return is_another(table, table->header);
}

enum weir_table_file weir_table_file_state(const struct weir_table *table)
{
    struct stat ours, there;

    if (table->fd < 0 || fstat(table->fd, &ours) != 0)
        return WEIR_TABLE_FILE_OURS;
    if ((uint64_t)ours.st_size < table->map_bytes)
        return WEIR_TABLE_FILE_CUT;

    struct table_header header;

    /* Read from the file and not from memory, so that a file which is cut at this moment raises no
     * signal. */
    if (pread(table->fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        is_another(table, &header))
        return WEIR_TABLE_FILE_OVERWRITTEN;
    if (stat(table->path, &there) != 0)
        return errno == ENOENT || errno == ENOTDIR ? WEIR_TABLE_FILE_GONE : WEIR_TABLE_FILE_OURS;
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino ? WEIR_TABLE_FILE_OURS
                                                                      : WEIR_TABLE_FILE_OTHER;
}

bool weir_table_mapping(const struct weir_table *table, const void **base, uint64_t *bytes)
{
    *base = table->base;
    *bytes = table->map_bytes;
    return table->fd >= 0;
}

/* Reads the header of an existing file without changing it. Returns 1 for one of this version; 0:
 * there is none, and a new one will be made. */
static int read_there(const struct weir_table_options *options, struct table_header *header,
                      struct weir_reason *reason)
{
    struct stat status;
    int err = 0;

    if (!options->path || options->reset || stat(options->path, &status) != 0)
        return 0;
    if (!S_ISREG(status.st_mode)) {
        reason_text(reason, options->path);
        reason_text(reason, ": not a regular file");
        return WEIR_ERR_FORMAT;
    }

    int fd = open(options->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return 0;
    uint64_t size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;

    if (size > 0) {
        err = file_read_header(fd, options->path, size, header, reason);
        err = err < 0 ? err : 1;
    }
    close(fd);
    return err;
}

/* The header that the region will have: that of the existing file if its size and share of spans
 * stay, else that of a new one. */
static int plan_header(const struct weir_table_options *options, struct table_header *header,
                       struct weir_reason *reason)
{
    struct weir_table_options wanted = *options;
    struct table_header there;
    int err = layout_plan(header, options, reason);
    int is_there = err < 0 ? err : read_there(options, &there, reason);

    if (is_there <= 0)
        return is_there;
    if (options->span_percent == 0)
        wanted.span_percent = there.span_percent;
    if (there.bytes == header->bytes && there.span_percent == wanted.span_percent) {
        *header = there;
        return 0;
    }
    return layout_plan(header, &wanted, reason);
}

int weir_table_check_room(const struct weir_table_options *options, uint32_t limits, uint32_t specs,
                          struct weir_reason *reason)
{
    struct table_header plan;
    struct weir_reason unwanted;

    if (!reason)
        reason = &unwanted;
    reason->text[0] = 0;

    int err = plan_header(options, &plan, reason);

    if (err < 0)
        return err;

    uint64_t room = plan.params_max;

    /* See params.c: beyond three quarters, limits with the same numbers share a place. */
    if (limits <= room || specs <= room / 4)
        return 0;
    reason_number(reason, limits);
    reason_text(reason,
                " distinct limits, with those of plans, keys and candidates, but a state of ");
    reason_number(reason, plan.bytes >> 20);
    reason_text(reason, "MiB has room for ");
    reason_number(reason, room);
    reason_text(reason, limits <= WEIR_TABLE_PARAMS_MAX ? "; raise state.size"
                                                        : "; give fewer different rates");
    return WEIR_ERR_FULL;
}

static void capacity_of(const struct table_header *header, struct weir_table_capacity *capacity)
{
    *capacity = (struct weir_table_capacity){.bytes = header->bytes,
                                             .slots = header->buckets * BUCKET_SLOTS,
                                             .span_bytes = header->pages * TABLE_PAGE};
}

void weir_table_capacity(const struct weir_table *table, struct weir_table_capacity *capacity)
{
    capacity_of(&table->fixed, capacity);
}

int weir_table_plan_capacity(const struct weir_table_options *options,
                             struct weir_table_capacity *capacity, struct weir_reason *reason)
{
    struct table_header plan;
    struct weir_reason unwanted;

    if (!reason)
        reason = &unwanted;
    reason->text[0] = 0;

    int err = plan_header(options, &plan, reason);

    if (err == 0)
        capacity_of(&plan, capacity);
    return err;
}

uint64_t weir_table_keys_of(const struct weir_table_capacity *capacity,
                            const struct weir_limit *limits, uint32_t count)
{
    uint64_t bytes = 0, by_slots, by_spans;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t words = span_full_words(&limits[i]);

        if (region_has_span(&limits[i]))
            bytes += heap_bytes(words > 0 ? words : 2); /* a cell that does not pack */
    }
    if (count == 0)
        return UINT64_MAX;
    by_slots = capacity->slots / 4 * 3 / count; /* at a fill of 75 %; see table.h */
    by_spans = bytes > 0 ? capacity->span_bytes / bytes : UINT64_MAX;
    return by_slots < by_spans ? by_slots : by_spans;
}
