/* SPDX-License-Identifier: Apache-2.0 */
/* The standing of a request's caller (`standing:`): looked up once, before any limit.
 *
 * All kinds of value that the rules name in `by` are looked up in one map
 * (feature/standing/standing.h), and what they find is joined. The client's address comes first,
 * then what the request carries, and last what identify finds, which may cost a SHA-256 or a
 * look-up in Redis. Nothing beats a revocation, so the search ends with the first one. An empty map
 * costs one load.
 *
 * A user counts only where it was verified: by a key that is known, by a valid token, or by a
 * caller that the rules trust. The user that `identify: client.ip` makes is an address, and has the
 * standing of that address.
 *
 * Threads: reads only, as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_FEATURE_STANDING_RULES_MATCH_H
#define WEIR_FEATURE_STANDING_RULES_MATCH_H

#include "feature/standing/standing.h"
#include "rules/match/checks.h"

/* What is in force for one caller. */
struct weir_caller_standing {
    struct weir_standing_entry entry; /* level GOOD: nothing is in force; the rest is undefined */
    uint8_t kind;                     /* by which of the settings' kinds it was found */
    bool refused;                     /* the caller gets no check: suspended or revoked, or: */
    bool unknown;                     /* refused by `on_unknown: deny`; the level is GOOD */
    bool missing;                     /* refused as nobody can say: `on_store_error: closed` */
    struct weir_bytes by; /* of a refused caller, and from weir_rules_explain: the value it was
                             found by, "user=alice", as the key of a limit; in scratch; size 0: no
                             room for it */
    uint64_t hash[2];     /* of that key */
};

/* Whether a caller of this level is refused. */
static inline bool weir_standing_refuses(uint8_t level)
{
    return level == WEIR_STANDING_SUSPENDED || level == WEIR_STANDING_REVOKED;
}

/* The answer to a refused caller: an HTTP status, and a body with its type (data == NULL: problem
 * details). Owned by the rules. */
struct weir_standing_answer {
    uint16_t status;
    struct weir_bytes body, content_type;
};
struct weir_standing_answer weir_rules_standing_answer(const struct weir_rules *rules,
                                                       uint8_t level);

/* Whether the file says `on_unknown: deny`. */
bool weir_rules_denies_unknown(const struct weir_rules *rules);

/* What callers of each level may use of a limit, in percent; NULL: all of it. */
const uint8_t *weir_rules_by_standing(const struct weir_rules *rules, uint32_t rule);

/* --- Within the rules ------------------------------------------------------------------------- */

struct rules_evaluation;
struct rules_rule;

/* Asks the memory for what rules_standing_find will read of values that are at hand, so that they
 * arrive together, and while other work is done. Needs query->map. */
void rules_standing_prefetch(struct rules_evaluation *evaluation);

/* Looks the caller up, with query->map: fills *query->standing and evaluation->standing. Returns
 * whether the request is refused. Finding out who is calling may fail: see evaluation->error. */
bool rules_standing_find(struct rules_evaluation *evaluation);

/* There is no map, though there should be: fills *query->standing. Returns whether the request is
 * refused for it. */
bool rules_standing_missing(struct rules_evaluation *evaluation);

/* Fills `by` and `hash` of a standing that was found, whatever its level. */
void rules_standing_name(struct rules_evaluation *evaluation);

/* The level as the value of the attribute `standing`. */
struct weir_bytes rules_standing_text(uint8_t level);

#endif
