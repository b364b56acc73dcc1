/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of shares.h: slots of all that are known, entries of those that hold shares.
 *
 * Slots stand in sets of LEASE_SET, by hash. A slot of a cold key only counts its decisions; when
 * there are lease_terms.hot_decisions in each of LEASE_HOT_LIVES lives of a share, on average, the
 * key gets an entry, on
 * which the rest of shares.h works. An entry that leaves (its key is idle, makes room, or has
 * another limit or tag) is in no slot any more and lives on until its shares are given back. */
#ifndef WEIR_STORE_REDIS_SHARE_TABLE_H
#define WEIR_STORE_REDIS_SHARE_TABLE_H

#include "store/redis/share/shares.h"
#include "store/redis/share/wheel.h"

#define LEASE_SET 8
#define LEASE_HOT_LIVES 3

struct lease_entry {
    struct lease_timer timer;
    struct lease lease;
    struct lease_terms terms;
    struct weir_limit limit;                /* a copy, as are name and key */
    struct weir_check check;                /* what redis_leases_call.check points to */
    struct lease_slot *slot;                /* NULL: it leaves */
    uint64_t seen_ns;                       /* the last decision */
    uint64_t waited_cost;                   /* asked for by the first decision that waits */
    struct redis_leases_wait *first, *last; /* the decisions that wait */
    struct lease_entry *next_queued;
    struct lease_entry *next, *previous; /* of all */
    struct lease_call call;              /* in flight */
    bool queued, sent;                   /* at most one of them */
    bool gives_back;                     /* queued to give back, unless somebody waits by then */
    char text[];                         /* name and key */
};

struct lease_slot {
    uint64_t hash[2];
    struct lease_entry *entry; /* NULL: cold */
    uint64_t since_ns;         /* 0: the slot is free; else decisions are counted from then */
    uint32_t decisions;
};

struct redis_leases {
    struct lease_slot *slots;
    uint32_t set_mask; /* number of sets - 1 */
    uint32_t entries_max, entries;
    struct lease_entry *all;
    struct lease_entry *queue, **queue_end;
    uint32_t busy;
    struct lease_wheel wheel;
    uint64_t life_ns, holder, last_id, roundtrip_ns;
    bool ending;
    struct redis_leases_counters counters;
};

/* The slot of a key. A key that is new takes one: a free one of its set, that of a cold key, or
 * that of the entry which was idle longest and has nobody waiting. NULL: no slot may go. */
struct lease_slot *lease_table_slot(struct redis_leases *leases, const uint64_t hash[2],
                                    uint64_t now_ns);

/* The entry of a key on which a decision is made now: that of the slot if it has the check's
 * limit and tag; a new one if the key has become hot by this decision. NULL: the key is cold. */
struct lease_entry *lease_table_entry(struct redis_leases *leases, struct lease_slot *slot,
                                      const struct weir_check *check, uint64_t now_ns);

/* Takes an entry out of its slot, to give its shares back. */
void lease_table_leave(struct redis_leases *leases, struct lease_entry *entry);

/* Puts an entry into the queue of those with a call to send. */
void lease_table_queue(struct redis_leases *leases, struct lease_entry *entry);

void lease_table_free(struct redis_leases *leases, struct lease_entry *entry);

#endif
