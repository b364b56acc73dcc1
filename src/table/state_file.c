/* SPDX-License-Identifier: Apache-2.0 */
/* see state_file.h */
#include "table/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/reason.h"
#include "table/file.h"

/* Whether what never changes in a header is not what it was. */
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

    /* Read from the file, so that one that is cut at this moment is no signal. */
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

/* How many limits the file has room for that is there: of a size that stays. 0: none is there, or
 * its size changes when it is opened next. */
static int room_of_file(const struct weir_table_options *options, const struct table_header *plan,
                        uint64_t *room, struct weir_reason *reason)
{
    struct table_header header;
    struct stat status;
    int err = 0;

    *room = 0;
    if (options->path == NULL || stat(options->path, &status) != 0)
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
        err = file_is_version1(fd) ? 1 : file_read_header(fd, options->path, size, &header, reason);
        if (err == 0 && header.bytes == plan->bytes)
            *room = header.params_max;
    }
    close(fd);
    return err > 0 ? 0 : err; /* a file of version 1 is copied into a new one */
}

int weir_table_check_room(const struct weir_table_options *options, uint32_t limits, uint32_t specs,
                          struct weir_reason *reason)
{
    struct table_header plan;
    struct weir_reason unwanted;
    uint64_t room = 0;

    if (reason == NULL)
        reason = &unwanted;
    reason->text[0] = 0;

    int err = layout_plan(&plan, options, reason);

    if (err == 0 && !options->reset) /* else the file will be replaced */
        err = room_of_file(options, &plan, &room, reason);
    if (err < 0)
        return err;
    room = room > 0 ? room : plan.params_max;
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
