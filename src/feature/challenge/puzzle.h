/* SPDX-License-Identifier: Apache-2.0 */
/* A proof of work (Dwork and Naor 1992; Back, "Hashcash", 2002): a puzzle that is cheap to make and
 * to verify, and that takes 2^difficulty hashes on average to solve.
 *
 *   byte 0     version, 1
 *   1 .. 6     id of the key (keys.h)
 *   7          difficulty in bits, 1 to WEIR_CHALLENGE_DIFFICULTY_MAX
 *   8 .. 15    when it was made: seconds since 1970, big-endian
 *   16 .. 30   a nonce, random
 *   31 .. 62   HMAC-SHA256 over the client's network and bytes 0 to 30
 *
 * as base64url without padding: 84 characters, with no bits left over. A solution is a decimal
 * number without leading zeros for which SHA-256(puzzle ":" solution), over the texts, begins with
 * `difficulty` zero bits. The puzzle fills the first block of SHA-256, so a solver computes one
 * block for each try.
 *
 * The signature binds a puzzle to the client's network, so the server keeps nothing until the
 * solution comes. It then has to keep the nonce for the rest of the puzzle's life, to take a
 * solution once.
 *
 * Threads: pure. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_PUZZLE_H
#define WEIR_FEATURE_CHALLENGE_PUZZLE_H

#include "feature/challenge/token.h"

#define WEIR_CHALLENGE_PUZZLE_BYTES 63
#define WEIR_CHALLENGE_PUZZLE_SIZE 84 /* characters */
#define WEIR_CHALLENGE_NONCE 15       /* bytes */

/* A minute of a telephone, about; longer puzzles would keep out people, and few machines. */
#define WEIR_CHALLENGE_DIFFICULTY_MAX 26
#define WEIR_CHALLENGE_SOLUTION_MAX 16 /* digits: below 2^53, which JavaScript counts exactly */

/* How long a puzzle may take to solve; a solution is remembered as long. */
#define WEIR_CHALLENGE_PUZZLE_LIFE_S 600

/* Makes a puzzle at `now_s`, from a nonce that no other puzzle has. */
void weir_challenge_puzzle_make(const struct weir_challenge_keys *keys,
                                const struct weir_address *client, uint8_t difficulty,
                                uint64_t now_s, const unsigned char nonce[WEIR_CHALLENGE_NONCE],
                                char text[WEIR_CHALLENGE_PUZZLE_SIZE]);

/* What a solved puzzle was. */
struct weir_challenge_solved {
    uint8_t difficulty;
    unsigned char nonce[WEIR_CHALLENGE_NONCE];
};

/* Checks a puzzle of any bytes and its solution. *solved is written on GOOD. The hash is computed
 * last: a client that forges puzzles costs no more than a signature. */
enum weir_challenge_verdict weir_challenge_puzzle_check(const struct weir_challenge_keys *keys,
                                                        const struct weir_address *client,
                                                        uint64_t now_s, struct weir_bytes puzzle,
                                                        struct weir_bytes solution,
                                                        struct weir_challenge_solved *solved);

#endif
