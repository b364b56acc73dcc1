/* SPDX-License-Identifier: Apache-2.0 */
/* The secret keys that puzzles and tokens are signed with, and the signature itself.
 *
 * A secret file holds one key a line; empty lines and lines that begin with `#` do not count. A
 * key is the bytes of its line, without white space around it. The first key signs. All keys
 * verify, so a new key is put first and the old one stays until what it signed has expired. A key
 * is known by an id, the first bytes of a SHA-256 over it, so the order of lines plays no part.
 *
 * The signature is HMAC-SHA256 (RFC 2104, FIPS 180-4) over one byte that says what is signed, the
 * client's network, and the signed bytes. The states of SHA-256 behind the two pads of a key are
 * kept, so that a signature of a token costs 3 blocks. OpenSSL's newer interface (EVP) allocates on
 * every call, and a token is verified on the path of a request; the older one is used.
 *
 * The network of a client is its IPv4 address (/32) or the first 64 bits of its IPv6 address, which
 * one subscriber has as a rule.
 *
 * Memory: 232 bytes a key. Threads: read only after weir_challenge_keys_read.
 */
#ifndef WEIR_FEATURE_CHALLENGE_KEYS_H
#define WEIR_FEATURE_CHALLENGE_KEYS_H

#include <openssl/sha.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

#include "core/text/address.h"

#define WEIR_CHALLENGE_KEYS_MAX 8     /* one that signs, one that is next, and those that expire */
#define WEIR_CHALLENGE_SECRET_MIN 32  /* bytes: as many as the signature has */
#define WEIR_CHALLENGE_SECRET_MAX 512 /* bytes of one line */
#define WEIR_CHALLENGE_KEY_ID 6       /* bytes; with it, tokens have no bits left over in base64 */
#define WEIR_CHALLENGE_MAC 32         /* bytes of a signature */

struct weir_challenge_key {
    unsigned char id[WEIR_CHALLENGE_KEY_ID];
    SHA256_CTX inner, outer; /* behind the pads */
};

struct weir_challenge_keys {
    uint32_t count; /* at least 1 once read */
    struct weir_challenge_key keys[WEIR_CHALLENGE_KEYS_MAX];
};

/* What is signed: a signature of the one never holds for the other. */
enum weir_challenge_kind { WEIR_CHALLENGE_PUZZLE = 1, WEIR_CHALLENGE_TOKEN = 2 };

/* Reads the text of a secret file. *line is the line of the first error. Errors: WEIR_ERR_SYNTAX (a
 * key is too short or too long, there are too many, one comes twice, or there is none; then *line
 * is 0 and `reason` says it). */
int weir_challenge_keys_read(struct weir_challenge_keys *keys, struct weir_bytes text,
                             uint32_t *line, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The key with this id; NULL: there is none. */
const struct weir_challenge_key *weir_challenge_key_find(const struct weir_challenge_keys *keys,
                                                         const unsigned char *id);

/* Signs bytes for a client. */
void weir_challenge_sign(const struct weir_challenge_key *key, enum weir_challenge_kind kind,
                         const struct weir_address *client, const unsigned char *bytes, size_t size,
                         unsigned char mac[WEIR_CHALLENGE_MAC]);

/* Whether a signature is right. The time it takes does not depend on how much of it is. */
bool weir_challenge_verify(const struct weir_challenge_key *key, enum weir_challenge_kind kind,
                           const struct weir_address *client, const unsigned char *bytes,
                           size_t size, const unsigned char *mac);

#endif
