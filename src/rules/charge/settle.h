/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules say about settling: how a limit is found again, which outcomes give back, how far
 * a true cost may go into debt.
 *
 * A reservation is settled later, perhaps after a reload, perhaps by another process: its token
 * carries a mark of each limit instead of a pointer. A limit is found again by its name and all its
 * numbers, whatever its place in the file; where the numbers have changed, by what makes a state
 * keep its meaning in units (weir_limit_converts). Otherwise it is gone, and what was reserved
 * stays charged.
 *
 * `refund_on` gives back by outcome, with a cap: a strict sliding window of `refund_cap` percent of
 * the rate per window, for each key, is charged with what is given back. It is a limit like any
 * other, so that no run of failures gives back more, and it lives where the limit does.
 */
#ifndef WEIR_RULES_CHARGE_SETTLE_H
#define WEIR_RULES_CHARGE_SETTLE_H

#include "rules/rules.h"

/* The longest life of a reservation. */
#define WEIR_RESERVATION_LIFE_MAX_NS (UINT64_C(3600) * 1000000000)

/* How long the record of a settlement lives after it was made: one of these, by the life of its
 * reservation. */
#define WEIR_SETTLED_CLASSES 3

/* HTTP's statuses, 100 to 599. */
#define WEIR_STATUS_MIN 100
#define WEIR_STATUS_MAX 599

struct weir_limit_mark {
    uint64_t name;        /* hash of the limit's name */
    uint32_t exact, kind; /* hashes of all numbers; of those that a state's meaning depends on */
};

/* What belongs to a marked limit now. */
struct weir_settling {
    const struct weir_limit *limit;
    const struct weir_limit *cap; /* of what outcomes give back; NULL: they give nothing back */
    uint32_t rule;
    uint16_t floor; /* of debt, for weir_check.floor */
};

/* How many nanoseconds after the end of a life of `life_ns` a reservation can still be released.
 * Its record outlives that by a minute, even if it was settled as soon as it was made.
 * 0 where no record lives long enough. */
uint64_t weir_settled_grace_ns(uint64_t life_ns);

/* The limit of the record of a reservation whose life was `life_ns`, prepared with all others. */
const struct weir_limit *weir_rules_settled_limit(const struct weir_rules *rules, uint64_t life_ns);

/* Called by the loader. Errors: as weir_limit_init. */
int rules_make_settled(struct weir_rules *rules) __attribute__((warn_unused_result));

/* The mark of a check of rules that has a limit. */
void weir_rules_mark(const struct weir_check *check, struct weir_limit_mark *mark);

/* Finds a marked limit, at first where `rule` says. `local`: the part of a node that decides alone.
 * False: it is gone, or has become another. */
bool weir_rules_find_marked(const struct weir_rules *rules, const struct weir_limit_mark *mark,
                            uint32_t rule, bool local, struct weir_settling *settling);

/* Whether the outcome `status` of a request gives back what it was charged by this rule. */
bool weir_rules_gives_back(const struct weir_rules *rules, uint32_t rule, uint32_t status);

#endif
