/* SPDX-License-Identifier: Apache-2.0 */
/* see token.h */
#include "feature/challenge/token.h"

#include <string.h>

#include "core/text/base64url.h"

#define VERSION 1

enum { AT_VERSION = 0, AT_KEY = 1, AT_DIFFICULTY = 7, AT_EXPIRES = 8, AT_MAC = 16 };
_Static_assert(AT_KEY + WEIR_CHALLENGE_KEY_ID == AT_DIFFICULTY, "layout of a token");
_Static_assert(AT_MAC + WEIR_CHALLENGE_MAC == WEIR_CHALLENGE_TOKEN_BYTES, "layout of a token");
_Static_assert(WEIR_BASE64URL_SIZE(WEIR_CHALLENGE_TOKEN_BYTES) == WEIR_CHALLENGE_TOKEN_SIZE,
               "size of a token");

const char *weir_challenge_verdict_name(enum weir_challenge_verdict verdict)
{
    static const char *const names[WEIR_CHALLENGE_VERDICTS] = {
        [WEIR_CHALLENGE_GOOD] = "good",
        [WEIR_CHALLENGE_MALFORMED] = "malformed",
        [WEIR_CHALLENGE_UNKNOWN_KEY] = "unknown_key",
        [WEIR_CHALLENGE_FORGED] = "forged",
        [WEIR_CHALLENGE_EXPIRED] = "expired",
        [WEIR_CHALLENGE_UNSOLVED] = "unsolved",
    };
    return names[verdict];
}

void weir_challenge_token_make(const struct weir_challenge_keys *keys,
                               const struct weir_address *client, uint8_t difficulty,
                               uint64_t expires_s, char text[WEIR_CHALLENGE_TOKEN_SIZE])
{
    const struct weir_challenge_key *key = &keys->keys[0];
    unsigned char bytes[WEIR_CHALLENGE_TOKEN_BYTES];
    bytes[AT_VERSION] = VERSION;
    memcpy(bytes + AT_KEY, key->id, sizeof key->id);
    bytes[AT_DIFFICULTY] = difficulty;
    weir_put64(bytes + AT_EXPIRES, expires_s);
    weir_challenge_sign(key, WEIR_CHALLENGE_TOKEN, client, bytes, AT_MAC, bytes + AT_MAC);
    (void)weir_base64url_write(bytes, sizeof bytes, text);
}

enum weir_challenge_verdict weir_challenge_token_check(const struct weir_challenge_keys *keys,
                                                       const struct weir_address *client,
                                                       uint64_t now_s, uint64_t life_s,
                                                       struct weir_bytes text, uint8_t *difficulty)
{
    unsigned char bytes[WEIR_CHALLENGE_TOKEN_BYTES];
    if (text.size != WEIR_CHALLENGE_TOKEN_SIZE || weir_base64url_read(text, bytes) < 0 ||
        bytes[AT_VERSION] != VERSION)
        return WEIR_CHALLENGE_MALFORMED;
    const struct weir_challenge_key *key = weir_challenge_key_find(keys, bytes + AT_KEY);
    if (!key)
        return WEIR_CHALLENGE_UNKNOWN_KEY;
    if (!weir_challenge_verify(key, WEIR_CHALLENGE_TOKEN, client, bytes, AT_MAC, bytes + AT_MAC))
        return WEIR_CHALLENGE_FORGED;
    uint64_t expires_s = weir_get64(bytes + AT_EXPIRES);
    if (expires_s <= now_s || expires_s - now_s > life_s + WEIR_CHALLENGE_SKEW_S)
        return WEIR_CHALLENGE_EXPIRED;
    *difficulty = bytes[AT_DIFFICULTY];
    return WEIR_CHALLENGE_GOOD;
}
