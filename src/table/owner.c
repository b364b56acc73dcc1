/* SPDX-License-Identifier: Apache-2.0 */
/* see owner.h */
#include "table/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "table/params.h"
#include "table/undo.h"

/* Waiting. A lock is held for tens of nanoseconds; a pause is up to 140 cycles. So an owner that
 * still waits after SPINS tries has probably met a holder that is not running, and yields its
 * processor. After YIELDS more it asks whether the holder lives, by a system call, and sleeps
 * between further tries so that a holder of lower priority can run. */
#define SPINS 64
#define YIELDS 32
#define NAP_NS 20000

#define GENERATION_MAX 0xffffffu

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether the holder that a lock value names is gone. */
static bool is_stale(const struct weir_table *table, uint32_t value)
{
    uint32_t index = value & 255;

    return index >= table->fixed.owners_max ||
           __atomic_load_n(&table->owners[index].generation, __ATOMIC_ACQUIRE) != value >> 8;
}

static void clear_lock(uint32_t *lock, uint32_t index)
{
    uint32_t value = __atomic_load_n(lock, __ATOMIC_RELAXED);

    if (value != 0 && (value & 255) == index)
        __atomic_compare_exchange_n(lock, &value, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Gives the slot's next holder a generation that no lock of an earlier one names. When the 24 bits
 * wrap around, all locks of this slot are cleared first: they are all stale. */
static void raise_generation(struct weir_table *table, uint32_t index)
{
    struct table_owner_slot *slot = &table->owners[index];
    uint32_t next = slot->generation + 1;

    if (next > GENERATION_MAX) {
        next = 1;
        __atomic_store_n(&slot->generation, 0, __ATOMIC_RELEASE);
        for (uint64_t i = 0; i < table->fixed.buckets; i++)
            clear_lock(&table->buckets[i].lock, index);
        for (uint32_t i = 0; i < table->fixed.params_max; i++)
            clear_lock(&table->params[i].lock, index);
        clear_lock(&table->header->chunks_lock, index);
        clear_lock(&table->header->heap_lock, index);
        clear_lock(&table->header->spill_lock, index);
    }
    __atomic_store_n(&slot->generation, next, __ATOMIC_RELEASE);
}

void owner_recover(struct weir_table *table, uint32_t index)
{
    undo_take_back(table, &table->owners[index]);
    raise_generation(table, index);
}

/* Recovers the holder of a lock if it is dead. */
static void probe(struct weir_table_owner *owner, uint32_t value)
{
    struct weir_table *table = owner->table;
    uint32_t index = value & 255;

    if (owner->fd < 0 || index == owner->index ||
        !weir_file_lock(owner->fd, LOCK_OWNER(index), F_WRLCK))
        return;
    if (!is_stale(table, value)) {
        owner_recover(table, index);
        owner_count(owner, COUNT_RECOVERIES);
    }
    (void)weir_file_lock(owner->fd, LOCK_OWNER(index), F_UNLCK);
}

/* --- Stopped holders -------------------------------------------------------------------------- */

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool is_ours(const struct weir_table *table, uint32_t index)
{
    return __atomic_load_n(&table->ours[index], __ATOMIC_RELAXED);
}

/* Whether an earlier wait for the holder `value` used up the patience, and it still has that lock.
 */
static bool is_known(const struct weir_table *table, uint32_t value)
{
    const uint32_t *lock = __atomic_load_n(&table->stuck[value & 255], __ATOMIC_ACQUIRE);

    return lock && __atomic_load_n(lock, __ATOMIC_RELAXED) == value;
}

/* A lock of this holder was given back. */
static void forget(struct weir_table *table, uint32_t value)
{
    uint32_t **stuck = &table->stuck[value & 255];

    if (__atomic_load_n(stuck, __ATOMIC_RELAXED))
        __atomic_store_n(stuck, NULL, __ATOMIC_RELEASE);
}

/* A wait for one holder. */
struct wait {
    uint32_t value;
    uint32_t naps;     /* for a thread of this process */
    uint64_t since_ns; /* for another process; 0: not begun */
};

/* Threads of one process are stopped together, so naps are counted, which end with the stop, and
 * not time. None of them holds a lock this long: another process has written a lock in its name. */
#define OURS_NAPS (UINT64_C(1000000000) / NAP_NS)

/* Whether to stop waiting for the holder `value` of `lock`; remembers it if so. */
static bool is_over(struct weir_table *table, uint32_t *lock, uint32_t value, struct wait *wait)
{
    if (table->patience_ns == 0 || value == 0 || is_stale(table, value))
        return false;
    if (is_known(table, value))
        return true;
    if (is_ours(table, value & 255)) {
        if (value != wait->value)
            *wait = (struct wait){.value = value};
        if (++wait->naps < OURS_NAPS)
            return false;
    } else {
        uint64_t now_ns = monotonic_ns();

        if (value != wait->value || wait->since_ns == 0)
            *wait = (struct wait){.value = value, .since_ns = now_ns};
        if (now_ns - wait->since_ns < table->patience_ns)
            return false;
    }
    __atomic_store_n(&table->stuck[value & 255], lock, __ATOMIC_RELEASE);
    return true;
}

static bool give_up(struct weir_table_owner *owner)
{
    owner->stuck = true;
    __atomic_fetch_add(&owner->table->given_up, 1, __ATOMIC_RELAXED);
    return false;
}

bool owner_wait(struct weir_table_owner *owner, uint32_t *lock)
{
    struct weir_table *table = owner->table;
    struct wait wait = {.value = 0};
    uint32_t holder = 0;

    owner_count(owner, COUNT_LOCK_WAITS);
    for (uint32_t tries = 0;; tries++) {
        uint32_t value = __atomic_load_n(lock, __ATOMIC_RELAXED);

        if (value == owner->me)
            return true; /* no thread waits for itself: another process has written it */
        if (value != 0)
            holder = value;
        if ((value == 0 || is_stale(table, value)) &&
            __atomic_compare_exchange_n(lock, &value, owner->me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            forget(table, holder);
            return true;
        }
        if (tries < SPINS || (tries == SPINS && !is_known(table, value))) {
            relax();
        } else if (tries < SPINS + YIELDS && !is_known(table, value)) {
            sched_yield();
        } else {
            struct timespec nap = {0, NAP_NS};

            probe(owner, value);
            if (is_over(table, lock, value, &wait))
                return give_up(owner);
            nanosleep(&nap, NULL);
        }
    }
}

bool owner_try_stale(struct weir_table_owner *owner, uint32_t *lock)
{
    uint32_t value = __atomic_load_n(lock, __ATOMIC_RELAXED);

    return (value == 0 || is_stale(owner->table, value)) &&
           __atomic_compare_exchange_n(lock, &value, owner->me, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Whether a lock keeps this value for longer than a running holder keeps a lock. */
static bool is_kept(const uint32_t *lock, uint32_t value)
{
    for (uint32_t tries = 0; tries < SPINS + YIELDS; tries++) {
        if (__atomic_load_n(lock, __ATOMIC_RELAXED) != value)
            return false;
        if (tries < SPINS)
            relax();
        else
            sched_yield();
    }
    return true;
}

uint32_t weir_table_stopped(struct weir_table *table)
{
    for (uint32_t i = 0; i < table->fixed.owners_max; i++) {
        uint32_t *lock = __atomic_load_n(&table->stuck[i], __ATOMIC_ACQUIRE);

        if (!lock)
            continue;

        uint32_t value = __atomic_load_n(lock, __ATOMIC_RELAXED);

        if (value != 0 && (value & 255) == i && !is_stale(table, value) && is_kept(lock, value) &&
            owner_is_alive(table, i))
            return table->owners[i].pid;
        /* Not if another waiter has stored a lock meanwhile. */
        __atomic_compare_exchange_n(&table->stuck[i], &lock, NULL, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
    return 0;
}

/* --- Attaching -------------------------------------------------------------------------------- */

/* An open file description of this owner's own: locks of one description don't exclude each other.
 * The path may name another file meanwhile (a region of another size that replaced it). */
static int open_again(const struct weir_table *table)
{
    char self[32] = "/proc/self/fd/";
    char digits[12];
    uint32_t length = 0, at = 14;

    for (int rest = table->fd; rest > 0 || length == 0; rest /= 10)
        digits[length++] = (char)('0' + rest % 10);
    while (length > 0)
        self[at++] = digits[--length];
    self[at] = 0;
    for (int i = 0; i < 2; i++) {
        int fd = open(i == 0 ? table->path : self, O_RDWR | O_CLOEXEC);

        if (fd < 0)
            continue;
        if (weir_file_is_same(fd, table->fd))
            return fd;
        close(fd);
    }
    return -1;
}

/* Takes a free slot of the registry. */
static int take_slot(struct weir_table_owner *owner)
{
    struct weir_table *table = owner->table;

    for (uint32_t i = 0; i < table->fixed.owners_max; i++) {
        struct table_owner_slot *slot = &table->owners[i];

        if (owner->fd >= 0) {
            if (!weir_file_lock(owner->fd, LOCK_OWNER(i), F_WRLCK))
                continue;
            owner_recover(table, i);
        } else {
            uint32_t no = 0;

            if (!__atomic_compare_exchange_n(&slot->attached, &no, 1, false, __ATOMIC_ACQUIRE,
                                             __ATOMIC_RELAXED))
                continue;
            raise_generation(table, i);
        }
        slot->pid = (uint32_t)getpid();
        params_forget_pins(table, i);
        __atomic_store_n(&table->ours[i], true, __ATOMIC_RELAXED);
        owner->slot = slot;
        owner->index = i;
        owner->me = slot->generation << 8 | i;
        return 0;
    }
    return WEIR_ERR_FULL;
}

int weir_table_attach(struct weir_table *table, struct weir_table_owner **result)
{
    struct weir_table_owner *owner =
        aligned_alloc(TABLE_LINE, (sizeof *owner + TABLE_LINE - 1) / TABLE_LINE * TABLE_LINE);
    int err = WEIR_ERR_MEMORY;

    if (!owner)
        return WEIR_ERR_MEMORY;
    *owner = (struct weir_table_owner){.table = table, .fd = -1, .no_run = UINT32_MAX};
    owner->slots.held = calloc(table->fixed.params_max, 2 * sizeof *owner->slots.held);
    if (!owner->slots.held)
        goto free_owner;
    owner->spans.held = owner->slots.held + table->fixed.params_max;
    if (table->fd >= 0) {
        err = WEIR_ERR_IO;
        owner->fd = open_again(table);
        if (owner->fd < 0)
            goto free_held;
    }
    err = take_slot(owner);
    if (err < 0)
        goto close_file;
    *result = owner;
    return 0;

close_file:
    if (owner->fd >= 0)
        close(owner->fd);
free_held:
    free(owner->slots.held);
free_owner:
    free(owner);
    return err;
}

struct weir_table_owner *owner_open_alone(struct weir_table *table)
{
    struct weir_table_owner *owner = calloc(1, sizeof *owner);

    if (!owner)
        return NULL;
    owner->table = table;
    owner->slot = &table->owners[0];
    if (owner->slot->generation == 0) /* no owner has had it, and 0 means that a lock is free */
        owner->slot->generation = 1;
    owner->me = owner->slot->generation << 8;
    owner->fd = -1;
    owner->no_run = UINT32_MAX;
    return owner;
}

void weir_table_detach(struct weir_table_owner *owner)
{
    if (!owner)
        return;
    __atomic_store_n(&owner->table->ours[owner->index], false, __ATOMIC_RELAXED);
    if (owner->fd >= 0)
        close(owner->fd); /* which releases the lock of the slot */
    else
        __atomic_store_n(&owner->slot->attached, 0, __ATOMIC_RELEASE);
    free(owner->slots.held);
    free(owner);
}

bool owner_is_alive(const struct weir_table *table, uint32_t index)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)LOCK_OWNER(index), .l_len = 1};

    if (table->fd < 0)
        return __atomic_load_n(&table->owners[index].attached, __ATOMIC_RELAXED) != 0;
    return fcntl(table->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

uint64_t owner_count_alive(const struct weir_table *table)
{
    uint64_t alive = 0;

    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        alive += owner_is_alive(table, i);
    return alive;
}
