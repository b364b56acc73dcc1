/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's memory of the tokens that it has seen, so that a caller's next request costs a hash
 * and no signature.
 *
 * Known by the SHA-256 of a token, never by the token, which is a credential: what its claims said,
 * until it expires. Expiry is checked at every use, to the second. An entry also
 * has the fingerprint of the settings it was made under (keys, audience, claims that are read, …):
 * a reload that changes them makes it worthless, a reload that does not leaves it.
 *
 *   good   WEIR_TOKENS_MAX entries of 512 bytes in sets of 8, 2 MiB; of a set that is full the one
 *          expired or longest unused goes. Tokens whose claims are longer are verified each time.
 *   bad    as many entries of 56 bytes, of which the next takes its place. It remembers why for
 *          a minute, so that a bad token that is repeated costs a hash. Different bad tokens cost a
 *          verification each, and cannot push good ones out.
 *
 * Where memory for it is reserved, only what is used of it is touched. Finding allocates nothing.
 * Threads: one owner; counters may be read by any.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_TOKENS_H
#define WEIR_FEATURE_IDENTITY_RULES_TOKENS_H

#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_TOKENS_MAX 4096

/* What became of a token. */
enum weir_token {
    WEIR_TOKEN_VALID, /* its signature was verified */
    WEIR_TOKEN_MALFORMED,
    WEIR_TOKEN_KEY, /* no key for its algorithm and identifier */
    WEIR_TOKEN_ISSUER,
    WEIR_TOKEN_AUDIENCE,
    WEIR_TOKEN_EXPIRED, /* or not yet valid */
    WEIR_TOKEN_SIGNATURE,
    WEIR_TOKEN_CACHED, /* valid, and known to be */
    WEIR_TOKEN_RESULTS,
};

/* "valid", "malformed", … as in metrics. */
extern const char *const weir_token_names[WEIR_TOKEN_RESULTS];

struct weir_token_counters {
    _Atomic uint64_t results[WEIR_TOKEN_RESULTS];
};

struct weir_tokens;

/* `counters` is borrowed. Errors: WEIR_ERR_MEMORY. */
int weir_tokens_open(struct weir_tokens **tokens, struct weir_token_counters *counters)
    __attribute__((warn_unused_result));
void weir_tokens_close(struct weir_tokens *tokens);

/* For the rules: as rules_jwt_verify (jwt.h), but remembered; `tokens` may be NULL. The claims'
 * texts live as long as `claims` and until this is called again. */
struct rules_jwt;
struct rules_claims;
enum weir_token rules_tokens_verify(struct weir_tokens *tokens, const struct rules_jwt *jwt,
                                    struct weir_bytes token, uint64_t now_ns,
                                    struct rules_claims *claims);

#endif
