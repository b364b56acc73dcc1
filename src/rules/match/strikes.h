/* SPDX-License-Identifier: Apache-2.0 */
/* The strikes that a request may turn out to be: one for each penalty whose kind of value it has.
 *
 * They are found with the checks, because the request is gone when a store denies it or when its
 * outcome is reported. Each has the check that counts it, in the limit NAME~strikes
 * (charge/penalty.h), and says for the map of standing whom it is held against. A request without
 * the value (no user, no such header) is no strike of that penalty. As for standing, a user counts
 * only where it was verified, and not where it is an address.
 *
 * Threads: reads only, as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_STRIKES_H
#define WEIR_RULES_MATCH_STRIKES_H

#include "core/address.h"
#include "core/check.h"
#include "rules/charge/penalty.h"
#include "rules/match/checks.h"

struct weir_strike {
    struct weir_check check;  /* its key's text, "user=alice", is in scratch; its `rule` is none */
    struct weir_cidr network; /* of a kind of addresses: the client's; else not valid */
    uint64_t id[2];           /* of another kind: as the map has it; else not valid */
    uint8_t penalty;          /* its number */
};

struct weir_strikes {
    uint32_t count;
    struct weir_strike strikes[WEIR_PENALTIES_MAX];
};

/* --- Within the rules ------------------------------------------------------------------------- */

struct rules_evaluation;

/* Fills *strikes; needs query->map. `refused`: the caller's standing refuses the request, which is
 * a strike only for penalties with strikes_while_suspended. Errors: WEIR_ERR_TOO_LARGE (scratch is
 * full). Finding out who is calling may fail: see evaluation->error. */
int rules_strikes_find(struct rules_evaluation *evaluation, bool refused,
                       struct weir_strikes *strikes) __attribute__((warn_unused_result));

#endif
