/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: charged at an estimate now, settled later at the true cost or by the outcome.
 *
 * A reservation is an ordinary decision that is allowed and charged, and a token that holds what
 * was charged where and when. The holder of the token settles it:
 *
 *   true cost N below the estimate E    the difference is given back, to what was charged at that
 *                                       time (the window, segment, entry or bucket)
 *   N above E                           the difference is charged, past the limit if need be, down
 *                                       to the floor of debt (weir_check.floor); what lies beyond
 *                                       the floor is dropped, and reported
 *   a status                            limits whose `refund_on` has it give back what they were
 *                                       charged, each all of it (and all its rates) or nothing, as
 *                                       its `refund_cap` allows
 *   true costs by name                  each limit whose `cost` is taken from that attribute, as
 *                                       above by its own estimate; all in one settlement. Limits
 *                                       that no name is for keep the estimate, or give it back as
 *                                       the status that comes with the costs says
 *   nothing, until its life ends        all is given back
 *
 * Where nothing was charged (no limit applies, or on_store_error admitted the request) the token
 * names no limit, and settling it does nothing, unless it is a strike: no record is made, so a
 * repetition is not noticed.
 *
 * Invariants, whatever order, repetition, or death of a process:
 *
 *   1 Nothing gained. A reservation is settled or released at most once, by a record in the store
 *     (WEIR_CHECK_IDEMPOTENCY) that is made before anything is given back, and with what is
 *     charged. Two settlements, a settlement and the end of its life, on two nodes or after a
 *     restart: one does something, the others get "repeated". The record outlives the last moment
 *     at which any of them is accepted (weir_settled_grace_ns).
 *     Where a store's servers charge apart, each has a record of its part, so that a repeat with
 *     the same true cost charges what was lost, and nothing twice.
 *   2 Never better than fresh. What is given back is at most what the reservation has charged, and
 *     at most what the state still holds of it (weir_cell_refund).
 *   3 Nothing leaked. A settlement of N leaves the state as if N had been charged at first; where
 *     its time has left the window, or the limit has gone, as if it had not been reserved.
 *   4 A crash takes away only the release by itself: what was reserved then stays charged until it
 *     is settled, or leaves its window. Between the record and what is given back, likewise.
 *
 * Token: feature/reserve/engine/reservation_token.h.
 *
 * Its secret is the region's, so that a token outlives a restart with a state file, and is good in
 * all processes on it; or that of a remote store (weir_store_ops.secret), so that a token is
 * good on every node that shares the store, and after a restart of any. While the store's secret is
 * not known, the region's signs, and the token is good on this node alone; so is one of what
 * on_store_error has decided here. Beside the network, a token names hashes only, or with a remote
 * store or penalties the key's text, which is what the caller has sent; its times are those of
 * where the states are.
 *
 * Strikes. A settlement by a status that is one of a penalty's `outcomes` is a strike, once: also
 * where nothing was charged it makes its record. Strikes that find no room in the token are left
 * out.
 *
 * Not part of a reservation: concurrency limits (a lease ends by its own token) and limits without
 * a state.
 *
 * Memory: a settlement works in its decision's scratch. Threads: those of the engine; the codec is
 * pure.
 */
#ifndef WEIR_FEATURE_RESERVE_ENGINE_RESERVATION_H
#define WEIR_FEATURE_RESERVE_ENGINE_RESERVATION_H

#include "engine/engine.h"
#include "feature/reserve/engine/reservation_token.h"

#define WEIR_RESERVATION_LIFE_NS (UINT64_C(60) * 1000000000)
#define WEIR_RESERVATION_LIFE_MIN_NS UINT64_C(1000000000)

/* Makes a decision that the rules have filled, from a request of cost `estimate` >= 1, one to
 * reserve by: it is decided exactly, not from shares of nodes. Errors: WEIR_ERR_TOO_LARGE (all
 * WEIR_CHECKS_MAX limits apply, or the keys are too long together), WEIR_ERR_RANGE (a cost beyond
 * 2^64). */
