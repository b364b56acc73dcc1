/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of shares.h: slots of all that are known, entries of those that hold portions.
 *
 * Slots stand in sets of SHARE_SET, by hash. A slot of a cold key only counts its decisions; when
 * there are share_terms.hot_decisions in each of SHARE_HOT_LIVES lives of a portion, on average,
 * the key gets an entry, on which the rest of shares.h works. An entry that leaves (its key is
 * idle, makes room, or has another limit or tag) is in no slot any more and lives on until its
 * portions are given back. */
#ifndef WEIR_STORE_REDIS_SHARE_TABLE_H
#define WEIR_STORE_REDIS_SHARE_TABLE_H

#include "store/redis/share/shares.h"
#include "store/redis/share/wheel.h"

#define SHARE_SET 8
#define SHARE_HOT_LIVES 3

struct share_entry {
    struct share_timer timer;
    struct share share;
    struct share_terms terms;
    struct weir_limit limit;                /* a copy, as are name and key */
    struct weir_check check;                /* what redis_shares_call.check points to */
    struct share_slot *slot;                /* NULL: it leaves */
    uint64_t seen_ns;                       /* the last decision */
    uint64_t waited_cost;                   /* asked for by the first decision that waits */
    struct redis_shares_wait *first, *last; /* the decisions that wait */
    struct share_entry *next_queued;
    struct share_entry *next, *previous; /* of all */
    struct share_call call;              /* in flight */
    bool queued, sent;                   /* at most one of them */
    bool gives_back;                     /* queued to give back, unless somebody waits by then */
    char text[];                         /* name and key */
};

struct share_slot {
    uint64_t hash[2];
    struct share_entry *entry; /* NULL: cold */
    uint64_t since_ns;         /* 0: the slot is free; else decisions are counted from then */
    uint32_t decisions;
};

struct redis_shares {
    struct share_slot *slots;
    uint32_t set_mask; /* number of sets - 1 */
    uint32_t entries_max, entries;
    struct share_entry *all;
    struct share_entry *queue, **queue_end;
    uint32_t busy;
    struct share_wheel wheel;
    uint64_t life_ns, holder, last_id, roundtrip_ns;
    bool ending;
    struct redis_shares_counters counters;
};

/* The slot of a key. A key that is new takes one: a free one of its set, that of a cold key, or
 * that of the entry which was idle longest and has nobody waiting. NULL: no slot may go. */
struct share_slot *share_table_slot(struct redis_shares *shares, const uint64_t hash[2],
                                    uint64_t now_ns);

/* The entry of a key on which a decision is made now: that of the slot if it has the check's
 * limit and tag; a new one if the key has become hot by this decision. NULL: the key is cold. */
struct share_entry *share_table_entry(struct redis_shares *shares, struct share_slot *slot,
                                      const struct weir_check *check, uint64_t now_ns);

/* Takes an entry out of its slot, to give its portions back. */
void share_table_leave(struct redis_shares *shares, struct share_entry *entry);

/* Puts an entry into the queue of those with a call to send. */
void share_table_queue(struct redis_shares *shares, struct share_entry *entry);

void share_table_free(struct redis_shares *shares, struct share_entry *entry);

#endif
