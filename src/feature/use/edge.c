/* SPDX-License-Identifier: Apache-2.0 */
/* see edge.h */
#include "feature/use/edge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "core/text/siphash.h"

#define MAGIC UINT64_C(0x6567646572696577) /* "weiredge" */
#define VERSION 1                          /* raise it when the meaning of a byte changes */
#define PAGE 4096
#define LINE 64

struct header {
    uint64_t magic, version, bytes;
    _Atomic uint64_t used; /* one more than the highest slot that was ever taken */
};

struct limit {
    _Atomic uint64_t name; /* 0: none, and none after it */
    struct weir_counts counts;
    /* Of the limits whose place is the number of a front, whatever their names: the requests of
     * that front that on_store_error decided. Older versions of weir leave it 0. */
    _Atomic uint64_t failed;
};

struct weir_edge_slot {
    struct weir_edge_results fronts[WEIR_EDGE_FRONTS];
    struct limit limits[WEIR_EDGE_LIMITS];
};

struct file {
    struct header header;
    char rest[PAGE - sizeof(struct header)];
    struct weir_edge_slot slots[WEIR_EDGE_SLOTS];
};

_Static_assert(sizeof(struct weir_edge_results) * WEIR_EDGE_FRONTS == LINE, "one cache line");
_Static_assert(sizeof(struct limit) == LINE, "one cache line");
_Static_assert(sizeof(struct weir_edge_slot) % PAGE == 0, "slots are whole pages");

/* Bytes of the file that locks are on: making the file, and each slot. */
enum { LOCK_FILE, LOCK_SLOTS };

struct weir_edge {
    int fd;
    struct file *map;            /* NULL until a slot is taken */
    unsigned next_slot;          /* where the next search begins */
    bool taken[WEIR_EDGE_SLOTS]; /* by this handle: its own locks do not keep it out */
    char path[];
};

/* --- The file --------------------------------------------------------------------------------- */

/* How long a process waits for another to make the file, which takes some milliseconds, and how
 * often it looks. A process that was stopped is not waited for. */
#define PATIENCE_NS 200000000
#define NAP_NS 2000000

static bool is_ours(int fd)
{
    struct header header;
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_size == sizeof(struct file) &&
           pread(fd, &header, sizeof header, 0) == sizeof header && header.magic == MAGIC &&
           header.version == VERSION && header.bytes == sizeof(struct file);
}

/* Whether no process has finished it: the one that makes the file writes the header last. A file
 * with another name, too, may be anyone's. */
static bool is_unmade(int fd)
{
    uint64_t magic = 0;
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
           status.st_size <= (off_t)sizeof(struct file) &&
           pread(fd, &magic, sizeof magic, 0) >= 0 && magic == 0;
}

/* Under the lock of the file. It is never made shorter, and its counts and `used` stay: a member of
 * the group may have cleared the header of a file that others have mapped. */
static int make(int fd, const char *path, const char *state_file, struct weir_reason *reason)
{
    const struct header header = {.magic = MAGIC, .version = VERSION, .bytes = sizeof(struct file)};
    const ssize_t bytes = offsetof(struct header, used);
    weir_file_take_access(fd, state_file);
    errno = posix_fallocate(fd, 0, sizeof(struct file));
    if (errno != 0 || pwrite(fd, &header, bytes, 0) != bytes)
        return weir_file_fail_errno(reason, path, NULL);
    return 0;
}

/* A file was removed, by this process or by another one: the path is to be opened again. */
#define AGAIN 1
/* How often, before other processes are taken to remove it all the time. */
#define OPENS 4

/* Under the lock of the file, which was not finished at the first look. */
static int finish(int fd, const char *path, const char *state_file, bool replace,
                  struct weir_reason *reason)
{
    if (!weir_file_is_at(fd, path, false)) /* another process has replaced it since it was opened */
        return AGAIN;
    if (is_ours(fd))
        return 0;
    if (is_unmade(fd))
        return make(fd, path, state_file, reason);
    if (!replace)
        return weir_file_fail(reason, WEIR_ERR_FORMAT, path,
                              "not made by this version of weir: remove it");
    return unlink(path) == 0 || errno == ENOENT ? AGAIN : weir_file_fail_errno(reason, path, NULL);
}

