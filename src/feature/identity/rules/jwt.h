/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Web Tokens: claims about a caller, accepted only with the signature of an issuer that the
 * rules name (RFC 7519, as JWS Compact Serialization, RFC 7515; what goes wrong: RFC 8725).
 *
 *   base64url(header) . base64url(claims) . base64url(signature)
 *
 * A token is taken apart and judged in this order, so that what costs most comes last:
 *
 *   size, three parts of strict base64url, two JSON objects       MALFORMED
 *   `alg` is one of the rules' algorithms, some key is for it     KEY
 *     and has the token's `kid`
 *   `iss`, `aud`                                                  ISSUER, AUDIENCE
 *   `exp`, `nbf`, `iat`                                           EXPIRED
 *   the signature                                                 SIGNATURE
 *
 * Nothing of a token is used before all of that holds. Of its header only `alg`, `kid` and `crit`
 * are looked at: a key, an address of keys or a certificate in it (`jwk`, `jku`, `x5u`, `x5c`) is
 * whatever the sender likes. `crit` names what weir does not know, so such a token is malformed.
 *
 * Key identifiers only choose among the loaded keys. Keys without one are for tokens with any. A
 * token is tried with RULES_JWT_TRIES_MAX keys at most.
 *
 * Claims. Rules name those that they read ("sub", "realm_access.roles"); of a name with dots the
 * whole is looked for first, then its first part in the object, and so on, because some issuers
 * have dots in names. A text is its bytes, a whole number its decimal digits, a boolean "true" or
 * "false", a list of texts its elements separated by commas (with "%2C" for a comma in one, and
 * "%25" for a percent sign: a list of one element never reads as one of two). Anything else counts
 * as absent.
 *
 * Time is that of the request, on weir's one timeline. It is checked for each request,
 * also where the rest is remembered (tokens.h).
 *
 * Memory: verifying allocates some KiB for its time. Threads: settings are immutable.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_JWT_H
#define WEIR_FEATURE_IDENTITY_RULES_JWT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#include "feature/identity/rules/jwt_key.h"
#include "feature/identity/rules/tokens.h"
#include "rules/request.h"

#define RULES_TOKEN_MAX 8192   /* bytes: what servers accept as one header */
#define RULES_PAYLOAD_MAX 6144 /* decoded */
#define RULES_HEADER_VALUES_MAX 64
#define RULES_PAYLOAD_VALUES_MAX 512 /* names of 150 groups have 6 KiB where they are UUIDs */
#define RULES_CLAIMS_MAX 32          /* that one rules file names */
#define RULES_CLAIM_NAME_MAX 124     /* "jwt." and it are an attribute's name */
#define RULES_JWT_KEYS_MAX 64        /* of one rules file */
#define RULES_JWT_TRIES_MAX 4        /* keys that one token is tried with */
#define RULES_JWT_SOURCES_MAX 4      /* of `from` */
#define RULES_JWT_NAMES_MAX 16       /* of `issuer`, of `audience` */
#define RULES_CLAIM_NONE UINT8_MAX

/* `jwt` of a rules file. */
struct rules_jwt {
    uint16_t sources[RULES_JWT_SOURCES_MAX]; /* attributes; the first with a valid token counts */
    bool schemes[RULES_JWT_SOURCES_MAX];     /* only behind "Bearer " */
    uint8_t source_count, key_count;
    uint8_t issuer_count, audience_count; /* 0: any */
    bool require_exp;
    bool algorithms[RULES_ALGORITHMS]; /* allowed */
    struct weir_bytes issuers[RULES_JWT_NAMES_MAX], audiences[RULES_JWT_NAMES_MAX];
    uint64_t leeway_ns, max_age_ns; /* max_age_ns 0: none */
    struct rules_jwt_key keys[RULES_JWT_KEYS_MAX];

    /* The claims that the rules read, by numbers. */
    struct weir_bytes claims[RULES_CLAIMS_MAX];
    uint8_t claim_count;
    uint8_t user, org, plan;               /* claims that identify; RULES_CLAIM_NONE */
    uint8_t claim_of[WEIR_ATTRIBUTES_MAX]; /* of attributes "jwt.NAME": its number and 1; else 0 */

    uint64_t fingerprint; /* of all that what is known of a token depends on */
};

/* What a valid token says. */
struct rules_claims {
    uint64_t from_ns, until_ns;                 /* when it is valid: [from, until) */
    struct weir_bytes values[RULES_CLAIMS_MAX]; /* by number; data == NULL: absent */
    uint32_t used;                              /* of texts */
    char texts[RULES_PAYLOAD_MAX];
};

/* Whether a token is valid at now_ns; then `claims` is filled. For EXPIRED it has from_ns and
 * until_ns; for all others it is undefined. */
enum weir_token rules_jwt_verify(const struct rules_jwt *jwt, struct weir_bytes token,
                                 uint64_t now_ns, struct rules_claims *claims);

/* The token in the value of a source; data == NULL: there is none. */
struct weir_bytes rules_jwt_cut(const struct rules_jwt *jwt, uint32_t source,
                                struct weir_bytes value);

/* To be called once all is set: makes the fingerprint. Errors: WEIR_ERR_MEMORY. */
int rules_jwt_seal(struct rules_jwt *jwt) __attribute__((warn_unused_result));

void rules_jwt_free(struct rules_jwt *jwt);

#endif
