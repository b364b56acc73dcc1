/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that the rules find or make: the value of each, and its inverse, which rows of
 * attribute_table.c name. So a new one is a number (request.h), a row, and two functions of made.c;
 * values that need the evaluation's own parts are in evaluate.c.
 */
#ifndef WEIR_RULES_MATCH_MADE_H
#define WEIR_RULES_MATCH_MADE_H

#include <stdint.h>

#include <weir/bytes.h>

struct rules_evaluation;

/* `value` of a row; data == NULL: absent. What it points at lives as long as the evaluation. */
typedef struct weir_bytes rules_value_fn(struct rules_evaluation *evaluation, uint16_t attribute);
rules_value_fn rules_path_value, rules_host_value, rules_user_value, rules_org_value,
    rules_plan_value, rules_standing_value, rules_challenge_text, rules_credential_value,
    rules_agent_value, rules_claim_value;

/* `given` of a row: puts what a key has where `value` finds it. Returns what is wrong with it, with
 * a colon, or NULL. */
typedef const char *rules_given_fn(struct rules_evaluation *evaluation, uint16_t attribute,
                                   struct weir_bytes value);
rules_given_fn rules_given_path, rules_given_host, rules_given_user, rules_given_org,
    rules_given_plan, rules_given_standing, rules_given_challenge, rules_given_score,
    rules_given_claim;

#endif
