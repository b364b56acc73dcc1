/* SPDX-License-Identifier: Apache-2.0 */
/* see puzzle.h */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "feature/challenge/puzzle.h"

#include <string.h>

#include "core/text/base64url.h"

#define VERSION 1

enum { AT_VERSION = 0, AT_KEY = 1, AT_DIFFICULTY = 7, AT_MADE = 8, AT_NONCE = 16, AT_MAC = 31 };
_Static_assert(AT_KEY + WEIR_CHALLENGE_KEY_ID == AT_DIFFICULTY, "layout of a puzzle");
_Static_assert(AT_NONCE + WEIR_CHALLENGE_NONCE == AT_MAC, "layout of a puzzle");
_Static_assert(AT_MAC + WEIR_CHALLENGE_MAC == WEIR_CHALLENGE_PUZZLE_BYTES, "layout of a puzzle");
_Static_assert(WEIR_BASE64URL_SIZE(WEIR_CHALLENGE_PUZZLE_BYTES) == WEIR_CHALLENGE_PUZZLE_SIZE,
               "size of a puzzle");

void weir_challenge_puzzle_make(const struct weir_challenge_keys *keys,
                                const struct weir_address *client, uint8_t difficulty,
                                uint64_t now_s, const unsigned char nonce[WEIR_CHALLENGE_NONCE],
                                char text[WEIR_CHALLENGE_PUZZLE_SIZE])
{
    const struct weir_challenge_key *key = &keys->keys[0];
    unsigned char bytes[WEIR_CHALLENGE_PUZZLE_BYTES];
    bytes[AT_VERSION] = VERSION;
    memcpy(bytes + AT_KEY, key->id, sizeof key->id);
    bytes[AT_DIFFICULTY] = difficulty;
    weir_put64(bytes + AT_MADE, now_s);
    memcpy(bytes + AT_NONCE, nonce, WEIR_CHALLENGE_NONCE);
    weir_challenge_sign(key, WEIR_CHALLENGE_PUZZLE, client, bytes, AT_MAC, bytes + AT_MAC);
    (void)weir_base64url_write(bytes, sizeof bytes, text);
}

/* Digits without leading zeros: one text for one number. */
static bool is_solution(struct weir_bytes text)
{
    if (text.size == 0 || text.size > WEIR_CHALLENGE_SOLUTION_MAX ||
        (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return true;
}

static unsigned zero_bits(const unsigned char digest[SHA256_DIGEST_LENGTH])
{
    unsigned count = 0;
    for (size_t i = 0; i < SHA256_DIGEST_LENGTH; i++) {
        if (digest[i] != 0)
            return count + (unsigned)__builtin_clz(digest[i]) - 24;
        count += 8;
    }
    return count;
}

static bool solves(struct weir_bytes puzzle, struct weir_bytes solution, unsigned difficulty)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, puzzle.data, puzzle.size);
    SHA256_Update(&context, ":", 1);
    SHA256_Update(&context, solution.data, solution.size);
    SHA256_Final(digest, &context);
    return zero_bits(digest) >= difficulty;
}

enum weir_challenge_verdict weir_challenge_puzzle_check(const struct weir_challenge_keys *keys,
                                                        const struct weir_address *client,
                                                        uint64_t now_s, struct weir_bytes puzzle,
                                                        struct weir_bytes solution,
                                                        struct weir_challenge_solved *solved)
{
    unsigned char bytes[WEIR_CHALLENGE_PUZZLE_BYTES];
    if (puzzle.size != WEIR_CHALLENGE_PUZZLE_SIZE || weir_base64url_read(puzzle, bytes) < 0 ||
        bytes[AT_VERSION] != VERSION || !is_solution(solution))
        return WEIR_CHALLENGE_MALFORMED;
    const struct weir_challenge_key *key = weir_challenge_key_find(keys, bytes + AT_KEY);
    if (!key)
        return WEIR_CHALLENGE_UNKNOWN_KEY;
    if (!weir_challenge_verify(key, WEIR_CHALLENGE_PUZZLE, client, bytes, AT_MAC, bytes + AT_MAC))
        return WEIR_CHALLENGE_FORGED;
    uint64_t made_s = weir_get64(bytes + AT_MADE);
    bool old = now_s >= made_s && now_s - made_s >= WEIR_CHALLENGE_PUZZLE_LIFE_S;
    if (old || (made_s > now_s && made_s - now_s > WEIR_CHALLENGE_SKEW_S))
        return WEIR_CHALLENGE_EXPIRED;
    if (!solves(puzzle, solution, bytes[AT_DIFFICULTY]))
        return WEIR_CHALLENGE_UNSOLVED;
    solved->difficulty = bytes[AT_DIFFICULTY];
    memcpy(solved->nonce, bytes + AT_NONCE, WEIR_CHALLENGE_NONCE);
    return WEIR_CHALLENGE_GOOD;
}
