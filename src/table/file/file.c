/* SPDX-License-Identifier: Apache-2.0 */
/* see file.h */
#include "table/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/draft.h"
#include "base/shared_file.h"
#include "core/text/reason.h"
#include "table/file/access.h"
#include "table/file/copy.h"
#include "table/owner.h"
#include "table/sweep.h"
#include "table/undo.h"

/* A time beyond this is no time (see weir/limit.h). */
#define TIME_MAX (UINT64_C(1) << 62)

#define VERSION_OF_0_1 1 /* weir 0.2 copies such a file */

static int fail_errno(struct weir_reason *reason, const char *path, const char *what)
{
    int number = errno, err = weir_file_fail_errno(reason, path, what);

    if (number == EACCES || number == EPERM)
        access_explain(path, reason);
    return err == WEIR_ERR_MEMORY ? err : WEIR_ERR_IO;
}

#define NAP_NS UINT64_C(10000000)

/* How often to nap while another process opens a file: a process that opens it alone reads all of
 * it, from a disk that may be slow. */
static uint64_t opening_naps(int fd, const struct weir_table_options *options)
{
    uint64_t patience_ns = options->open_patience_ns;
    struct stat status;

    if (patience_ns == 0) {
        patience_ns = WEIR_TABLE_OPEN_PATIENCE_NS;
        if (fstat(fd, &status) == 0)
            patience_ns += ((uint64_t)status.st_size >> 20) * WEIR_TABLE_OPEN_PATIENCE_MIB_NS;
    }
    return patience_ns / NAP_NS;
}

/* Keeps others from opening the file `fd`, which is called `path`. Errors: WEIR_ERR_BUSY,
 * WEIR_ERR_IO. */
static int lock_opening(int fd, const char *path, const struct weir_table_options *options,
                        struct weir_reason *reason)
{
    const struct timespec nap = {0, NAP_NS};

    for (uint64_t naps = 0; !weir_file_lock(fd, LOCK_OPENING, F_WRLCK); naps++) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return fail_errno(reason, path, "lock it");
        if (naps >= opening_naps(fd, options))
            return weir_file_fail(
                reason, WEIR_ERR_BUSY, path,
                "another process is opening it and makes no progress: it is stopped, or its "
                "disk hangs; resume it (kill -CONT) or end it (fuser lists the processes "
                "that have the file open)");
        nanosleep(&nap, NULL);
    }
    return 0;
}

static int map_file(struct weir_table *table, uint64_t bytes, struct weir_reason *reason,
                    uint8_t **base)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, table->fd, 0);

    if (map == MAP_FAILED)
        return fail_errno(reason, table->path, "map it");
    table->map_bytes = bytes;
    table->base = map;
    *base = map;
    return 0;
}

/* Opens path.new for building a file, and locks it against all other processes that build one.
 * Returns the descriptor, or an error. */
static int open_draft(const char *path, const struct weir_table_options *options,
                      struct weir_reason *reason)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
            return fail_errno(reason, path, "create it");

        int err = lock_opening(fd, path, options, reason);

        if (err < 0) {
            close(fd);
            return err;
        }
        /* Checked before the presence lock is tried: while this process waited, another may have
         * renamed this draft to the file itself, and processes that use the file hold that lock. */
        if (weir_file_is_at(fd, path, true)) {
            if (weir_file_lock(fd, LOCK_PRESENCE, F_WRLCK))
                return fd;
            close(fd);
            return weir_file_fail(reason, WEIR_ERR_BUSY, path, "in use by another process");
        }
        close(fd); /* another process has built one and renamed it */
    }
}

/* Builds a file under the name `draft` and maps it; nothing but its header is written. `old`: the
 * file that it replaces, -1: none. */
static int build(struct weir_table *table, const char *draft,
                 const struct weir_table_options *options, int old, struct weir_reason *reason)
{
    struct table_header plan;
    uint8_t *base = NULL;
    int err = layout_plan(&plan, options, reason);

    if (err < 0)
        return err;
    /* Allocates all blocks, so that a full disk is an error now and not a signal later. */
    if (ftruncate(table->fd, 0) != 0)
        return fail_errno(reason, draft, "write it");
    err = access_set(table->fd, draft, options, old, reason);
    if (err < 0)
        return err;
    errno = posix_fallocate(table->fd, 0, (off_t)plan.bytes);
    if (errno != 0)
        return fail_errno(reason, draft, "reserve its size on disk");
    err = map_file(table, plan.bytes, reason, &base);
    if (err < 0)
        return err;
    return region_format(table, base, &plan, options);
}