static int open_once(int *fd, const char *path, const char *state_file, unsigned how,
                     struct weir_reason *reason)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (*fd < 0)
        return weir_file_fail_errno(reason, path, NULL);
    if (is_ours(*fd))
        return 0;
    uint64_t patience_ns = how & WEIR_EDGE_WAIT ? PATIENCE_NS : 0;
    bool locked = weir_file_lock_within(*fd, LOCK_FILE, patience_ns, NAP_NS) == 0;
    int err = locked ? finish(*fd, path, state_file, (how & WEIR_EDGE_REPLACE) != 0, reason)
                     : weir_file_fail(reason, WEIR_ERR_BUSY, path, "another process is making it");
    (void)weir_file_lock(*fd, LOCK_FILE, F_UNLCK);
    if (err != 0)
        close(*fd);
    return err;
}

int weir_edge_open(struct weir_edge **out, const char *state_file, unsigned how,
                   struct weir_reason *reason)
{
    size_t size = strlen(state_file) + sizeof ".edge";
    struct weir_edge *edge = calloc(1, sizeof *edge + size);
    int err = AGAIN;
    *out = NULL;
    if (!edge)
        return WEIR_ERR_MEMORY;
    snprintf(edge->path, size, "%s.edge", state_file);
    for (unsigned i = 0; i < OPENS && err == AGAIN; i++)
        err = open_once(&edge->fd, edge->path, state_file, how, reason);
    if (err == AGAIN)
        err = weir_file_fail(reason, WEIR_ERR_BUSY, edge->path, "other processes remove it");
    if (err < 0) {
        free(edge);
        return err;
    }
    *out = edge;
    return 0;
}

void weir_edge_close(struct weir_edge *edge)
{
    if (!edge)
        return;
    if (edge->map)
        munmap(edge->map, sizeof *edge->map);
    close(edge->fd);
    free(edge);
}

bool weir_edge_is_current(const struct weir_edge *edge)
{
    struct stat status;
    return weir_file_is_at(edge->fd, edge->path, false) && fstat(edge->fd, &status) == 0 &&
           status.st_size == sizeof(struct file);
}

uint64_t weir_edge_name(const char *name, size_t size)
{
    const uint64_t key[2] = {MAGIC, VERSION};
    uint64_t hash[2];
    weir_siphash128(key, name, size, hash);
    return hash[0] != 0 ? hash[0] : 1;
}

/* --- Writers ---------------------------------------------------------------------------------- */

static bool map_file(struct weir_edge *edge)
{
    if (edge->map)
        return true;
    void *map = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, edge->fd, 0);
    if (map == MAP_FAILED)
        return false;
    edge->map = map;
    return true;
}

static void note_used(struct header *header, uint64_t used)
{
    uint64_t before = atomic_load(&header->used);
    while (before < used && !atomic_compare_exchange_weak(&header->used, &before, used))
        continue;
}

struct weir_edge_slot *weir_edge_take(struct weir_edge *edge)
{
    if (!map_file(edge))
        return NULL;
    for (unsigned i = 0; i < WEIR_EDGE_SLOTS; i++) {
        unsigned slot = edge->next_slot++ % WEIR_EDGE_SLOTS;
        if (edge->taken[slot] || !weir_file_lock(edge->fd, LOCK_SLOTS + slot, F_WRLCK))
            continue;
        edge->taken[slot] = true;
        note_used(&edge->map->header, (uint64_t)slot + 1);
        return &edge->map->slots[slot];
    }
    return NULL;
}

struct weir_edge_results *weir_edge_results(struct weir_edge_slot *slot, enum weir_edge_front front)
{
    return &slot->fronts[front];
}

