/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of tokens as files have them: JWK sets and PEM. Whatever is taken is a key that can verify,
 * of a size that is allowed, for one algorithm. */
#include <string.h>

#include "feature/identity/rules/jwks.h"
#include "fuzz.h"

#define ROOM 4

static void look(const struct rules_jwt_key *key)
{
    unsigned char digest[32];
    static const char text[] = "a.b";
    struct weir_bytes nothing = {text, 0}, signature = {text, sizeof(text)};
    REQUIRE(key->algorithm < RULES_ALGORITHMS);
    REQUIRE((key->algorithm == RULES_HS256) == (key->public_key == NULL));
    REQUIRE(key->algorithm != RULES_HS256 || key->secret.size >= RULES_SECRET_BYTES_MIN);
    REQUIRE(rules_jwt_key_digest(key, digest) == 0);
    REQUIRE(!rules_jwt_key_verifies(key, nothing, signature));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules_arena arena = {NULL};
    struct rules_jwt_key keys[ROOM], pem = {0};
    struct weir_reason reason;
    char *copy = fuzz_copy(data, size);
    struct weir_bytes text = {copy, size};
    int count = rules_jwks_read(text, &arena, keys, ROOM);
    for (int i = 0; i < count && i < ROOM; i++) {
        look(&keys[i]);
        rules_jwt_key_free(&keys[i]);
    }
    int err = rules_jwt_key_pem(&pem, text, &reason);
    REQUIRE(count < 0 || err < 0); /* JSON is no PEM */
    if (err == 0) {
        look(&pem);
        rules_jwt_key_free(&pem);
    } else {
        REQUIRE(memchr(reason.text, '\0', sizeof(reason.text)) != NULL && reason.text[0] != '\0');
    }
    rules_arena_free(&arena);
    free(copy);
    return 0;
}