/* Copies the states that fit, and the time; `old` may be a region that was in use until now. */
static int copy(struct weir_table *table, const struct weir_table_options *options,
                const struct weir_table *old, struct weir_reason *reason)
{
    struct table_header *header = table->header;
    uint64_t mark_ns = __atomic_load_n(&old->header->mark_ns, __ATOMIC_RELAXED);
    uint64_t now_ns = weir_table_time(old, options->boot_ns);
    struct weir_reason detail = {""};
    int err = copy_region(table, old);

    if (err < 0)
        return err;
    now_ns = now_ns > mark_ns ? now_ns : mark_ns;
    header->t0_ns = now_ns > options->wall_ns ? now_ns : options->wall_ns;
    header->mark_ns = header->t0_ns;
    table->fixed.t0_ns = header->t0_ns;
    /* Another process may have written to `old` meanwhile. */
    if (weir_table_validate(table, &detail) == 0)
        return 0;
    weir_file_fail(reason, WEIR_ERR_BUSY, table->path,
                   "cannot be copied while another process writes: ");
    reason_text(reason, detail.text);
    return WEIR_ERR_BUSY;
}

/* Creates the file table->path, with what fits of `from` (NULL: empty). */
static int create(struct weir_table *table, const struct weir_table_options *options,
                  const struct weir_table *from, bool replace, struct weir_reason *reason)
{
    char draft[PATH_MAX];
    struct weir_table_options with_secret = *options;
    int err;

    table->fd = -1;
    if (!weir_draft_name(draft, table->path))
        return fail_errno(reason, table->path, "create it");
    table->fd = err = open_draft(draft, options, reason);
    if (err < 0)
        return err;
    if (!replace && access(table->path, F_OK) == 0) {
        err = 1; /* another process was faster: open that */
        goto remove_draft;
    }
    if (from)
        memcpy(with_secret.secret, from->fixed.secret, sizeof with_secret.secret);
    err = build(table, draft, &with_secret, from ? from->fd : -1, reason);
    if (err == 0 && from)
        err = copy(table, options, from, reason);
    if (err < 0)
        goto remove_draft;
    if (rename(draft, table->path) == 0)
        return err;
    err = fail_errno(reason, table->path, "rename the new file to it");

remove_draft:
    unlink(draft);
    region_unmap(table);
    close(table->fd);
    table->fd = -1;
    return err;
}

int file_read_header(int fd, const char *path, uint64_t size, struct table_header *header,
                     struct weir_reason *reason)
{
    if (size < sizeof *header || pread(fd, header, sizeof *header, 0) != sizeof *header ||
        header->magic != TABLE_MAGIC)
        return weir_file_fail(reason, WEIR_ERR_FORMAT, path, "not a state file of weir");
    if (header->version == VERSION_OF_0_1)
        return weir_file_fail(
            reason, WEIR_ERR_FORMAT, path,
            "a state file of weir 0.1: start weir 0.2 on it once, which copies it, or begin "
            "anew (weir serve --reset-state)");
    if (header->version != TABLE_VERSION || header->layout != layout_checksum())
        return weir_file_fail(
            reason, WEIR_ERR_FORMAT, path,
            "a state file of another version of weir: give all programs on it the same "
            "version, or name another file");
    if (header->check != layout_header_check(header) || layout_check(header) < 0)
        return weir_file_fail(reason, WEIR_ERR_DAMAGED, path, "the state file's header is damaged");
    if (header->bytes != size)
        return weir_file_fail(reason, WEIR_ERR_DAMAGED, path,
                              "the state file has the wrong size: it was cut short or extended");
    return 0;
}

/* What no machine counts in its life: a damaged counter begins anew. */
#define COUNT_MAX (UINT64_C(1) << 56)

static void mend_count(uint64_t *count)
{
    if (*count >= COUNT_MAX)
        *count = 0;
}

/* Counters decide nothing, so damage of them is no reason to refuse the file. */
static void mend_counts(struct weir_table *table)
{
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        mend_count(&table->accounts[i].evictions);
        mend_count(&table->accounts[i].overflows);
    }
    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        for (int which = 0; which < COUNTERS; which++)
            mend_count(&table->owners[i].counters[which]);
}

/* Recovers dead owners and looks for damage, when no other process has the file open. */
static int take_over(struct weir_table *table, const struct weir_table_options *options,
                     struct weir_reason *reason)
{
    struct table_header *header = table->header;
    struct weir_reason detail = {""};

    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        if (!undo_valid(table, &table->owners[i]))
            return weir_file_fail(reason, WEIR_ERR_DAMAGED, table->path,
                                  "the state file's journals are damaged");
    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        owner_recover(table, i);

    int err = sweep_dropped(table);