_Atomic uint64_t *weir_edge_failed(struct weir_edge_slot *slot,
                                   const struct weir_edge_results *results)
{
    return &slot->limits[results - slot->fronts].failed;
}

struct weir_counts *weir_edge_limit(struct weir_edge_slot *slot, const char *name, size_t size)
{
    uint64_t hash = weir_edge_name(name, size);
    for (unsigned i = 0; i < WEIR_EDGE_LIMITS; i++) {
        struct limit *limit = &slot->limits[i];
        uint64_t has = atomic_load_explicit(&limit->name, memory_order_relaxed);
        if (has == 0)
            atomic_store_explicit(&limit->name, hash, memory_order_relaxed);
        if (has == 0 || has == hash)
            return &limit->counts;
    }
    return NULL;
}

/* --- Readers ---------------------------------------------------------------------------------- */

static void read_slot(const struct weir_edge_slot *slot,
                      uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS], weir_edge_add add,
                      void *context)
{
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
        for (unsigned r = 0; r < WEIR_EDGE_RESULTS; r++)
            results[f][r] += slot->fronts[f].counts[r];
    for (unsigned i = 0; i < WEIR_EDGE_LIMITS && slot->limits[i].name != 0; i++) {
        const struct weir_counts *counts = &slot->limits[i].counts;
        const struct weir_edge_sum sum = {.allowed = counts->allowed,
                                          .denied = counts->denied,
                                          .shadow_denied = counts->shadow_denied,
                                          .cost = counts->cost,
                                          .delayed = counts->delayed};
        add(context, slot->limits[i].name, &sum);
    }
}

int weir_edge_read(const struct weir_edge *edge,
                   uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS], weir_edge_add add,
                   void *context)
{
    struct weir_edge_slot slot;
    struct header header;
    memset(results, 0, WEIR_EDGE_FRONTS * sizeof *results);
    if (pread(edge->fd, &header, sizeof header, 0) != sizeof header)
        return WEIR_ERR_IO;
    for (uint64_t i = 0; i < header.used && i < WEIR_EDGE_SLOTS; i++) {
        off_t at = (off_t)(offsetof(struct file, slots) + i * sizeof slot);
        if (pread(edge->fd, &slot, sizeof slot, at) != sizeof slot)
            return WEIR_ERR_IO;
        read_slot(&slot, results, add, context);
    }
    return 0;
}

/* Reads the first `size` bytes of the slots that were ever taken, one after the other. False: there
 * is no more. */
static bool read_head(const struct weir_edge *edge, uint64_t used, uint64_t *next, void *head,
                      size_t size)
{
    if (*next >= used || *next >= WEIR_EDGE_SLOTS)
        return false;
    off_t at = (off_t)(offsetof(struct file, slots) + (*next)++ * sizeof(struct weir_edge_slot));
    return pread(edge->fd, head, size, at) == (ssize_t)size;
}

/* How many slots were ever taken. */
static uint64_t used_of(const struct weir_edge *edge)
{
    struct header header;
    return pread(edge->fd, &header, sizeof header, 0) == sizeof header ? header.used : 0;
}

uint64_t weir_edge_unknown(const struct weir_edge *edge)
{
    struct weir_edge_results fronts[WEIR_EDGE_FRONTS];
    uint64_t unknown = 0, used = used_of(edge), next = 0;
    while (read_head(edge, used, &next, fronts, sizeof fronts))
        for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
            unknown += fronts[f].unknown;
    return unknown;
}

void weir_edge_failures(const struct weir_edge *edge, uint64_t failed[WEIR_EDGE_FRONTS])
{
    struct {
        struct weir_edge_results fronts[WEIR_EDGE_FRONTS];
        struct limit limits[WEIR_EDGE_FRONTS];
    } head;
    uint64_t used = used_of(edge), next = 0;
    memset(failed, 0, WEIR_EDGE_FRONTS * sizeof *failed);
    while (read_head(edge, used, &next, &head, sizeof head))
        for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
            failed[f] += head.limits[f].failed;
}
