/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules say about penalties: `penalties:`, which turn repeated conduct into standing.
 *
 *   denial by a limit of `for` ──┐
 *   reported status of `outcomes` ┴▶ a strike: counted in the limit NAME~strikes, by the value of
 *                                    `key` ─▶ the time without a strike begins anew
 *                                           └▶ the log is full: one step up the ladder
 *                                              (feature/standing/ladder.h), and the count begins
 * anew
 *
 * The strikes are counted in a sliding log, which is exact. `strikes: 5/h` is a log with room for
 * six: the sixth in an hour fills it, and exactly one does (feature/penalties/engine/strike.h).
 * Each penalty has states of its own; no limit's name has a '~'. Memory: about 700 bytes a penalty.
 *
 * Threads: immutable once loaded.
 */
#ifndef WEIR_FEATURE_PENALTIES_RULES_PENALTY_H
#define WEIR_FEATURE_PENALTIES_RULES_PENALTY_H

#include "feature/standing/ladder.h"
#include "rules/rules.h"

#define WEIR_PENALTIES_MAX 16

struct weir_standing_kind;

/* One of `penalties:`; owned by the rules. */
struct weir_penalty {
    struct weir_bytes name; /* also the reason of the standing that it causes */
    struct weir_ladder ladder;
    uint8_t kind;         /* of its values: index into the kinds of the standing settings */
    bool while_suspended; /* requests refused by a suspension are strikes */
};

uint32_t weir_rules_penalty_count(const struct weir_rules *rules);

/* number < weir_rules_penalty_count. */
const struct weir_penalty *weir_rules_penalty(const struct weir_rules *rules, uint32_t number);

/* The number of the penalty with this name; -1: there is none. */
int weir_rules_penalty_find(const struct weir_rules *rules, struct weir_bytes name);

/* Whether a denial by a limit is a strike of a penalty; `rule` is the index of the limit, or
 * UINT32_MAX for limits in commands, which are never strikes. */
bool weir_rules_penalty_denial(const struct weir_rules *rules, uint32_t number, uint32_t rule);

/* Whether any outcome is a strike of a penalty. */
bool weir_rules_penalty_outcomes(const struct weir_rules *rules, uint32_t number);

/* Whether an outcome with this HTTP status is a strike of a penalty. */
bool weir_rules_penalty_outcome(const struct weir_rules *rules, uint32_t number, unsigned status);

/* The ladder of a penalty for one value. */
struct weir_penalty_term {
    const struct weir_penalty *penalty;
    const struct weir_ladder_state *state;
};

/* Fills the entry of a term that runs at now_ns. False: none does. */
bool weir_penalty_entry(const struct weir_penalty_term *term, uint64_t now_ns,
                        struct weir_standing_entry *entry);

/* The strictest of the terms of one value that run at now_ns: fills its entry and returns its
 * index; -1: none runs. *due_ns: when it ends, if another one lasts longer; else 0. */
int weir_penalty_strictest(const struct weir_penalty_term *terms, uint32_t count, uint64_t now_ns,
                           struct weir_standing_entry *entry, uint64_t *due_ns);

/* A hash of all that a penalty says: its name, its kind of values, the limit that counts its
 * strikes, its ladder. Processes whose rules differ in that do not take each other's strikes. */
uint64_t weir_penalty_print(const struct weir_penalty *penalty,
                            const struct weir_standing_kind *kind, const struct weir_limit *limit);

/* Whether an outcome with this status is a strike of any penalty. */
bool weir_rules_strikes(const struct weir_rules *rules, unsigned status);

/* The limit that counts the strikes of a penalty, as its states are called: "NAME~strikes". */
const struct weir_limit *weir_rules_penalty_limit(const struct weir_rules *rules, uint32_t number);

#endif
