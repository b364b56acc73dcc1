/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowing at the engine: a decision that borrowers deny is tried once more with the pools in
 * their place; see rules/charge/borrow.h for what may be borrowed. Units that were bought above a
 * limit (rules/charge/top_up.h) are a pool of one key's own. They are offered only when the limit
 * has denied, and make no wait shorter; all else here holds for them as for pools.
 *
 * The first try is of the request's own limits, as without pools. The second, only after a denial
 * by limits that have a pool, leaves those out: their pools decide instead, with all other limits,
 * all or nothing.
 *
 * Each try is one atomic decision of the store, under the same deadline; between them others may
 * come. When the second is admitted, the request is allowed and charged to the pools; when both
 * deny, nothing was charged, and of each limit and its pool the answer has the one to wait less
 * for: either is enough. Where the store fails the second try, the first's denial is final. (Where
 * it fails the first, on_store_error decides as usual.)
 *
 * Where another limit has denied as well, the second try is made only if the borrowers deny for
 * longer: it will be denied too, but the pools then determine how long a client has to wait.
 *
 * What `on_deny: charge` has charged in the first try is not charged again: such a limit keeps its
 * first verdict. A pool that the request meets by itself is charged once. The record of an
 * idempotency key stays last. A limit in shadow denies nobody, so it never borrows.
 *
 * A limit that borrowed counts as `borrowed`, not as denied; its pool counts what it
 * admitted. What both tries deny counts as the first.
 *
 * Memory: in the scratch of a decision that may borrow, room for both tries; decisions of rules
 * without pools have one pointer that is NULL, and of top-ups nothing until a limit denies.
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_BORROW_H
#define WEIR_ENGINE_BORROW_H

#include "engine/engine.h"
#include "rules/charge/borrow.h"

struct weir_entry;

/* The other try of a decision that may borrow: the second to be made, then the first that was. */
struct weir_borrow {
    uint64_t now_ns;
    uint16_t count, loan_count, loan_checks; /* with room for a top-up of each check */
    bool tried, borrowed;
    bool beside;     /* the first try is here, and the answer is another one */
    bool remembered; /* the other try was */
    struct weir_loan *loans;
    struct weir_check *from;   /* the pools' checks */
    struct weir_check *checks; /* of the other try */
    struct weir_outcome *outcomes;
};

/* Keeps with a decision what the rules have said that it may borrow. Errors: WEIR_ERR_TOO_LARGE
 * (its scratch is full). */
int weir_borrow_offer(struct weir_entry *entry, const struct weir_loans *loans,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether a limit, by its first check in the answer, is a pool in place of one that
 * borrows: what it knows of the pool is what borrowers may have, without the reserve. */
bool weir_borrow_lends(const struct weir_borrow *borrow, const struct weir_check *check);

#endif
