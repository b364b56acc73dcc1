/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens. An input that begins with 's' is a header and, behind the first line's end, claims, which
 * are signed here, so that claims are reached; any other is a token as it is. Whatever comes: no
 * text of a claim leaves its memory, a token that is remembered says what it said, and nothing is
 * valid that was not signed. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/base64url.h"
#include "feature/identity/rules/jwks.h"
#include "feature/identity/rules/jwt.h"
#include "fuzz.h"

#define NOW_NS (UINT64_C(1700000000) * UINT64_C(1000000000))
#define TEXT_MAX 16384

static const char secret[] = "0123456789abcdef0123456789abcdef";

/* Those of the examples in RFC 7515, appendix A.2 and A.3, whose tokens have expired by NOW_NS. */
static const char set[] =
    "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_"
    "wWJcyQoTbji9"
    "k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2"
    "jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdV"
    "MTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDT"
    "W9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\"},{\"kty\":\"EC\",\"kid\":\"e\",\"crv\":\"P-256\",\"x\":"
    "\"f83OJ3"
    "D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
    "]}";

static void open_settings(struct rules_jwt *jwt, struct rules_arena *arena)
{
    static const char *const names[] = {"sub", "a", "a.b", "a.b.c", "list", "http://x/y"};
    memset(jwt, 0, sizeof(*jwt));
    REQUIRE(rules_jwks_read((struct weir_bytes){set, sizeof(set) - 1}, arena, jwt->keys, 2) == 2);
    jwt->keys[2] = (struct rules_jwt_key){.algorithm = RULES_HS256};
    jwt->keys[2].secret.data = rules_arena_copy(arena, secret, 32);
    jwt->keys[2].secret.size = 32;
    jwt->key_count = 3;
    jwt->require_exp = true;
    memset(jwt->algorithms, true, sizeof(jwt->algorithms));
    jwt->audiences[0] = (struct weir_bytes){"api", 3};
    jwt->audience_count = 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        jwt->claims[jwt->claim_count++] = weir_bytes_of(names[i]);
    REQUIRE(rules_jwt_seal(jwt) == 0);
}

/* Header and claims as a token that is signed. Returns its size; 0: it would be too long. */
static size_t sign(const uint8_t *data, size_t size, char token[TEXT_MAX])
{
    const uint8_t *end = memchr(data, '\n', size);
    unsigned char signature[EVP_MAX_MD_SIZE];
    unsigned signature_size = 0;
    if (end == NULL || size > 3 * TEXT_MAX / 4 - 100)
        return 0;
    size_t used = weir_base64url_write(data, (size_t)(end - data), token);
    token[used++] = '.';
    used += weir_base64url_write(end + 1, size - (size_t)(end - data) - 1, token + used);
    REQUIRE(HMAC(EVP_sha256(), secret, 32, (const unsigned char *)token, used, signature,
                 &signature_size) != NULL);
    token[used++] = '.';
    return used + weir_base64url_write(signature, signature_size, token + used);
}

static void look(const struct rules_jwt *jwt, const struct rules_claims *claims)
{
    size_t total = 0;
    REQUIRE(claims->from_ns <= NOW_NS && NOW_NS < claims->until_ns);
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        const struct weir_bytes *value = &claims->values[i];
        total += value->size;
        for (size_t at = 0; value->data != NULL && at < value->size; at++)
            REQUIRE(value->data[at] != '\0');
    }
    REQUIRE(total <= RULES_PAYLOAD_MAX);
}

static void same(const struct rules_jwt *jwt, const struct rules_claims *a,
                 const struct rules_claims *b)
{
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        REQUIRE((a->values[i].data == NULL) == (b->values[i].data == NULL));
        REQUIRE(a->values[i].size == b->values[i].size);
        REQUIRE(a->values[i].data == NULL ||
                memcmp(a->values[i].data, b->values[i].data, a->values[i].size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rules_jwt jwt;
    static struct rules_arena arena;
    static struct weir_tokens *tokens;
    static struct weir_token_counters counters;
    static struct rules_claims first, again;
    char text[TEXT_MAX];
    bool is_signed = size > 0 && data[0] == 's';
    if (tokens == NULL) {
        open_settings(&jwt, &arena);
        REQUIRE(weir_tokens_open(&tokens, &counters) == 0);
    }
    size_t text_size = is_signed ? sign(data + 1, size - 1, text) : size;
    if (text_size == 0 || text_size > TEXT_MAX)
        return 0;
    char *token = fuzz_copy(is_signed ? (const uint8_t *)text : data, text_size);
    enum weir_token result =
        rules_jwt_verify(&jwt, (struct weir_bytes){token, text_size}, NOW_NS, &first);
    REQUIRE(is_signed || result != WEIR_TOKEN_VALID);
    if (result == WEIR_TOKEN_VALID)
        look(&jwt, &first);
    for (int i = 0; i < 2; i++) {
        enum weir_token known = rules_tokens_verify(
            tokens, &jwt, (struct weir_bytes){token, text_size}, NOW_NS, &again);
        REQUIRE(known == result || (result == WEIR_TOKEN_VALID && known == WEIR_TOKEN_CACHED));
        if (result == WEIR_TOKEN_VALID)
            same(&jwt, &first, &again);
    }
    if (result == WEIR_TOKEN_VALID) { /* but not with a signature that is a bit off */
        token[0] ^= 1;
        REQUIRE(rules_jwt_verify(&jwt, (struct weir_bytes){token, text_size}, NOW_NS, &first) !=
                WEIR_TOKEN_VALID);
    }
    free(token);
    return 0;
}
