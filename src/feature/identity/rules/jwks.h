/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of keys, as issuers publish them (RFC 7517, RFC 7518 section 6): {"keys": [...]}, or one
 * key.
 *
 * Taken are keys of the algorithms of jwt_key.h that are meant for signatures: RSA ("n", "e"), EC
 * on P-256 ("x", "y"), oct ("k"). Everything else in the set is ignored, as RFC 7517
 * section 5 asks for, weak keys included: a set is the issuer's, and one odd key in it must not
 * cost the good ones. So is a key whose `use`, `alg` or `kid` is no text: what it is for is not
 * known. But a set with a private key is none: every reader of it could sign.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_JWKS_H
#define WEIR_FEATURE_IDENTITY_RULES_JWKS_H

#include "feature/identity/rules/jwt_key.h"
#include "rules/arena.h"

/* Reads `text` into keys[0..room), secrets and ids into the arena. Returns how many there are; of
 * those beyond `room` it only tells the number. On an error, none. Errors: WEIR_ERR_SYNTAX (no
 * JSON object with keys), WEIR_ERR_UNSUPPORTED (a private key), WEIR_ERR_MEMORY. */
int rules_jwks_read(struct weir_bytes text, struct rules_arena *arena, struct rules_jwt_key *keys,
                    uint32_t room) __attribute__((warn_unused_result));

#endif
