/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to its checks.
 *
 * A query is all that one evaluation needs: the rules, the request, the time, and where results go.
 * The request is only read.
 *
 * Threads: reads the rules only, so any number at a time. Allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_CHECKS_H
#define WEIR_RULES_MATCH_CHECKS_H

#include "feature/identity/rules/caller.h"
#include "rules/rules.h"

/* Working memory of one evaluation: normalised path, captures, keys. */
#define WEIR_SCRATCH_BYTES 16384
struct weir_scratch {
    uint32_t used;
    char bytes[WEIR_SCRATCH_BYTES];
};

struct weir_caller_score;
struct weir_caller_standing;
struct weir_loans;
struct weir_request_place;
struct weir_standing;
struct weir_strikes;
struct weir_tokens;

struct weir_rules_query {
    const struct weir_rules *rules;
    const struct weir_request *request;
    const uint64_t *secret;           /* keys are hashed with it: 2 words */
    struct weir_scratch *scratch;     /* keys and derived values; overwritten */
    uint64_t now_ns;                  /* for the life of tokens; needed where weir_rules_timed */
    uint64_t resting;                 /* schedules at rest at that time: see weir_rules_moment */
    struct weir_directory *directory; /* of callers in another store (feature/identity); or NULL */
    struct weir_tokens *tokens;       /* cache of verified tokens (feature/identity); or NULL */
    struct weir_identity *identity;   /* gets the caller, as far as a limit needed it; or NULL */
    struct weir_loans *loans;         /* gets what could be borrowed (charge/borrow.h); or NULL */
    const struct weir_standing *map;  /* what standing callers have (feature/standing); or NULL */
    struct weir_caller_standing *standing; /* with `map`: gets the caller's */
    struct weir_strikes *strikes;          /* with `map`: gets what strikes the request may be
                                              (feature/penalties); or NULL */
    bool refuses;    /* with `map`: a suspended or revoked caller gets no check */
    bool missing;    /* there should be a map, and there is none: on_store_error of the settings */
    uint8_t *class;  /* gets 1 + the class of the request (feature/priority), or 0: no limit that
                        applies has asked for it; or NULL */
    uint8_t behaves; /* enum rules_behaves: what becomes of the client's behaviour */
    struct weir_request_place *place; /* gets where it belongs (match/routes.h); or NULL */
    struct weir_caller_score *score;  /* gets the caller's (feature/score); or NULL */
    struct weir_reason *reason;       /* gets the reason of an error; or NULL */
    bool keep_tuples; /* weir_check.key may be a tuple, for weir_rules_key_text; else it is text */
};

/* Room for the text of a key: 32 of them are half the scratch; paths have most of the rest. */
#define WEIR_KEY_TEXT_MAX 256

/* The text of the key of a check that these rules made: `check->key`, or written
 * into `room` where the check has a tuple. What check->key points at has to be there still. */
struct weir_bytes weir_rules_key_text(const struct weir_rules *rules,
                                      const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX]);

/* Fills `checks` (room for WEIR_CHECKS_MAX) with the limits that apply, in the order of the file,
 * one check for each rate of a limit (see weir_decision_limit_end). A check that needs no state
 * (WEIR_CHECK_UNLIMITED, WEIR_CHECK_ALWAYS_DENY) has no `limit`. With query->loans, the number of
 * checks and loans->check_count are at most WEIR_CHECKS_MAX together. Returns the number of checks.
 * Errors: WEIR_ERR_SYNTAX (a bad encoding in path or host, a bad value that a cost is taken from;
 * the reason names the field), WEIR_ERR_TOO_LARGE (more than WEIR_CHECKS_MAX checks, or scratch
 * exhausted), WEIR_ERR_PENDING (the directory has begun to look the caller up: ask again when it
 * has finished), WEIR_ERR_STORE (the directory cannot look the caller up). */
int weir_rules_checks(const struct weir_rules_query *query, struct weir_check *checks)
    __attribute__((warn_unused_result));

/* --- Within the rules ------------------------------------------------------------------------- */

struct rules_evaluation;
struct rules_rule;

/* Appends the checks of a limit that applies to the first `count` of them: one for each of its
 * rates. Returns how many there are then. Errors: WEIR_ERR_TOO_LARGE (more than WEIR_CHECKS_MAX, or
 * scratch is full), WEIR_ERR_SYNTAX (a bad cost). */
int rules_checks_build(struct rules_evaluation *evaluation, uint32_t rule,
                       struct weir_check checks[WEIR_CHECKS_MAX], int count);

/* Sets what only checks need of the limits, once all of the file is loaded. */
void rules_checks_prepare(struct weir_rules *rules);

/* The earlier check whose limit `unless` of this rule names: its index, or -1. */
int rules_unless(const struct rules_rule *rule, const struct weir_check *checks, int count);

#endif
