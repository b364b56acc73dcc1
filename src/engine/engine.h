/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: requests to checks to decisions to answers, for one worker.
 *
 * A front end takes a decision from the pool (weir_engine_take), lets the rules or its own command
 * fill the checks, and queues it (weir_engine_queue). Once a turn of the loop, weir_engine_run
 * hands everything queued to the store as one batch with one clock reading; finished decisions come
 * back through `done` in the order they were queued, pending ones later, when the store answers or
 * their deadline passes (then on_store_error decides). The front end gives each one back
 * (weir_engine_release) when its answer is written.
 *
 *   FREE --take--> TAKEN --queue--> QUEUED --run--> PENDING --store, deadline--> FINISHED
 *    ^                |                |  \--- decided at once --> done ---------^   |
 *    +----release-----+-----cancel-----+--------cancel-----+---------release--------+
 *
 * on_store_error. When the store fails or is late, each check is settled by its own rule: `open`
 * admits it uncharged, `closed` denies it, `local` checks are decided together, atomically, by the
 * local store (which charges them only when nothing closed denies the request). The parts combine
 * as the decision's policy says; `error` keeps the reason and `source` names the strongest part:
 * closed, if a check that can deny was closed; else local, if one was decided there; else open.
 * What a store that failed may have charged stays charged: nothing is sent twice.
 *
 * Operations on states (WEIR_OP_RELEASE, RESET, LOOK) go the same way, but on_store_error does
 * not apply: where the store fails they are "denied", and `error` distinguishes that from "there
 * was nothing".
 *
 * `done` is called from weir_engine_run and from what the store and the directory call, never from
 * any other function of this header. Inside it every function here may be called but
 * weir_engine_run, weir_engine_set_rules and weir_engine_close. What it queues while
 * weir_engine_run is at work is decided by that same call, up to a limit of rounds; what it queues
 * from a callback of theirs waits for the next run.
 *
 * Memory: a fixed pool of decisions, about 20 KiB each, reserved at once but touched only as far as
 * they are used together; the one given back last is taken first, while the cache still holds it.
 * Taking one from an empty pool returns NULL and the front end answers "overloaded".
 * Threads: one engine per worker; the rules are swapped by weir_engine_set_rules between turns.
 * Other threads may call weir_engine_find_counters and read what it returns, and use
 * weir_engine_top_denied.
 */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

#include "core/check.h"
#include "engine/answer.h"
#include "rules/rules.h"

struct weir_engine;
struct weir_engine_options; /* engine/open.h */
struct weir_standing;
struct weir_directory;
struct weir_key_values;
struct weir_question_counts;
struct weir_token_counters;
struct weir_top_denied;

/* The stores are about to be closed: cancels what is pending, without calling `done`. From then on
 * only decisions may be given back, what is counted read, and the engine closed. */
void weir_engine_end(struct weir_engine *engine);

/* Ends it, where that has not been done, and frees all. The stores stay open. */
void weir_engine_close(struct weir_engine *engine);

/* Swaps the rules (one reference is taken); decisions already made from the old ones keep them
 * pinned. Every limit must have been made known to the stores before (weir_rules_prepare).
 * Errors: WEIR_ERR_MEMORY (the old rules stay). */
int weir_engine_set_rules(struct weir_engine *engine, struct weir_rules *rules);
/* Looks standing up in another map from now on; NULL: all are good. */
void weir_engine_set_standing(struct weir_engine *engine, const struct weir_standing *standing);
/* Whether there should be a map, and is none: then `on_store_error` of the rules' standing decides.
 */
void weir_engine_miss_standing(struct weir_engine *engine, bool missing);
struct weir_rules *weir_engine_rules(const struct weir_engine *engine);

/* An empty decision of the pool (count 0, WEIR_OP_DECIDE, WEIR_POLICY_ALL), with room for
 * WEIR_CHECKS_MAX checks; NULL when the pool is empty. */
struct weir_decision *weir_engine_take(struct weir_engine *engine);
void weir_engine_release(struct weir_engine *engine, struct weir_decision *decision);

/* The directory that it was opened with, while it has not closed; or NULL. The worker's own. */
struct weir_directory *weir_engine_directory(const struct weir_engine *engine);

/* Fills the checks of a decision from a request under the current rules. Where a directory has
 * to find out who is calling, the request is copied and the checks are filled later: what is done
 * to the decision from here on, up to weir_engine_queue, is then done to it when they are, and what
 * would have failed here fails there (weir_engine_refusal).
 * Errors: as weir_rules_checks, but never WEIR_ERR_PENDING; WEIR_ERR_STORE (the directory cannot
 * find out, and its settings refuse such requests). */
