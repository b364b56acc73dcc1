/* SPDX-License-Identifier: Apache-2.0 */
/* The table: the bounded, shared, crash-safe memory of what every key has used.
 *
 * One flat region of a fixed byte size without pointers, in private memory or in a file mapped by
 * several processes:
 *
 *   | header | parameters | accounts | owners | spill | pages | cells | buckets | spans |
 *
 *   header      version, layout checksum, secret, clock anchor, high-water mark
 *   parameters  interned struct weir_limit, so that the freshness of a state and a changed limit
 *               are known after a restart
 *   accounts    who pays for states: one for each limit (account.h)
 *   owners      one slot a thread: a generation, an undo journal, counters
 *   spill       the rest of a journal that is too long for its owner's slot
 *   cells       where keys count for which there is no room (overflow.h)
 *   buckets     128 bytes: a lock and six slots, each a tag of 52 bits, a parameter id and 12 bytes
 *               of state (or the offset of a span)
 *   spans       states that need more, in size classes; pages say which are taken
 *
 *   bucket (two adjacent cache lines)
 *   0      4       8           20          32                                    128
 *   | lock | marks | tag_hi[6] | param[6]  | slot[6]: state[3], tag_lo           |
 *
 * A key has two candidate buckets (position.h). It goes into the first unless that is full, then
 * into the second; when both are, one of their keys moves to its own second one (placement.h). A
 * lookup reads without the lock where the key seems to be, locks that bucket, and reads again; it
 * visits the other bucket only when the key is not there. A false match has a probability below
 * 2^-48 a lookup.
 *
 * A slot whose state equals a fresh one is free: no sweeper, no rehash. When both buckets are full
 * and no key can move, a state is evicted: one of the same limit, or, where that limit has less
 * than its guaranteed part of the table, one of the limit that has most; there the one that has
 * used the least (placement.h, account.h). A new key does not evict a state of its own limit that
 * denies: it counts in cells that it shares with other keys (overflow.h). So decisions are exact
 * while evictions and overflows are 0; an eviction forgives at most what that key had used;
 * overflow denies early, never late.
 *
 * Atomicity. A decision locks the buckets of all its checks in address order, evaluates, and writes
 * in place; before each write, the old word goes to its owner's undo journal, which one store
 * empties at the end. A single state is one store and needs no journal. A lock word names an owner
 * slot and its generation. An owner that waits too long asks whether the holder lives (an open file
 * description lock held per slot; in private memory owners are threads of this process and always
 * live); if not, it undoes what the journal lists, raises the generation, and takes the lock over.
 * A process may die at any instruction. Power loss is not promised.
 *
 * Fork: a child has none of its parent's owners and attaches anew. It has copies of the parent's
 * file descriptors, though, and while it keeps them without calling exec, its parent seems to live
 * to others; a daemon forks first and opens then.
 *
 * Memory: bytes / 128 * 6 slots; 28.4 bytes a key at 75 % fill, 30.8 with all that is around.
 * Threads: a struct weir_table is shared by all threads; a struct weir_table_owner belongs to one.
 */
#ifndef WEIR_TABLE_TABLE_H
#define WEIR_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/check.h"

#define WEIR_TABLE_BYTES_MIN (UINT64_C(1) << 18)
#define WEIR_TABLE_BYTES_MAX (UINT64_C(1) << 42)
#define WEIR_TABLE_OWNERS_MAX 256   /* threads attached at one time, of all processes */
#define WEIR_TABLE_PARAMS_MAX 16384 /* distinct limits (by their parameters) of one region */

/* How long weir waits while another process opens the file: 5 s, and what it takes to read each MiB
 * of it at 100 MB/s. */
#define WEIR_TABLE_OPEN_PATIENCE_NS UINT64_C(5000000000)
#define WEIR_TABLE_OPEN_PATIENCE_MIB_NS UINT64_C(10000000)

struct weir_table;
struct weir_table_owner;

