/* SPDX-License-Identifier: Apache-2.0 */
/* Makes signed JSON Web Tokens for tests: a new key of each algorithm, and a signature under any
 * header and claims. */
#ifndef TOKEN_MAKER_H
#define TOKEN_MAKER_H

#include <openssl/types.h>
#include <stddef.h>

#define TOKEN_TEXT_MAX 16384
#define TOKEN_SET_MAX 4096

enum token_algorithm { TOKEN_RS256, TOKEN_ES256, TOKEN_HS256 };

struct token_maker {
    EVP_PKEY *rsa, *ec;
    unsigned char secret[32];
};

void token_maker_open(struct token_maker *maker);
void token_maker_close(struct token_maker *maker);

/* Its keys as a JWK set, with the identifiers "rsa", "ec" and "hs", or without any. */
void token_maker_set(const struct token_maker *maker, int with_ids, char set[TOKEN_SET_MAX]);

/* The public key (`ec` or `rsa`) as PEM. */
void token_maker_pem(EVP_PKEY *key, char pem[TOKEN_SET_MAX]);

/* header.claims.signature; all three as given, the signature over the two before it. Returns
 * `token`. */
const char *token_make(const struct token_maker *maker, enum token_algorithm algorithm,
                       const char *header, const char *claims, char token[TOKEN_TEXT_MAX]);

/* The same with the header that the algorithm has: {"alg":"RS256","kid":"rsa"}. */
const char *token_of(const struct token_maker *maker, enum token_algorithm algorithm,
                     const char *claims, char token[TOKEN_TEXT_MAX]);

/* Header and claims, with these bytes for a signature. */
const char *token_with(const char *header, const char *claims, const unsigned char *signature,
                       size_t size, char token[TOKEN_TEXT_MAX]);

/* The signature's bytes; returns how many. */
size_t token_signature(const struct token_maker *maker, enum token_algorithm algorithm,
                       const char *text, size_t size, unsigned char signature[512]);

#endif
