/* The engine: requests to checks to decisions to answers, for one worker.
 *
 * A front end takes a decision from the pool (weir_engine_take), lets the rules or its own command
 * fill the checks, and queues it (weir_engine_queue). Once a turn of the loop, weir_engine_run
 * hands everything queued to the store as one batch with one clock reading; finished decisions come
 * back through `done` in the order they were queued, pending ones later, when the store answers or
 * their deadline passes (then on_store_error decides). The front end gives each one back
 * (weir_engine_release) when its answer is written.
 *
 * Memory: a fixed pool of decisions; taking one from an empty pool returns NULL and the front end
 * answers "overloaded". Threads: one engine per worker; the rules are swapped by weir_engine_rules
 * between turns.
 */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

#include "core/answer.h"
#include "core/check.h"
#include "rules/rules.h"
#include "store/store.h"

struct weir_engine;

/* Called once for every queued decision, from weir_engine_run or from the store's own callback
 * (weir_engine then has filled verdict, denied_by, source). decision->owner is the front end's. */
typedef void (*weir_engine_done)(void *context, struct weir_decision *decision);

struct weir_engine_options {
    struct weir_store *store; /* borrowed */
    struct weir_store *local; /* where on_store_error: local decides; NULL: denies nothing */
    struct weir_rules *rules; /* one reference is taken */
    const uint64_t *secret;   /* what keys are hashed with; 2 words, borrowed */
    uint32_t decisions;       /* pool size; 0: 4096 */
    uint64_t deadline_ns;     /* of a pending decision; 0: 20 ms */
    uint64_t lease_seed;      /* lease ids are drawn from it */
    weir_engine_done done;
    void *done_context;
};

int weir_engine_open(struct weir_engine **engine, const struct weir_engine_options *options)
    __attribute__((warn_unused_result));
void weir_engine_close(struct weir_engine *engine);

/* Swaps the rules; decisions already made from the old ones keep them pinned. */
void weir_engine_set_rules(struct weir_engine *engine, struct weir_rules *rules);
struct weir_rules *weir_engine_rules(const struct weir_engine *engine);

/* An empty decision of the pool (count 0, WEIR_OP_DECIDE, WEIR_POLICY_ALL), with room for
 * WEIR_CHECKS_MAX checks; NULL when the pool is empty. */
struct weir_decision *weir_engine_take(struct weir_engine *engine);
void weir_engine_release(struct weir_engine *engine, struct weir_decision *decision);

/* Fills the checks of a decision from a request under the current rules.
 * Errors: as weir_rules_checks. */
int weir_engine_apply_rules(struct weir_engine *engine, struct weir_decision *decision,
                            const struct weir_request *request, struct weir_reason *reason)
    __attribute__((warn_unused_result));
const struct weir_identity *weir_engine_identity(const struct weir_decision *decision);
const struct weir_rules *weir_decision_rules(const struct weir_decision *decision);

/* What a client may be told of a finished decision; names point into its rules, the lease token
 * into `answer_lease`, both valid until the decision is released. */
#define WEIR_LEASE_TOKEN_MAX 1024
void weir_engine_answer(const struct weir_decision *decision, struct weir_answer *answer,
                        char answer_lease[WEIR_LEASE_TOKEN_MAX]);

/* Ends the leases of a token made by weir_engine_answer. Errors: WEIR_ERR_SYNTAX,
 * WEIR_ERR_NOT_FOUND. */
int weir_engine_release_lease(struct weir_engine *engine, uint64_t now_ns, struct weir_bytes token)
    __attribute__((warn_unused_result));

/* Queues a decision for the next run. */
void weir_engine_queue(struct weir_engine *engine, struct weir_decision *decision);

/* Decides what was queued, at one time; also fails decisions whose deadline has passed. Returns
 * when to call again at the latest (the next deadline; WEIR_NEVER: none). */
uint64_t weir_engine_run(struct weir_engine *engine, uint64_t now_ns);

/* The front end no longer wants the answer (its connection is gone): `done` is not called for it
 * and it returns to the pool by itself. */
void weir_engine_cancel(struct weir_engine *engine, struct weir_decision *decision);

struct weir_engine_counters { /* per limit of the rules file, this worker's; index = rule */
    uint64_t allowed, denied, shadow_denied;
};
/* Counters survive a change of rules by the limit's name. Sum over workers for the metrics; reading
 * while the worker runs gives values that are each some moment's (relaxed atomics). */
const struct weir_engine_counters *weir_engine_counters(const struct weir_engine *engine,
                                                        uint32_t rule);

#endif