/* Zero is the default everywhere. */
struct weir_table_options {
    const char *path;      /* a file that outlives the process; NULL: private memory */
    uint64_t bytes;        /* the whole region; 0: 64 MiB */
    uint32_t span_percent; /* share of the region for spans, at most 90; 0: as it is, and in a new
                              region span_percent_new */
    uint32_t span_percent_new; /* 0: 2 */
    uint32_t
        params_max; /* distinct limits; 0: chosen from `bytes`, at most WEIR_TABLE_PARAMS_MAX */
    const struct weir_table *copy_of; /* a new file, or private memory, begins with the states of
                                         this table, whose owners no longer write; private memory
                                         needs its secret. NULL: it begins empty */
    /* Of a new file; one that exists keeps what it has. */
    const char *owner, *group; /* names; NULL: the process's own, or those of the file replaced */
    uint32_t mode;             /* bits of 0666; 0: that of the file replaced, else 0600, or
                                  0660 in a folder that a group shares */
    bool sparse;      /* private memory: of small pages, touched only as far as it is used */
    bool reset;       /* begin with an empty file: the existing one is removed, good or damaged
                         (--reset-state) */
    uint64_t wall_ns; /* the wall clock now: t0 of a region that no other process has open */
    uint64_t boot_ns; /* CLOCK_BOOTTIME now */
    uint64_t
        patience_ns; /* how long to wait for a lock that a live process holds; 0: without a bound */
    uint64_t open_patience_ns; /* how long to wait while another process opens the file; 0:
                                  WEIR_TABLE_OPEN_PATIENCE_NS, and more for a large one */
    uint64_t secret[2];        /* for tests: the secret of a new region; 0, 0: random */
};

/* Opens or creates. An existing file of another size or share of spans is copied, as far as it
 * fits, into a new region that takes its place (only when no other process has it
 * open). A process that opens a file alone checks all of it, which reads it once. Errors:
 * WEIR_ERR_RANGE, WEIR_ERR_IO, WEIR_ERR_MEMORY, WEIR_ERR_FORMAT (with `reset` only where it is not
 * a regular file), WEIR_ERR_DAMAGED (never with `reset`); the file is left as it is in both cases.
 * WEIR_ERR_BUSY (another size, or reset, while in use; or a process that is opening the file has
 * been stopped). */
int weir_table_open(struct weir_table **table, const struct weir_table_options *options,
                    struct weir_reason *reason) __attribute__((warn_unused_result));

/* Opens a spare: private memory of the same size for decisions that `table` cannot make
 * (WEIR_ERR_BUSY). Limits that were adopted have the ids there that they have in `table`. It takes
 * memory as far as it is used. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_table_open_spare(struct weir_table **spare, const struct weir_table *table,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Makes a limit that has its id known to a spare. If the id belonged to another limit, the states
 * of that limit are removed, which walks the whole table. Errors: WEIR_ERR_RANGE (no id of
 * `table`). */
int weir_table_adopt(struct weir_table *spare, const struct weir_limit *limit)
    __attribute__((warn_unused_result));

/* Detach all owners first. */
void weir_table_close(struct weir_table *table);

/* The size of the whole region. */
uint64_t weir_table_bytes(const struct weir_table *table);

/* The share of the region for spans, in percent. */
uint32_t weir_table_span_percent(const struct weir_table *table);

/* The secret that keys are hashed with; never shown to a peer. */
const uint64_t *weir_table_secret(const struct weir_table *table);

/* Time of the region for a reading of CLOCK_BOOTTIME: t0 + elapsed, the same for all processes on
 * it. weir_table_mark raises the high-water mark that the next t0 starts from; call it once a turn.
 */
uint64_t weir_table_time(const struct weir_table *table, uint64_t boot_ns);

/* A mark in the region for its other processes: `weir serve` keeps a map (standing.h) whose
 * file is of this generation, or a greater one. 0: there is none that is to be expected. */
void weir_table_expect_standing(struct weir_table *table, uint64_t generation);
uint64_t weir_table_standing(const struct weir_table *table);
void weir_table_mark(struct weir_table *table, uint64_t now_ns);

