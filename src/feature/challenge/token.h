/* SPDX-License-Identifier: Apache-2.0 */
/* The token of a client that has solved a puzzle: the value of its cookie.
 *
 *   byte 0     version, 1
 *   1 .. 6     id of the key (keys.h)
 *   7          difficulty of the puzzle that was solved, in bits
 *   8 .. 15    when it expires: seconds since 1970, big-endian
 *   16 .. 47   HMAC-SHA256 over the client's network and bytes 0 to 15
 *
 * as base64url (RFC 4648 section 5) without padding: 64 characters, with no bits left over. The
 * client's network is signed and is not in the token. Nothing is kept of a token: it holds until it
 * expires or its key is removed.
 *
 * A token that expires later than a life from now is refused, so that a shorter `life` in the rules
 * holds for all tokens at once. WEIR_CHALLENGE_SKEW_S is granted for clocks of several nodes.
 *
 * Threads: pure. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_TOKEN_H
#define WEIR_FEATURE_CHALLENGE_TOKEN_H

#include "feature/challenge/keys.h"

#define WEIR_CHALLENGE_TOKEN_BYTES 48
#define WEIR_CHALLENGE_TOKEN_SIZE 64 /* characters */
#define WEIR_CHALLENGE_SKEW_S 60

/* What became of a token or a solution. */
enum weir_challenge_verdict {
    WEIR_CHALLENGE_GOOD,
    WEIR_CHALLENGE_MALFORMED,   /* not the text of one */
    WEIR_CHALLENGE_UNKNOWN_KEY, /* signed with a key that is not in the secret file */
    WEIR_CHALLENGE_FORGED,      /* the signature is wrong: forged, or of another network */
    WEIR_CHALLENGE_EXPIRED,     /* too old, or from the future */
    WEIR_CHALLENGE_UNSOLVED,    /* a solution: its hash has too few zero bits */
    WEIR_CHALLENGE_VERDICTS
};

/* "expired", for metrics and logs. */
const char *weir_challenge_verdict_name(enum weir_challenge_verdict verdict);

/* Makes a token that expires at `expires_s`. */
void weir_challenge_token_make(const struct weir_challenge_keys *keys,
                               const struct weir_address *client, uint8_t difficulty,
                               uint64_t expires_s, char text[WEIR_CHALLENGE_TOKEN_SIZE]);

/* Reads a token of any bytes. `life_s` is the longest that one is made for. On GOOD, *difficulty is
 * that of its puzzle. */
enum weir_challenge_verdict weir_challenge_token_check(const struct weir_challenge_keys *keys,
                                                       const struct weir_address *client,
                                                       uint64_t now_s, uint64_t life_s,
                                                       struct weir_bytes text, uint8_t *difficulty);

#endif