    if (err < 0)
        return err;
    if (header->mark_ns >= TIME_MAX || weir_table_validate(table, &detail) < 0) {
        weir_file_fail(reason, WEIR_ERR_DAMAGED, table->path, "the state file is damaged: ");
        reason_text(reason, header->mark_ns >= TIME_MAX ? "its time" : detail.text);
        return WEIR_ERR_DAMAGED;
    }
    mend_counts(table);
    header->t0_ns = options->wall_ns > header->mark_ns ? options->wall_ns : header->mark_ns;
    header->boot_ns = options->boot_ns;
    table->fixed.t0_ns = header->t0_ns;
    table->fixed.boot_ns = header->boot_ns;
    return 0;
}

/* Whether the options ask for another size or share of spans than a region has. */
static bool is_other(const struct table_header *header, const struct weir_table_options *options,
                     const struct table_header *plan)
{
    return plan->bytes != header->bytes ||
           (options->span_percent != 0 && options->span_percent != header->span_percent);
}

/* Opens an existing file. `alone`: no other process has it open. */
static int open_existing(struct weir_table *table, const struct weir_table_options *options,
                         bool alone, struct weir_reason *reason)
{
    struct table_header header, plan;
    struct stat status;
    uint8_t *base = NULL;
    int err = layout_plan(&plan, options, reason);

    if (err < 0)
        return err;
    if (fstat(table->fd, &status) != 0)
        return fail_errno(reason, table->path, "read it");
    err = file_read_header(table->fd, table->path, (uint64_t)status.st_size, &header, reason);
    if (err < 0)
        return err;
    if (is_other(&header, options, &plan) && !alone)
        return weir_file_fail(
            reason, WEIR_ERR_BUSY, table->path,
            "its size and share of spans cannot change while another process has it open; "
            "stop that one first");
    err = map_file(table, header.bytes, reason, &base);
    if (err < 0)
        return err;
    region_bind(table, base, &header);
    if (alone)
        err = take_over(table, options, reason);
    return err;
}

/* Replaces the file that only `table` has open: by an empty one, or by a copy of another size. */
static int replace(struct weir_table *table, const struct weir_table_options *options, bool keep,
                   struct weir_reason *reason)
{
    struct weir_table old = *table;

    table->map_bytes = 0;

    struct weir_table_options same_share = *options;

    if (keep && options->span_percent == 0)
        same_share.span_percent = old.fixed.span_percent;

    int err = create(table, &same_share, keep ? &old : NULL, true, reason);

    region_unmap(&old);
    close(old.fd); /* only now: a process that waits for its lock then sees that it was renamed away
                    */
    return err;
}

/* One attempt to open the file. Returns 1 if another process has replaced it meanwhile: then try
 * again. */
static int try_open_file(struct weir_table *table, const struct weir_table_options *options,
                         bool *alone, struct weir_reason *reason)
{
    struct stat status;
    int err;

    *alone = false;
    table->fd = open(table->path, O_RDWR | O_CLOEXEC);
    if (table->fd < 0)
        return errno == ENOENT ? create(table, options, options->copy_of, false, reason)
                               : fail_errno(reason, table->path, "open it");
    if (fstat(table->fd, &status) != 0 || !S_ISREG(status.st_mode))
        return weir_file_fail(reason, WEIR_ERR_FORMAT, table->path, "not a regular file");
    err = lock_opening(table->fd, table->path, options, reason);
    if (err < 0)
        return err;
    if (!weir_file_is_at(table->fd, table->path, true)) {
        close(table->fd);
        table->fd = -1;
        return 1;
    }
    *alone = weir_file_lock(table->fd, LOCK_PRESENCE, F_WRLCK);

    if (options->reset && !*alone)
        return weir_file_fail(
            reason, WEIR_ERR_BUSY, table->path,
            "cannot be reset while another process has it open; stop that one first");
    if (options->reset ||
        (*alone && fstat(table->fd, &status) == 0 && status.st_size == 0)) /* no state to lose */
        return replace(table, options, false, reason);

    err = open_existing(table, options, *alone, reason);

    struct table_header plan;

    if (err == 0 && layout_plan(&plan, options, reason) == 0 &&
        is_other(&table->fixed, options, &plan))
        err = replace(table, options, true, reason);
    return err;
}

int file_open(struct weir_table *table, const struct weir_table_options *options, bool *alone,
              struct weir_reason *reason)
{
    int err;

    table->path = strdup(options->path);
    if (!table->path)
        return WEIR_ERR_MEMORY;
    do
        err = try_open_file(table, options, alone, reason);
    while (err > 0);
    return err;
}

int file_opened(struct weir_table *table)
{
    return weir_file_lock(table->fd, LOCK_PRESENCE, F_RDLCK) &&
                   weir_file_lock(table->fd, LOCK_OPENING, F_UNLCK)
               ? 0
               : WEIR_ERR_IO;
}
