/* SPDX-License-Identifier: Apache-2.0 */
/* The slow, obvious model of what reserving, settling, granting and resetting do to the states of
 * one key: each state as the exact models of the algorithms have it (tests/lib/model.h), and a
 * quota as a list of days. And a ledger of the hourly window that knows nothing of states, only
 * what was truly used and what was given away, so that it also holds the models to account.
 *
 * The rules it stands for are those of test_reservation_model.c, in two generations: what a reload
 * changes, and a limit that is gone meanwhile.
 */
#ifndef TESTS_ENGINE_RESERVATION_MODEL_H
#define TESTS_ENGINE_RESERVATION_MODEL_H

#include "model.h"

#define HOUR_NS (UINT64_C(3600) * 1000000000)
#define DAY_NS (24 * HOUR_NS)
#define DAYS_MAX 512

/* In the order of the first generation of the rules. */
enum { WINDOW, LOG, BUCKET, QUOTA, PAIR_HOUR, PAIR_DAY, STATES };
#define WINDOW_UNIT 3 /* its `cost` */

struct account {
    struct model states[STATES]; /* unused for QUOTA */
    struct model caps[STATES];   /* BUCKET and QUOTA: what outcomes may give back */
    uint64_t days[DAYS_MAX];     /* the quota's: used in each */
    /* The ledger, of WINDOW, by the hour since day 0: what was used in truth; what was given (by
     * grants, resets, and beyond the floor of debt); what a crash or a reload left charged. */
    uint64_t truth[DAYS_MAX * 24], given[DAYS_MAX * 24], kept[DAYS_MAX * 24];
};

/* What was charged for a request. */
struct charged {
    uint64_t at_ns, estimate;
    uint64_t unit[STATES]; /* what a request of cost 1 takes */
    bool has[STATES];
};

/* What the rules say now. */
struct generation {
    bool has[STATES];
};
extern const struct generation generations[2];

/* Day 0 begins at `start_ns`, a midnight. */
void account_open(struct account *account, uint64_t start_ns);
void account_close(struct account *account);
void account_reload(struct account *account, int generation);

/* The largest cost that would be admitted, and what a fresh one has (of the quota: at most). */
uint64_t account_remaining(const struct account *account, int state, uint64_t now_ns);
uint64_t account_capacity(const struct account *account, int state);

/* What a request will be charged that names these costs: see `cost` of the rules. */
struct charged account_price(uint64_t cost, uint64_t log, uint64_t bucket);
/* Whether it is admitted, and its charge. */
bool account_admits(const struct account *account, const struct generation *now, uint64_t now_ns,
                    const struct charged *price);
void account_charge(struct account *account, const struct generation *now, uint64_t now_ns,
                    struct charged *price);

/* A true cost above the estimate: what lies beyond the floor of debt is dropped. */
void account_debit(struct account *account, const struct generation *now, uint64_t now_ns,
                   const struct charged *charged, uint64_t cost);
/* One below it, or a release (0). With `lost`, only the record of it was made. */
void account_return(struct account *account, const struct generation *now, uint64_t now_ns,
                    const struct charged *charged, uint64_t cost, bool lost);
/* The same of a set of states, by true costs of their own; what it gives back is of none that
 * the ledger is about. */
void account_correct(struct account *account, const struct generation *now, uint64_t now_ns,
                     const struct charged *charged, const uint64_t truth[STATES], unsigned set,
                     bool debit);
/* By outcome, as sets of states: which have a cap, and those of `among` whose cap admits it; then,
 * of a set, the caps' charge, and what is given back. */
unsigned account_outcome_capped(const struct generation *now, const struct charged *charged);
unsigned account_outcome_admits(struct account *account, uint64_t now_ns,
                                const struct charged *charged, unsigned among);
void account_outcome_charge(struct account *account, uint64_t now_ns, const struct charged *charged,
                            unsigned set);
void account_outcome_return(struct account *account, uint64_t now_ns, const struct charged *charged,
                            unsigned set, bool lost);

void account_grant(struct account *account, int state, uint64_t now_ns, uint64_t units);
void account_reset(struct account *account, int state, uint64_t now_ns);

/* What the ledger allows the window to have used in the hour of `now_ns`. */
void account_bounds(const struct account *account, uint64_t now_ns, uint64_t *least,
                    uint64_t *most);

#endif