int weir_engine_apply_rules(struct weir_engine *engine, struct weir_decision *decision,
                            const struct weir_request *request, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Counts the reported HTTP status of a request as a strike of each penalty that has it in
 * `outcomes`: see strike.h. The decision has its checks from apply_rules, and does not wait for a
 * store. Not from inside the store; the time is the last run's. With a remote store the strikes are
 * counted in the next run. Returns how many penalties have the status. */
uint32_t weir_engine_strike_outcome(struct weir_engine *engine,
                                    const struct weir_decision *decision, unsigned status);

/* Whether the checks of a decision are yet to be filled, because who is calling is not known. */
bool weir_engine_looks(const struct weir_decision *decision);

/* Instead of queuing such a decision: `done` is called when its checks are filled, or have been
 * refused, and it is the front end's as before, to be queued or given back. */
void weir_engine_look(struct weir_engine *engine, struct weir_decision *decision);

/* Why a decision that `done` was called for was not made: what apply_rules, apply_idempotency or
 * apply_reservation would have returned at once (decision->error), with the same error. It is
 * "denied", without a check. NULL: it was made. */
const struct weir_reason *weir_engine_refusal(const struct weir_decision *decision);

/* Makes a decision that the rules have filled one that is charged once for an idempotency key of
 * 1..WEIR_IDEMPOTENCY_KEY_MAX bytes, within the life that the rules file gives it: appends the
 * record of the key (WEIR_CHECK_IDEMPOTENCY), which no answer shows, and ties its leases to it.
 * Does nothing where no check has a state. Under WEIR_POLICY_ALL only. Errors: WEIR_ERR_TOO_LARGE
 * (WEIR_CHECKS_MAX limits apply, or the keys are too long together; `reason` says so). */
int weir_engine_apply_idempotency(struct weir_engine *engine, struct weir_decision *decision,
                                  struct weir_bytes key, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Fills the checks of a rule (below weir_rules_count of the current rules) on one key, by the
 * key's values, to look at a state or to remove it. Errors: as weir_rules_key_check. */
int weir_engine_apply_key(struct weir_engine *engine, struct weir_decision *decision, uint32_t rule,
                          const struct weir_key_values *values, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Makes a decision that weir_engine_apply_key has filled one on what was bought above the key's
 * limit (rules/charge/top_up.h). False: the limit takes no top-ups. */
bool weir_engine_apply_top_up(struct weir_decision *decision) __attribute__((warn_unused_result));

/* Makes a taken decision the record of a puzzle that was solved
 * (feature/challenge/rules/solution.h): it is admitted once. `nonce`: WEIR_CHALLENGE_NONCE bytes.
 * The current rules have a challenge. */
void weir_engine_apply_solution(struct weir_engine *engine, struct weir_decision *decision,
                                const unsigned char *nonce);

/* Whose request it is, where the rules have limits that follow health (token/caller.h); 0: not
 * known. */
uint64_t weir_decision_caller(const struct weir_decision *decision);

/* The rules that its checks were made from; NULL for checks of commands. */
const struct weir_rules *weir_decision_rules(const struct weir_decision *decision);

/* For commands that carry their own limits: copies bytes (a key's text) to live as long as the
 * decision. data == NULL when its working memory is used up. */
struct weir_bytes weir_decision_keep(struct weir_decision *decision, struct weir_bytes bytes);

/* A limit that an allowed decision has borrowed for: its first check, as it was denied, and the
 * rule of the pool, which is among the decision's checks in its place; of a top-up its own rule. */
struct weir_borrowed {
    const struct weir_check *check;
    uint32_t pool;
};

/* Which they are; valid until the decision is released. Returns how many. */
uint16_t weir_engine_borrowed(const struct weir_decision *decision,
                              struct weir_borrowed borrowed[WEIR_CHECKS_MAX]);

/* The checks of a decision as its limits decided by themselves, before any pool was asked: the
 * decision's own where no pool is in a limit's place. Valid until it is released. */
void weir_engine_own(const struct weir_decision *decision, struct weir_decision *own);

/* Has a decision that the rules have filled decided by its own limits alone, at their states: no
 * pool (borrow.h), no other region (feature/region/engine/lend.h) and no share of `mode: leased`
 * takes their place. */
void weir_engine_unaided(struct weir_decision *decision);

/* Has a decision that removes states (WEIR_OP_RESET) or gives units back (WEIR_OP_REFUND) do the
 * same in the home of each key, where another region is its home and is reached
 * (feature/region/engine/reach.h). Before it is queued. */
void weir_engine_reach_homes(struct weir_decision *decision);

/* Whether a region that had to do the same has not, or has not said so; its name, as long as the
 * decision is not released. What is finished in this region and others stays. */
bool weir_engine_unreached(const struct weir_decision *decision, struct weir_bytes *region);

/* Returns whether another region was asked. */
bool weir_engine_reached(const struct weir_decision *decision);

/* Fills a taken decision with the checks of a candidate: of the limit whose first check is `live`,
 * under the rules that `of` was filled by. False: it has none. */
bool weir_engine_apply_candidate(struct weir_decision *decision, const struct weir_decision *of,
                                 const struct weir_check *live);

/* Makes a taken decision the one that ends the leases of a token made by weir_engine_answer
 * (WEIR_OP_RELEASE, on whichever store gave them). Decided, it is "allowed" when at least one of
 * them had not ended. Errors: WEIR_ERR_SYNTAX (not a token). */
int weir_engine_apply_lease(struct weir_engine *engine, struct weir_decision *decision,
                            struct weir_bytes token) __attribute__((warn_unused_result));

/* When the lease began that a decision of weir_engine_apply_lease ends, and which limits learn from
 * its end (engine/token/lease_token.h), as the token says: it counts as a report of the same
 * caller. Valid until the decision is released. */
struct weir_lease_begun;
const struct weir_lease_begun *weir_decision_lease_begun(const struct weir_decision *decision);

/* How long that lease has lasted, by the clock of the store that gave it. False: nothing learns
 * from its end, or it begins in the future. */
bool weir_engine_lease_lasted(const struct weir_engine *engine,
                              const struct weir_decision *decision, uint64_t now_ns,
                              uint64_t *lasted_ns);

/* Queues a decision for the next run. Its deadline_ns, where the front end left it 0, becomes the
 * time of that run and the engine's deadline. */
void weir_engine_queue(struct weir_engine *engine, struct weir_decision *decision);

/* Decides what was queued, at one time; also fails decisions whose deadline has passed. Returns
 * when to call again at the latest (now_ns: at once; the next deadline; WEIR_NEVER: none). */
uint64_t weir_engine_run(struct weir_engine *engine, uint64_t now_ns);

/* Decides a taken decision at once, without a batch, and all that this queues: for callers that
 * wait for each, on a store that answers at once (a table). `done` is called from here, and what
 * the decision was queued for as often as it takes: a settlement has ended. */
void weir_engine_decide(struct weir_engine *engine, struct weir_decision *decision,
                        uint64_t now_ns);

/* Whether something was queued since: a settlement that a remote store has brought a step
 * further. */
bool weir_engine_waits(const struct weir_engine *engine);

/* About what the time is where the store keeps its states, while ours is `now_ns`: what
 * `charged_at_ns` of a refund goes by. */
uint64_t weir_engine_store_time(const struct weir_engine *engine, uint64_t now_ns);

/* The front end no longer wants the answer (its connection is gone): `done` is not called for it
 * and it returns to the pool by itself, after the leases that it was given are ended: no client
 * could end them, and they would keep others out for their whole life. (Of a pending one, the store
 * ends them.) In any state but FREE. */
void weir_engine_cancel(struct weir_engine *engine, struct weir_decision *decision);

/* How many decisions are at the store, wait for another region, or to hear who is calling. */
uint32_t weir_engine_pending(const struct weir_engine *engine);

/* Asks weir_engine_options.counts again, for each limit of the current rules. On the worker's
 * thread, while no decision is taken. */
void weir_engine_renew_counts(struct weir_engine *engine);

/* Has the keys of a limit counted under a number below WEIR_DISTINCT_LIMITS, as far as the first
 * bits of their hashes are below `below` (feature/use/distinct.h); WEIR_DISTINCT_NONE: no longer.
 * From any thread. */
void weir_engine_count_keys(struct weir_engine *engine, const char *name, size_t size,
                            uint8_t number, uint16_t below);

/* What became of questions to region `region`, below RULES_REGIONS_MAX, this worker's. */
const struct weir_question_counts *weir_engine_questions(const struct weir_engine *engine,
                                                         uint32_t region);

/* The standing of the caller of a decision that the rules have filled; NULL: good. Valid until it
 * is released. */
struct weir_caller_standing;
const struct weir_caller_standing *weir_decision_standing(const struct weir_decision *decision);

/* The class of a decision that the rules have filled (`priority`); NULL: no limit of it has `shed`.
 * The rules' own. */
const char *weir_decision_class(const struct weir_decision *decision);

/* The score of the caller of a decision that the rules have filled; NULL: the rules keep none, or
 * refuse the caller for its standing. Valid until it is released. */
struct weir_caller_score;
const struct weir_caller_score *weir_decision_score(const struct weir_decision *decision);

/* What became of tokens that requests came with, this worker's. */
const struct weir_token_counters *weir_engine_tokens(const struct weir_engine *engine);

/* This worker's sketch of the keys denied most. */
struct weir_top_denied *weir_engine_top_denied(const struct weir_engine *engine);

#endif
