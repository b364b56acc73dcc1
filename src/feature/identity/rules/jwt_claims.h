/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a token: checking them, and the texts that rules read; see jwt.h */
#ifndef WEIR_FEATURE_IDENTITY_RULES_JWT_CLAIMS_H
#define WEIR_FEATURE_IDENTITY_RULES_JWT_CLAIMS_H

#include "feature/identity/rules/json.h"
#include "feature/identity/rules/jwt.h"

/* Whether `iss`, `aud`, `exp`, `nbf` and `iat` are as the rules want them: VALID, MALFORMED,
 * ISSUER, AUDIENCE, or EXPIRED. Sets from_ns and until_ns where it is VALID or EXPIRED. */
enum weir_token rules_jwt_judge(const struct rules_jwt *jwt, const json_t *payload, uint64_t now_ns,
                                struct rules_claims *claims);

/* Writes the texts of the claims that the rules read. False: they are too long together. */
bool rules_jwt_claims(const struct rules_jwt *jwt, const json_t *payload,
                      struct rules_claims *claims);

#endif
