/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a decision that takes more than one script call: no sockets, no clock.
 *
 * Checks are grouped by the cluster slot of their keys; a group is decided atomically by one call.
 * The group of an idempotency record is the first, the others follow in the order of their first
 * checks. Groups become one decision like this:
 *
 *   ALL, decide    Group after group is RESERVEd. All admit: allowed. The first that denies ends
 *                  it: what was reserved is rolled back, and every other group is PEEKed, so that
 *                  every check has an outcome. Other requests may see a reservation for a moment,
 *                  and may be denied by it; none is ever admitted by one.
 *   others         (EACH, QUOTA, peek, debit, refund, release, reset, look) No group's verdict
 *                  changes what another is charged: all groups at once.
 *   an idempotency record is asked first, with the checks of its slot. Where it was there, the
 *                  other groups are PEEKed and reported as admitted.
 *   several records (a debit only): each slot's own says that this slot was charged, the last that
 *                   the whole was asked, and the one before it, beside it, what was asked. Where
 *                   the whole was asked before, and the same, the other groups are called all the
 *                   same: their records let them charge what was not charged then, once.
 *   a check without state that denies the whole, under ALL: every group is PEEKed.
 *
 * Checks with `on_deny: charge` are charged although the request is denied: where their group is
 * PEEKed, they are decided in a call of their own, under EACH.
 *
 * Each reservation has an id of its own (that of the plan, which is random, and the group's
 * number). A call whose end is unknown may have reserved: it is rolled back too. A roll-back is
 * sent after the reservation on the same connection; it works once, and leaves a mark that
 * refuses a reservation which comes late. A state that the reservation has converted to other
 * numbers (another plan of the caller's) is restored, unless it has been charged since.
 *
 *   call_plan_make, then until call_plan_state is not CALL_PLAN_RUNNING:
 *       while call_plan_next: call_plan_batch, send it; report the end of each to
 *       call_plan_answered or call_plan_failed
 *   After that call_plan_next still returns the roll-backs: send and forget them.
 *
 * Servers have clocks of their own, so that the outcomes of a plan are reported at the time of the
 * server that they are from (call_plan_settle), not later.
 *
 * Memory: the caller's. Threads: one owner.
 */
#ifndef WEIR_STORE_REDIS_CALL_PLAN_H
#define WEIR_STORE_REDIS_CALL_PLAN_H

#include "store/redis/script/script.h"

enum redis_step_kind {
    REDIS_STEP_CALL = 1,      /* reserve, or decide */
    REDIS_STEP_ROLL_BACK = 2, /* no decision waits for its reply */
    REDIS_STEP_PEEK = 4,
    REDIS_STEP_CHARGE = 8, /* the checks that are charged although the request is denied */
};

struct redis_step {
    uint8_t group, kind; /* enum redis_step_kind */
};

struct call_plan_group {
    uint16_t slot;
    uint8_t first, count; /* in call_plan.checks */
    uint8_t todo, sent;   /* sets of steps: to be sent; sent, and waited for */
    bool reserved;
};

enum call_plan_state { CALL_PLAN_RUNNING, CALL_PLAN_DECIDED, CALL_PLAN_FAILED };

struct call_plan {
    uint64_t id;
    uint8_t state; /* enum call_plan_state */
    uint8_t count; /* of groups */
    bool reserves, idempotent, denied, repeated, resumes;
    struct call_plan_group groups[WEIR_CHECKS_MAX];
    uint16_t checks[WEIR_CHECKS_MAX]; /* indexes of those with a state, group by group */
};

/* What every call needs to know besides. */
struct call_plan_context {
    const char *prefix;
    uint64_t now_ns; /* of redis_batch */
    uint64_t test_now_us;
};

/* Whether one call decides it, so that it needs no plan; then *action says how. `one_slot`: all
 * keys may be in one call, since the server is not a Cluster. */
bool call_plan_is_one_call(const struct weir_decision *decision, bool one_slot, uint8_t *action);

/* Groups the checks of `decision`, of which at least one has a state. `id` is random. */
void call_plan_make(struct call_plan *plan, const struct weir_decision *decision, bool one_slot,
                    uint64_t id);

/* The next call to be sent; false: none, for now. */
bool call_plan_next(struct call_plan *plan, struct redis_step *step);

/* The call of a step. `batch` points to `checks` and perhaps to `as`, all the caller's, and to
 * the decision. */
void call_plan_batch(const struct call_plan *plan, const struct weir_decision *decision,
                     struct redis_step step, const struct call_plan_context *context,
                     struct weir_decision *as, uint16_t checks[WEIR_CHECKS_MAX],
                     struct redis_batch *batch);

/* The reply of a step was read: these checks together are WEIR_ALLOWED or WEIR_DENIED. */
void call_plan_answered(struct call_plan *plan, const struct weir_decision *decision,
                        struct redis_step step, uint8_t verdict, bool repeated);

/* A step failed. `executed`: perhaps it was executed. A request that is known to be denied stays
 * denied; else the plan has failed. */
void call_plan_failed(struct call_plan *plan, struct weir_decision *decision,
                      struct redis_step step, bool executed);

/* The decision was cancelled; call this after the ends of all calls in flight
 * (call_plan_failed). Then call_plan_next gives what is to be rolled back. */
void call_plan_cancel(struct call_plan *plan);

/* Makes the outcomes of a batch reports of the time `now_ns` of the server that gave them; that of
 * the decision becomes the latest of these. */
void call_plan_settle(struct weir_decision *decision, const struct redis_batch *batch,
                      uint64_t now_ns);

/* The decided plan's verdict and what goes with it. */
void call_plan_finish(const struct call_plan *plan, struct weir_decision *decision);

/* The outcomes of checks without a state. */
void call_plan_fill_stateless(struct weir_decision *decision);

#endif
