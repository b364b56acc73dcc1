/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowing: a limit with `pool: NAME` is charged to the limit of that name (which says `borrow:
 * true`) where it denies and the pool admits.
 *
 * The rules only say what could be borrowed: beside the checks of a request, the checks of the
 * pools of its limits. Whether it comes to that is the engine's (engine/borrow.h).
 *
 * A pool is met with its own key and its own cost. Its `match` plays no part, but for attributes of
 * its key that it pins to one literal: `match: {plan: free}, key: [plan]` is the bucket of the free
 * plans, whoever borrows. There is nothing to borrow where an attribute of the key is missing, a
 * schedule of the pool is at rest, or a cost that it takes from the request is bad. Borrowers meet
 * the pool's own rates; a reserve is a limit of a lower capacity on the same state.
 *
 * A pool is asked once, however many limits of a request borrow from it, and also where the request
 * meets it by itself.
 */
#ifndef WEIR_RULES_CHARGE_BORROW_H
#define WEIR_RULES_CHARGE_BORROW_H

#include "rules/rules.h"

/* What one limit may borrow: checks[first .. first + count) of the loans. */
struct weir_loan {
    uint32_t rule, pool;
    uint16_t first, count;
};

struct weir_loans {
    uint16_t count, check_count;
    struct weir_loan loans[WEIR_CHECKS_MAX];
    struct weir_check checks[WEIR_CHECKS_MAX];
};

#endif
