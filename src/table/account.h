/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: each limit pays for its own states.
 *
 * There is one account for each name of a limit (whatever rates its plans and callers have), and
 * one for all limits without a name, which come from commands. The records of idempotency keys and
 * of reservations are limits of names of their own. When limits take more than three quarters of
 * the list of parameters, all later ones share one account. With n accounts in use, each is
 * guaranteed an n-th of half the slots, and an n-th of half the memory for spans. When a new key
 * needs room and no state is fresh (placement.h),
 *
 *   an account that holds more than its guarantee    makes room among its own states;
 *   one that holds less                              takes it from the account that holds most.
 *
 * States of limits that yield (weir/limit.h) are evicted before all others, for any account.
 *
 * So the keys of one limit, however many, take from all others together at most that limit's
 * guarantee.
 *
 * An account's holdings change whenever a state becomes fresh, which no code notices, so they are
 * sampled and not counted: each owner keeps the shares of the last few thousand live states that it
 * has seen while looking for room. Keys hash to random buckets, so this is a random sample; the
 * first states, and those after a pause, come from SAMPLE random buckets. The standard error of a
 * share s is sqrt(s * (1 - s) / 4096), below 0.8 %.
 *
 * Memory for spans is sampled in the same way, by random pages of the heap (span/make_room.c).
 *
 * Memory: 16 bytes an account for each owner. Threads: a sample belongs to its owner. */
#ifndef WEIR_TABLE_ACCOUNT_H
#define WEIR_TABLE_ACCOUNT_H

#include "table/region.h"

/* The account of a slot's parameters; of a damaged file: any number. */
static inline uint32_t account_of(const struct weir_table *table, uint16_t param)
{
    if (param == 0 || param > table->fixed.params_max)
        return UINT32_MAX;
    return __atomic_load_n(&table->params[param - 1].account, __ATOMIC_RELAXED);
}

/* Notes one live state of this account, and whether it denies. */
void account_note(struct weir_table_owner *owner, struct account_sample *sample, uint32_t account,
                  bool denies);

/* Clears a sample to which nothing was added lately. Returns whether it is empty now. */
bool account_forget(struct weir_table_owner *owner, struct account_sample *sample, uint64_t now_ns);

/* Samples random buckets if nothing was noted lately. */
void account_refresh(struct weir_table_owner *owner, uint64_t now_ns);

/* Whether an account holds more than its guarantee; and how many of the sampled states belong to
 * it. */
bool account_is_above(const struct weir_table_owner *owner, const struct account_sample *sample,
                      uint32_t account);
uint32_t account_held(const struct weir_table_owner *owner, const struct account_sample *sample,
                      uint32_t account);

/* Whether at least half of an account's sampled states deny. */
bool account_mostly_denies(const struct weir_table_owner *owner,
                           const struct account_sample *sample, uint32_t account);

/* Counts for the account of these parameters. */
void account_count_eviction(struct weir_table *table, uint16_t param);
void account_count_overflow(struct weir_table *table, uint16_t param);

#endif
