/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowing: where a limit with `pool: NAME` denies, its request is charged to the limit NAME
 * (which has `borrow: true`), if that admits it.
 *
 * The rules only say what could be borrowed: beside the checks of a request, the checks of the
 * pools of its limits. The engine decides whether to borrow (engine/borrow.h).
 *
 * A pool is met with its own key and its own cost. Its `match` plays no part, except for attributes
 * of its key that it pins to one literal: `match: {plan: free}, key: [plan]` is the bucket of the
 * free plans, for every borrower. There is nothing to borrow where an attribute of the key is
 * missing, a schedule of the pool is at rest, or a cost that it takes from the request is bad.
 * Borrowers meet the pool's own rates; a reserve is a limit of a lower capacity on the same state.
 * A request that may use only a part of a limit (charge/scale.h) borrows nothing for it.
 *
 * A pool makes one check per request, however many limits borrow from it, and also where it applies
 * to the request by itself.
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
