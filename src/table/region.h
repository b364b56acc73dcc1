/* SPDX-License-Identifier: Apache-2.0 */
/* A region as one process sees it: its parts as pointers, and struct weir_table and its owners.
 *
 * Threads: a struct weir_table is read by all; what changes in it is under `mutex`. A struct
 * weir_table_owner belongs to one thread.
 */
#ifndef WEIR_TABLE_REGION_H
#define WEIR_TABLE_REGION_H

#include <pthread.h>
#include <stdbool.h>

#include "table/file/limit_copy.h"
#include "table/layout.h"
#include "table/position.h"

/* Bytes of the file's lock space, far beyond its data: a live owner holds the lock of its byte. */
#define LOCK_OPENING (UINT64_C(1) << 61)        /* while opening, creating, replacing */
#define LOCK_PRESENCE (LOCK_OPENING + 1)        /* shared by all processes that have it open */
#define LOCK_INTERN (LOCK_OPENING + 2)          /* while adding parameters */
#define LOCK_OWNER(i) (LOCK_OPENING + 16 + (i)) /* by the owner in slot i */

struct weir_table {
    uint8_t *base;
    struct table_header *header; /* what changes in it: time marked, the heap's state and locks */
    struct table_header fixed; /* what does not, as it was when it was checked: another process can
                                  overwrite the file, and no loop or offset may depend on that */
    struct table_param *params;
    struct limit_copies *copies; /* of their limits; NULL: private memory, which needs none */
    struct table_account *accounts;
    uint64_t *pins; /* of all owners, layout_pin_words each */
    struct table_owner_slot *owners;
    struct table_undo *spill;
    struct table_page *pages;
    uint64_t *chunk_holders; /* see CHUNK_HOLDERS_AT */
    struct table_bucket *buckets;
    struct position_map map;
    uint64_t map_bytes;
    int fd;                           /* holds the presence lock; -1: private memory */
    char *path;                       /* NULL: private memory */
    pthread_mutex_t mutex;            /* guards `service` and what follows */
    uint32_t *pinned;                 /* how often this process has pinned each entry of `params` */
    struct params_sweep *sweep;       /* the one that runs; NULL: none */
    struct weir_table_owner *service; /* the table's own owner: intern, statistics, copies */
    uint64_t patience_ns; /* how long to wait for a holder of another process; 0: without a bound */
    uint64_t given_up;    /* waits that were longer */
    bool ours[WEIR_TABLE_OWNERS_MAX];       /* the slots of this process's owners */
    uint32_t *stuck[WEIR_TABLE_OWNERS_MAX]; /* by owner: a lock that it has held for longer than
                                               that; NULL: none */
};

/* Locks that one decision may hold: two buckets a check, the overflow cells of its parameters. */
#define LOCKS_MAX (WEIR_CHECKS_MAX * 3)

/* Checks whose buckets are fetched ahead of deciding. Enough to hide the latency of memory, few
 * enough that the lines are still in the first level cache when their turn comes. */
#define AHEAD_MAX 64

/* A check on its way through submit: where its key may be. */
struct lookup {
    struct position at;
    struct table_bucket *likely; /* the bucket that seemed to have it */
    int32_t slot;                /* its slot there, when that was seen; else -1 */
    uint32_t marks;              /* its mark there, in all places */
};

/* What a check is decided on. */
enum target_kind {
    TARGET_NONE,     /* no state: unlimited, always deny, a refund for a key that is not there */
    TARGET_SLOT,     /* the key's own slot */
    TARGET_NEW,      /* a slot that the key will get when it is charged */
    TARGET_OVERFLOW, /* cells that it shares with other keys of its parameters; see overflow.h */
};

struct target {
    uint8_t kind, slot;
    uint8_t placement; /* TARGET_NEW: whose slot it was */
    bool second;       /* TARGET_NEW: in its second bucket */
    bool rewrite;      /* TARGET_SLOT: of other parameters, so that all of it is written anew */
    bool span_new;     /* this transaction has allocated the span: no other owner can see it yet */
    bool full;         /* TARGET_SLOT: the state has to grow and cannot: nothing is admitted */
    bool joins;        /* the state cannot grow, and its newest events become one */
    uint16_t leader;   /* the first check of this decision on the same state; mostly itself */
    struct table_bucket *bucket;
    struct table_param *param;              /* TARGET_OVERFLOW */
    struct weir_cell *cells[OVERFLOW_ROWS]; /* TARGET_OVERFLOW */
    struct weir_cell cell;                  /* the state, of limits without a span */
    uint64_t span;     /* the offset of its span; 0: the state is in the slot, or not stored yet */
    uint64_t replaced; /* a span to release when this target is charged; 0: none */
    struct position at;
};

