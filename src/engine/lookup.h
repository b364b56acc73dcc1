/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: decisions that wait until a directory (feature/identity/rules/caller.h) has looked up
 * the caller.
 *
 *   apply_rules ── WEIR_ERR_PENDING ──▶ a copy of the request, tied to the decision
 *   apply_idempotency, apply_reservation  are remembered
 *   queue                               LOOKING
 *      the directory tells              the rules again, then what was remembered, then QUEUED;
 *                                       what they refuse now ends it: see weir_engine_refusal
 *
 * The rules are those that the request came under, also after a reload: its attributes have their
 * numbers, and decisions keep their generation anyway.
 *
 * A request may have to wait for one key after the other, where the first is unknown. After
 * WEIR_LOOKUP_ROUNDS of them, and where there is no room for one more copy, the directory is
 * hurried: it answers by what it has, as it also does when it cannot reach Redis.
 *
 * Memory: one block of the heap for each decision that waits, of at most WEIR_LOOKUP_BYTES_MAX of
 * values, freed with the decision; half of the pool waits at most, and WEIR_LOOKUPS_BYTES_MAX of
 * values. No lookup, no block. Threads: the engine's own.
 */
#ifndef WEIR_ENGINE_LOOKUP_H
#define WEIR_ENGINE_LOOKUP_H

#include "engine/pool.h"
#include "feature/identity/rules/caller.h"
#include "rules/charge/idempotency.h"

/* What a request of a front end holds at most is less: 64 KiB of head, 1 MiB of body by its own
 * limits, of which the rules read a few values. */
#define WEIR_LOOKUP_BYTES_MAX (64 * 1024)
#define WEIR_LOOKUPS_BYTES_MAX (16 * 1024 * 1024)
#define WEIR_LOOKUP_ROUNDS                                                                         \
    96 /* twice the sources of `identify`, each with three forms of a key                          \
        */

struct weir_engine;

struct weir_lookup {
    struct weir_directory_waiter waiter; /* first */
    struct weir_engine *engine;
    struct weir_entry *entry;
    size_t size; /* of the block */
    struct weir_reason reason;
    bool waits;    /* at the directory */
    bool refused;  /* with `reason` */
    bool held;     /* see weir_engine_look */
    bool reserves; /* by the entry's estimate and life */
    uint8_t rounds;
    struct weir_bytes idempotency_key; /* in `key`, below; data == NULL: none */
    char key[WEIR_IDEMPOTENCY_KEY_MAX];
    /* The request, whose values point behind them. */
    struct weir_address client;
    uint64_t trusted[WEIR_ATTRIBUTE_WORDS];
    uint8_t fields; /* enum weir_fields */
    uint64_t cost, resting, now_ns;
    uint16_t count;
    struct weir_bytes values[];
};

/* Makes a decision that the rules have answered WEIR_ERR_PENDING wait, or fills its checks by what
 * the directory has. Errors: as weir_rules_checks, except WEIR_ERR_PENDING. */
int weir_lookup_begin(struct weir_engine *engine, struct weir_entry *entry,
                      struct weir_rules_query *query) __attribute__((warn_unused_result));

/* Forgets what belongs to a decision that is given back (entry.c). */
void weir_lookup_end(struct weir_engine *engine, struct weir_entry *entry);

static inline bool weir_lookup_waits(const struct weir_entry *entry)
{
    return entry->lookup && entry->lookup->waits;
}

#endif
