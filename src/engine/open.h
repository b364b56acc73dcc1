/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine is opened with: its stores, its rules, and what it calls. Apart from engine.h,
 * which most of the server includes. */
#ifndef WEIR_ENGINE_OPEN_H
#define WEIR_ENGINE_OPEN_H

#include "engine/callbacks.h"
#include "engine/effect/candidate.h"
#include "engine/engine.h"
#include "store/store.h"

struct weir_counts;
struct weir_distinct_set;

/* Called once for every queued decision that was not cancelled, from weir_engine_run or from the
 * store's own callback (weir_engine then has filled verdict, denied_by, source). decision->owner is
 * the front end's. */
typedef void (*weir_engine_done)(void *context, struct weir_decision *decision);

/* Where the counts of the limit of a name are to be written, from weir_engine_open, _set_rules or
 * _renew_counts; valid until the engine is closed or asks again. NULL: in the engine. */
typedef struct weir_counts *(*weir_engine_counts)(void *context, struct weir_bytes name);

#define WEIR_ENGINE_DECISIONS_MAX 65536 /* 1.3 GiB of address space a worker */

struct weir_engine_options {
    struct weir_store *store; /* borrowed */
    struct weir_store *local; /* where on_store_error: local decides, always at once; borrowed;
                                 NULL: such checks are admitted uncharged */
    struct weir_rules *rules; /* one reference is taken; may be NULL until the first request */
    struct weir_store *const
        *regions; /* that lend (lend.h of feature/region) and are asked (question.h there), by their
                     numbers; RULES_REGIONS_MAX, each may be NULL; borrowed. NULL: none */
    const uint64_t *secret; /* what keys are hashed with; 2 words, borrowed */
    uint32_t decisions;     /* pool size; 0: 4096; at most WEIR_ENGINE_DECISIONS_MAX */
    uint64_t deadline_ns;   /* of a pending decision; 0: 20 ms */
    uint64_t lease_seed; /* where its count of leases starts; another for every engine of a table */
    uint64_t lease_owner; /* whose end ends its leases (weir_table_lease_owner); 0: they end by
                             their token or their life */
    weir_engine_done done;
    void *done_context;
    struct weir_directory *directory; /* of callers kept in Redis (feature/identity/rules/caller.h);
                                         borrowed; NULL: none */
    const struct weir_standing *standing; /* what callers have (feature/standing/standing.h), for
                                             rules with `standing`; borrowed; NULL: all are good */
    weir_engine_warn warn;                /* NULL: warnings are dropped */
    void *warn_context;
    weir_engine_trial tried; /* see candidate.h; may be NULL */
    void *tried_context;
    weir_engine_strike strike; /* see strike.h; NULL: nothing is a strike */
    void *strike_context;
    bool strikes_without_map;    /* see struct weir_strikes */
    weir_engine_observe observe; /* see observe.h; NULL: nobody does */
    void *observe_context;
    weir_engine_counts counts; /* where counts of limits are; NULL: in the engine */
    void *counts_context;
    _Atomic(struct weir_distinct_set *) *distinct; /* where keys are counted: borrowed, and looked
                                                      at for each decision; NULL: nowhere */
    uint64_t (*clock)(void *context); /* the time at which a request would be decided: asked for
                                         each where rules are timed; NULL: the last run's */
    void *clock_context;
    bool text_keys; /* weir_check.key is always text, for callers that read it. Else, where the
                       store is a table, texts are written only when the engine shows them */
};

/* Errors: WEIR_ERR_MEMORY; WEIR_ERR_RANGE (decisions). */
int weir_engine_open(struct weir_engine **engine, const struct weir_engine_options *options)
    __attribute__((warn_unused_result));

#endif
