/* SPDX-License-Identifier: Apache-2.0 */
/* A generation: one engine's hold on one version of the rules, and its counters.
 *
 * Decisions pin the generation that their checks were made from, with a plain count of this
 * worker's own; the shared reference count of the rules is touched once a generation, not once a
 * decision. Counters belong to limits by name: a new generation takes those of the one before for
 * the names that both have. Their memory is kept until the engine closes (at most what the largest
 * set of names that were pinned at one time needed), so that another thread may read a counter
 * whose limit is just going away.
 */
#ifndef WEIR_ENGINE_GENERATION_H
#define WEIR_ENGINE_GENERATION_H

#include "engine/counters.h"
#include "engine/engine.h"
#include "engine/open.h"

/* One limit's counters; an engine has its own blocks of them, so no two workers write one line. */
struct weir_tally {
    struct weir_engine_counters counters;
    _Atomic uint64_t *bought; /* the counters', or where the engine's user has it */
    uint32_t generations;     /* that have a limit of this name; 0: on the free list */
    struct weir_tally *next_free;
};

struct weir_tally_block;

/* All tallies of one engine. */
struct weir_tallies {
    struct weir_tally *free;
    struct weir_tally_block *blocks;
};
void weir_tallies_close(struct weir_tallies *tallies);

struct weir_generation {
    struct weir_rules *rules;
    uint32_t pins; /* decisions, and 1 for being the current one */
    uint32_t count;
    uint32_t hooks;       /* of each request: weir_hooks_wanted */
    bool timed;           /* weir_rules_timed */
    bool warns;           /* weir_rules_warns */
    bool adapts;          /* limits follow health */
    bool looks_at_caller; /* adapts, or denies_unknown */
    bool sells;           /* weir_rules_any_top_up */
    bool acts;            /* weir_rules_acts */
    bool strikes;         /* weir_rules_penalty_count */
    bool scores;          /* weir_rules_score */
    bool denies_unknown;  /* weir_rules_denies_unknown */
    struct weir_rule_view {
        struct weir_bytes name;
        struct weir_tally *tally;
        struct weir_counts *counts;    /* the tally's, or where the engine's user has them */
        const struct weir_limit *told; /* the limit that `texts` are of; NULL: it has no texts */
        struct weir_limit_texts texts;
    } views[]; /* index = rule */
};

/* Where the counts of limits are, if not in tallies. */
struct weir_counts_place {
    weir_engine_counts find; /* NULL: in tallies */
    void *context;
};

/* Makes the generation of `rules` (a reference is taken), with one pin. `before` (may be NULL) is
 * where counters continue. Errors: WEIR_ERR_MEMORY. */
int weir_generation_open(struct weir_generation **generation, struct weir_rules *rules,
                         const struct weir_generation *before, struct weir_tallies *tallies,
                         const struct weir_counts_place *place) __attribute__((warn_unused_result));

/* Looks for the place of each limit's counts. */
void weir_generation_place(struct weir_generation *generation,
                           const struct weir_counts_place *place);

/* Gives one pin back; the last one frees it. */
void weir_generation_unpin(struct weir_generation *generation, struct weir_tallies *tallies);

#endif
