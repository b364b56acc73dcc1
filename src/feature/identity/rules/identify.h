/* SPDX-License-Identifier: Apache-2.0 */
/* Who a request's caller is: by API key, address or token, as `identify` says.
 *
 * Found at most once per evaluation, and only when a limit needs it: a key costs a SHA-256, a token
 * the verification of a signature.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_IDENTIFY_H
#define WEIR_FEATURE_IDENTITY_RULES_IDENTIFY_H

#include "rules/match/evaluate.h"

/* Finds user, org, plan and overrides. Where that fails it sets evaluation->error, and the caller
 * counts as unknown. */
void rules_identify(struct rules_evaluation *evaluation);

/* With `on_unknown: deny`: whether the request is refused because it has credentials and no source
 * knows any; fills query->standing then. A source that did not answer says nothing: that is the
 * error of the store, and `on_error` decides. */
bool rules_refuse_unknown(struct rules_evaluation *evaluation);

/* A claim of the request's token, by its number; data == NULL: the token has no such claim, or
 * there is no valid token. It lives as long as the evaluation. Only for rules with `jwt`. */
struct weir_bytes rules_claim(struct rules_evaluation *evaluation, uint8_t claim);

/* Makes claims live as long as scratch. Call it while scratch holds no more than path, host and
 * address: all claims fit beside those. */
void rules_claims_keep(struct rules_evaluation *evaluation);

/* The state of a request's token, with the names that metrics use: "valid", or what is wrong with
 * it; NULL: it has none, or the rules read none. */
const char *weir_rules_token_state(const struct weir_rules *rules,
                                   const struct weir_request *request, uint64_t now_ns);

#endif