/* Gives a limit its id in this region. Limits of one name share one account, whatever their
 * numbers; so do all limits without a name (account.h). Pins that id for this process: it keeps its
 * meaning until weir_table_unpin was called as often, weir_table_close, or the process's end. If
 * the list is full, it looks for unused places, which walks the whole table. Errors: WEIR_ERR_FULL
 * (parameters), WEIR_ERR_IO, WEIR_ERR_BUSY (a stopped process has kept the list locked for ten
 * times the table's patience). */
int weir_table_intern(struct weir_table *table, struct weir_limit *limit)
    __attribute__((warn_unused_result));

/* Ends one pin of a limit's id (0: does nothing). No later decision may use the id. */
void weir_table_unpin(struct weir_table *table, uint16_t id);

/* Frees unused places in the list of limits if more than half of it is taken; walks over up to
 * `buckets` buckets. Call it about once a second. Returns whether more work is left. */
bool weir_table_tidy(struct weir_table *table, uint64_t now_ns, uint64_t buckets);

/* Whether interning this limit would take no new place; and how many places are taken. */
bool weir_table_knows(const struct weir_table *table, const struct weir_limit *limit);
uint32_t weir_table_param_count(const struct weir_table *table);

/* Errors: WEIR_ERR_FULL (no free owner slot), WEIR_ERR_IO, WEIR_ERR_MEMORY. */
int weir_table_attach(struct weir_table *table, struct weir_table_owner **owner)
    __attribute__((warn_unused_result));
void weir_table_detach(struct weir_table_owner *owner);

struct weir_table_stats {
    uint64_t bytes, slots, slots_used; /* a slot in use may hold a state that has become fresh */
    uint64_t keys;                     /* states that are not fresh at now_ns */
    uint64_t slots_error; /* both are estimated by a sample when the table is large: 99 times of 100
                             they are within so many. 0: they are exact */
    uint64_t span_bytes, span_bytes_used;
    uint64_t params, params_max;
    uint64_t owners;     /* attached now; every open table has one of its own */
    uint64_t inserts;    /* keys that got a slot */
    uint64_t evictions;  /* slots taken from a state that was not fresh (live) */
    uint64_t overflows;  /* checks decided on overflow cells */
    uint64_t reclaimed;  /* slots reused because their state was fresh */
    uint64_t recoveries; /* dead owners cleaned up */
    uint64_t lock_waits; /* locks that were not free at once */
    uint64_t given_up;   /* of this process: waits that ended with its patience */
};

void weir_table_stats(struct weir_table *table, uint64_t now_ns, struct weir_table_stats *stats);

/* The process id of a live owner that holds a lock which this process has given up waiting for, as
 * that process sees itself (in a container, ids differ); 0: none. May be called on any thread. */
uint32_t weir_table_stopped(struct weir_table *table);

/* Counts of all limits of one name, since the region knows that name. `name`: NULL for the limits
 * without one. Zeros for an unknown name. */
struct weir_table_limit_stats {
    uint64_t evictions, overflows;
};
void weir_table_limit_stats(const struct weir_table *table, const char *name,
                            struct weir_table_limit_stats *stats);

/* The same counts of all accounts, by number: there are as many as the list of limits has places.
 * `name` is the result of weir_table_account_name for the name of a limit (NULL: of commands, and
 * of records), WEIR_TABLE_OTHERS for the limits that share one account because the list was
 * crowded; 0: unused. May be called on any thread. */
#define WEIR_TABLE_OTHERS 4
struct weir_table_account {
    uint64_t name;
    struct weir_table_limit_stats stats;
};
uint32_t weir_table_accounts(const struct weir_table *table);
void weir_table_account(const struct weir_table *table, uint32_t number,
                        struct weir_table_account *account);
uint64_t weir_table_account_name(const char *name);

/* Checks every invariant that holds while no decision is in flight; for tests. Returns 0 or
 * WEIR_ERR_DAMAGED. */
int weir_table_validate(const struct weir_table *table, struct weir_reason *reason);

#endif