/* How much each account holds, as sampled lately. */
struct account_seen {
    uint32_t states, denying; /* live ones; of those, the ones that deny */
};

struct account_sample {
    struct account_seen *held; /* by account */
    uint32_t total;
    uint64_t at_ns; /* when it was looked at last */
};

struct weir_table_owner {
    struct weir_table *table;
    struct table_owner_slot *slot;
    uint32_t me; /* the value of a lock that this owner holds */
    uint32_t index;
    int fd;              /* holds the lock of its slot; -1: private memory */
    bool lost;           /* a lock was busy: release all and begin again with it in `wanted` */
    bool stuck;          /* a lock was not given back in time: release all and fail (owner_wait) */
    bool unsaved;        /* the journal had no room for a word: cancel and fail (undo.h) */
    bool no_room;        /* the span heap was exhausted */
    bool give_up;        /* do not ask the heap for more in this decision */
    uint32_t need;       /* words of the span for which there was no room ... */
    uint16_t need_param; /* ... for a state of these parameters ... */
    uint64_t need_span;  /* ... whose present span this is; 0: a new state */
    uint32_t need_used;  /* ... and has used this part of its capacity (struct slot_view) */
    uint32_t held_count, wanted_count, freed_count;
    uint32_t *held[LOCKS_MAX + 1]; /* and the heap's */
    uint32_t *wanted[LOCKS_MAX];
    uint64_t freed[2 * WEIR_CHECKS_MAX];        /* spans to free at the end of this transaction */
    uint32_t relocate_failures, relocate_skips; /* see relocate() in target.c */
    uint64_t no_run_frees;                      /* header->page_frees when no run of ... */
    uint32_t no_run; /* ... so many pages was free; UINT32_MAX: not known of any */
    uint64_t random; /* see owner_random */
    struct account_sample slots, spans; /* of live states, by account; account.h */
    struct lookup ahead[AHEAD_MAX];
    struct target targets[WEIR_CHECKS_MAX];
    struct weir_edits edits;
};

/* Points the table's parts into a mapped region whose header is `header`, which is valid. */
void region_bind(struct weir_table *table, uint8_t *base, const struct table_header *header);

/* Completes a planned header in a region that is all zero: secret, checksum, clock; and binds it.
 * Errors: WEIR_ERR_IO (no random numbers). */
int region_format(struct weir_table *table, uint8_t *base, const struct table_header *plan,
                  const struct weir_table_options *options) __attribute__((warn_unused_result));

void region_unmap(struct weir_table *table);

static inline struct table_bucket *region_bucket(const struct weir_table *table, uint64_t index)
{
    return &table->buckets[index];
}

static inline uint64_t region_offset(const struct weir_table *table, const void *at)
{
    return (uint64_t)((const uint8_t *)at - table->base);
}

/* Whether an id names parameters. */
static inline bool region_has_params(const struct weir_table *table, uint16_t id)
{
    return id != 0 && id <= table->fixed.params_max &&
           __atomic_load_n(&table->params[id - 1].live, __ATOMIC_ACQUIRE) == 1;
}

/* The limit of a slot's parameters, of which *room may become a copy; NULL: none (the slot is empty
 * or damaged). It never changes, and is one that weir_limit_init has compiled. */
static inline const struct weir_limit *region_limit(const struct weir_table *table, uint16_t param,
                                                    struct weir_limit *room)
{
    if (!region_has_params(table, param))
        return NULL;
    if (!table->copies)
        return &table->params[param - 1].limit;
    return limit_copy_read(table->copies, &table->params[param - 1], param, room) ? room : NULL;
}

/* Whether a state of this limit is in a span; else it is in the slot. */
static inline bool region_has_span(const struct weir_limit *limit)
{
    return limit->span_words != 0 || !limit->packs;
}

/* The most words that a span has: a full log or all leases, with room to spare. */
#define SPAN_WORDS_MAX (UINT64_C(1) << 17)

#endif
