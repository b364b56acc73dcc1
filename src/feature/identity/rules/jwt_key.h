/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that tokens are verified with.
 *
 *   RS256  RSASSA-PKCS1-v1_5 with SHA-256; keys of 2048 to 8192 bits         RFC 7518 3.3
 *   ES256  ECDSA on P-256 with SHA-256; a signature is r | s, 32 bytes each  RFC 7518 3.4
 *   HS256  HMAC with SHA-256; secrets of 32 bytes at least                   RFC 7518 3.2
 *
 * A key is for one algorithm for all its life, whatever a token says: a public key cannot become
 * the secret of an HMAC. OpenSSL does the arithmetic, through EVP. (Debian's libjwt 1.10.2 compares
 * signatures of HMACs with strcmp, CVE-2024-25189, so it is not used.)
 *
 * Memory: OpenSSL's own for public keys, some KiB each; secrets are the caller's. Verifying
 * allocates, some KiB for its time. Threads: immutable once made; any number may verify.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_JWT_KEY_H
#define WEIR_FEATURE_IDENTITY_RULES_JWT_KEY_H

#include <stdbool.h>

#include <openssl/types.h>
#include <weir/bytes.h>
#include <weir/error.h>

#define RULES_RSA_BITS_MIN 2048
#define RULES_RSA_BITS_MAX 8192 /* verifying takes 1/4 ms; larger keys are not in use */
#define RULES_SECRET_BYTES_MIN 32
#define RULES_SIGNATURE_MAX (RULES_RSA_BITS_MAX / 8)

enum rules_algorithm { RULES_RS256, RULES_ES256, RULES_HS256, RULES_ALGORITHMS };

/* What is wrong with one in a file, to follow the file's name. */
#define RULES_JWT_KEY_IS_PRIVATE                                                                   \
    "is a private key; weir needs only the public one, and should have no other"

/* As in tokens. */
extern const char *const rules_algorithm_names[RULES_ALGORITHMS];

struct rules_jwt_key {
    EVP_PKEY *public_key;     /* RS256, ES256 */
    struct weir_bytes secret; /* HS256 */
    struct weir_bytes id;     /* kid; data == NULL: none */
    uint8_t algorithm;
};

/* The key of a PEM file: one public key or one certificate, whose key counts and nothing else of
 * it. Errors: WEIR_ERR_SYNTAX (no PEM, several, a private key), WEIR_ERR_RANGE (a key of another
 * kind or size); `reason` continues a sentence that begins with the file's name. */
int rules_jwt_key_pem(struct rules_jwt_key *key, struct weir_bytes text, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Keys by their numbers, big-endian. Errors: WEIR_ERR_RANGE (too small, too large, not on the
 * curve), WEIR_ERR_MEMORY. */
int rules_jwt_key_rsa(struct rules_jwt_key *key, struct weir_bytes modulus,
                      struct weir_bytes exponent) __attribute__((warn_unused_result));
int rules_jwt_key_ec(struct rules_jwt_key *key, struct weir_bytes x, struct weir_bytes y)
    __attribute__((warn_unused_result));

/* Whether `signature` is this key's of `text`. In constant time where the key is a secret. */
bool rules_jwt_key_verifies(const struct rules_jwt_key *key, struct weir_bytes text,
                            struct weir_bytes signature);

/* SHA-256 over everything in which keys differ. Errors: WEIR_ERR_MEMORY. */
int rules_jwt_key_digest(const struct rules_jwt_key *key, unsigned char digest[32])
    __attribute__((warn_unused_result));

void rules_jwt_key_free(struct rules_jwt_key *key);

#endif
