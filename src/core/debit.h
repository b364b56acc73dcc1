/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of debt: how far a debit (WEIR_OP_DEBIT) may take a state beyond its capacity.
 *
 * A debit charges what has been used already, so it is never denied; but a state must not owe for
 * ever. With a floor of D units it is charged what it can take until it has used capacity + D, and
 * what lies beyond that is not charged at all. Works on a copy of the limit whose capacity is D
 * larger: what that copy has remaining is the room, by the same arithmetic as every answer.
 */
#ifndef WEIR_CORE_DEBIT_H
#define WEIR_CORE_DEBIT_H

#include "core/check.h"
#include "core/span/span.h"

/* D of a check that has a floor: its percentage of the capacity, rounded down. */
uint64_t weir_check_debt(const struct weir_check *check);

/* The largest cost that a debit may charge, so that not more than capacity + `debt` is used. */
uint64_t weir_cell_debit_room(const struct weir_limit *limit, const struct weir_cell *cell,
                              uint64_t now_ns, uint64_t debt);
/* The same for a check on a cell, at the check's scale. A reserve binds nothing that is used
 * already. */
uint64_t weir_check_debit_room(const struct weir_check *check, const struct weir_cell *cell,
                               uint64_t now_ns, uint64_t debt);
uint64_t weir_span_debit_room(const struct weir_limit *limit, const struct span_view *span,
                              uint64_t now_ns, uint64_t debt);

#endif