int weir_engine_apply_reservation(struct weir_engine *engine, struct weir_decision *decision,
                                  uint64_t estimate, uint64_t life_ns, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether check `i` of a decision is one that a reservation is about: of a limit of the rules that
 * has a state, but no lease. */
bool weir_reservation_covers(const struct weir_decision *decision, uint16_t i);

/* Whether a token of an allowed decision names check `i`: it was charged, or by an estimate of 0 of
 * a cost that a settlement may name. */
bool weir_reservation_has(const struct weir_decision *decision, uint16_t i);

/* Whether a decision that was made so has a limit that a settlement could change. Else its
 * token says so, settling it does nothing, and nothing need be kept of it. */
bool weir_engine_reserved(const struct weir_decision *decision);

/* The token of a decision that was made so and allowed; its life begins at `now_ns`. Returns its
 * length. */
size_t weir_engine_reservation(struct weir_engine *engine, const struct weir_decision *decision,
                               uint64_t now_ns, uint64_t *life_ns, uint64_t *id,
                               char text[WEIR_RESERVATION_TEXT_MAX]);

enum weir_settle_how {
    WEIR_SETTLE_COST,
    WEIR_SETTLE_STATUS,
    WEIR_SETTLE_RELEASE,
    WEIR_SETTLE_COSTS
};

#define WEIR_TRUE_COSTS_MAX 8

/* What a request has cost in truth, of limits whose `cost` is from this attribute. */
struct weir_true_cost {
    uint16_t attribute; /* of the engine's present rules: weir_rules_cost_source */
    uint64_t amount;
};

struct weir_settle {
    uint64_t cost;   /* COST: in units of the request's cost, as the estimate */
    uint32_t status; /* STATUS; COST and COSTS: how the request ended, 0: nobody says */
    uint32_t keep; /* RELEASE: limits of the token, by their place in it, that give nothing back */
    uint8_t how;   /* enum weir_settle_how */
    bool no_strikes;     /* the status has been counted as a strike already */
    uint16_t true_count; /* COSTS; of `true_costs`, which are read at once */
    const struct weir_true_cost *true_costs;
};

/* Makes a taken decision the settlement of a token at the time `now_ns`; queue it then. It takes up
 * some decisions of the store, and `done` is called after the last. It continues when it is
 * cancelled. RELEASE is for tokens that this process has kept since it made them, until
 * weir_settled_grace_ns after the end of its life; the others are too late at that end.
 * Errors: WEIR_ERR_SYNTAX (no token of this region or store), WEIR_ERR_STORE (perhaps one of the
 * store, whose secret is not known yet), WEIR_ERR_NOT_FOUND (it is too late, or its store is not
 * here). */
int weir_engine_apply_settle(struct weir_engine *engine, struct weir_decision *decision,
                             struct weir_bytes token, const struct weir_settle *settle,
                             uint64_t now_ns) __attribute__((warn_unused_result));

/* What came of a finished settlement. Its decision's checks are what was given back (op REFUND), or
 * charged (DEBIT). */
struct weir_settled {
    uint64_t id;    /* of the reservation */
    bool repeated;  /* settled or released before: nothing was done */
    bool capped;    /* the outcome gives back, but a `refund_cap` does not let all of it */
    bool failed;    /* the store did not answer: settle again */
    bool kept;      /* it failed after the record was made: what was reserved stays charged */
    uint16_t gone;  /* limits that are no longer in the rules, or became others */
    uint16_t count; /* of checks that something was given back to or charged */
    uint64_t dropped[WEIR_CHECKS_MAX]; /* by check: what lies beyond the floor of debt */
    uint64_t charged[WEIR_CHECKS_MAX]; /* REFUND, by check: what it was charged before, where its
                                          true cost was above the estimate and others' below */
};
void weir_engine_settled(const struct weir_decision *decision, struct weir_settled *settled);

/* The limits of the current rules that a finished settlement's reservation was charged to, whatever
 * came of it: their places in the rules, each once, and whose request it was (where the token does
 * not say, the hash of the key). Returns how many. */
struct weir_settled_part {
    uint32_t rule;
    uint64_t caller;
};
uint16_t weir_engine_settled_limits(const struct weir_engine *engine,
                                    const struct weir_decision *decision,
                                    struct weir_settled_part limits[WEIR_CHECKS_MAX]);

#endif
