/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: a fixed number of decisions of one worker, with the memory that each works in.
 *
 * Free entries are a stack: the one given back last is taken first, so that a worker with few
 * decisions in flight touches few cache lines and few pages, whatever the size of the pool.
 * Entries that were never taken are not even on the stack: their pages stay untouched.
 *
 *   entry   | decision | links, state, identity | checks[32] | outcomes[32] | standing | scratch |
 *
 * A decision of three checks touches the start of each part, about 12 cache lines; one of a command
 * leaves scratch alone and touches 7. The distance between two entries is an odd number of lines,
 * so that the starts of neighbours fall into different sets of the cache. Taking an entry asks for
 * the lines of the next one. Huge pages, where the system has them, keep a thousand entries within
 * the reach of the TLB.
 *
 * Threads: one owner.
 */
#ifndef WEIR_ENGINE_POOL_H
#define WEIR_ENGINE_POOL_H

#include "core/check.h"
#include "engine/token/lease_token.h"
#include "feature/penalties/rules/strikes.h"
#include "feature/score/rules/score.h"
#include "feature/standing/rules/match.h"
#include "rules/match/checks.h"
#include "rules/match/routes.h"

enum weir_entry_state {
    WEIR_ENTRY_FREE,
    WEIR_ENTRY_TAKEN,     /* the front end fills it */
    WEIR_ENTRY_LOOKING,   /* queued, but the caller is not known yet: see lookup.h */
    WEIR_ENTRY_QUEUED,    /* waits for a run */
    WEIR_ENTRY_ALONE,     /* the same, but not with the batch: see turn.c */
    WEIR_ENTRY_DECIDED,   /* decided in this run, `done` not yet called */
    WEIR_ENTRY_PENDING,   /* at the store, in the list of deadlines */
    WEIR_ENTRY_ASKING,    /* waits for the homes of its keys, in a list of deadlines: question.h of
                           * feature/region
                           */
    WEIR_ENTRY_FINISHED,  /* `done` was called; the front end holds it */
    WEIR_ENTRY_CANCELLED, /* was QUEUED, ALONE or DECIDED: dropped when the run comes to it */
};

struct weir_borrow;
struct weir_engine;
struct weir_generation;
struct weir_lending;
struct weir_lookup;
struct weir_pool;
struct weir_purpose;
struct weir_question;

struct weir_entry {
    struct weir_decision decision;      /* first: the public pointer is the entry's */
    struct weir_pool *pool;             /* that it is from */
    const struct weir_purpose *purpose; /* see turn.h */
    struct weir_generation *generation; /* pinned; NULL: checks of a command */
    struct weir_entry *previous, *next; /* of the free stack or the list of deadlines */
    struct weir_lookup *lookup;         /* NULL: its rules needed none */
    /* What a feature does before the decision is given back; NULL: nothing. */
    void (*drop)(struct weir_engine *engine, struct weir_entry *entry);
    uint32_t hooks; /* a bit for each that it has: hook.h */
    uint8_t state;
    bool keeps;    /* scratch is in use; else scratch.used is not yet valid */
    bool local;    /* an operation on a state of the local store */
    bool hurries;  /* its front end has set its deadline */
    bool homes;    /* an operation for homes too: reach.h of feature/region; the next ones are valid
                      then */
    bool acts_far; /* of them, one was asked */
    bool asked;    /* they have been asked */
    uint8_t unreached;  /* 1 + a check whose home was not reached; 0: none */
    bool live_denied;   /* of a candidate's decision: the live limit has denied */
    bool reserves;      /* a reservation */
    bool unaided;       /* neither a pool nor another region helps: see weir_engine_unaided */
    bool stands;        /* the caller's standing is another than good: `standing` is valid */
    uint8_t class;      /* 1 + the class of the request; 0: no limit of it has `shed` */
    uint8_t trial_live; /* of a candidate's: how many of its last checks are the live limit's */
    struct weir_caller_score
        score; /* not `found`: the rules keep none, or have refused the caller */
    const struct weir_store *lender; /* of the lease that it asks for; else not valid */
    struct weir_request_place place; /* of rules' checks, where somebody observes */
    uint8_t strike_count;            /* what strikes it may be: 0: none */
    struct weir_strike *strikes;     /* in scratch; not valid where there is none */
    struct weir_borrow *borrow;      /* in scratch; NULL: no limit of it has a pool */
    struct weir_lending *lending;    /* in scratch; NULL: no region was asked for units */
    struct weir_store *far;          /* of another region: where it goes; NULL: to the engine's */
    struct weir_question *question;  /* in scratch; valid where `far` is set */
    struct weir_entry *reached;    /* questions of an operation for homes; valid as `homes` says */
    uint64_t estimate, life_ns;    /* of a reservation; else not valid */
    struct weir_identity identity; /* kept where somebody observes, or warns */
    struct weir_address client;    /* where somebody observes */
    uint64_t caller;               /* weir_decision_caller; valid where the rules adapt */
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_caller_standing standing;
    struct weir_lease_begun begun; /* of a release by its token; else not valid */
    uint64_t standing_ends_ns;     /* from the decision on; WEIR_NEVER; valid once it is decided */
    struct weir_scratch scratch;
};

struct weir_pool {
    char *memory;
    const struct weir_purpose *purpose; /* of each entry that is taken */
    struct weir_entry *free;
    uint32_t touched, size; /* entries [touched, size) were never taken */
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_pool_open(struct weir_pool *pool, uint32_t size, const struct weir_purpose *purpose)
    __attribute__((warn_unused_result));
void weir_pool_close(struct weir_pool *pool);

/* The same, with the pool itself on the heap. *pool is left as it is after an error, and NULL after
 * its end, which may come twice. */
int weir_pool_make(struct weir_pool **pool, uint32_t size, const struct weir_purpose *purpose)
    __attribute__((warn_unused_result));
void weir_pool_drop(struct weir_pool **pool);

/* Entry number `index`, below pool->touched, in whatever state. */
struct weir_entry *weir_pool_at(const struct weir_pool *pool, uint32_t index);

/* An entry in TAKEN with an empty decision, or NULL. */
struct weir_entry *weir_pool_take(struct weir_pool *pool);
/* Back to where it is from. */
void weir_pool_give(struct weir_entry *entry);

/* Takes aligned memory from the end of what the scratch has used; NULL: there is none. */
void *weir_scratch_take(struct weir_scratch *scratch, size_t size);

static inline struct weir_entry *weir_entry_of(const struct weir_decision *decision)
{
    return (struct weir_entry *)decision;
}

#endif
