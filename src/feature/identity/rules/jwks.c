/* SPDX-License-Identifier: Apache-2.0 */
/* see jwks.h */
#include "feature/identity/rules/jwks.h"
#include "core/bytes.h"

#include <string.h>

#include <openssl/crypto.h>

#include "core/text/base64url.h"
#include "feature/identity/rules/json.h"
#include "rules/string_map.h"

/* The longest number of a key, and a byte more, so that too much is seen. */
#define NUMBER_MAX (RULES_RSA_BITS_MAX / 8 + 2)

struct number {
    unsigned char bytes[NUMBER_MAX];
    struct weir_bytes value;
};

static bool read_number(const json_t *jwk, const char *name, struct number *number)
{
    struct weir_bytes text = rules_json_text(jwk, name);
    if (text.size == 0 || text.size > WEIR_BASE64URL_SIZE(NUMBER_MAX))
        return false;
    long size = weir_base64url_read(text, number->bytes);
    number->value = (struct weir_bytes){(const char *)number->bytes, size > 0 ? (size_t)size : 0};
    return size > 0;
}

/* Whether `key_ops`, where it is there, has "verify". */
static bool may_verify(const json_t *jwk)
{
    const json_t *operations = json_object_get(jwk, "key_ops");
    bool may = !operations;
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const char *operation = json_string_value(json_array_get(operations, i));
        may = may || (operation && strcmp(operation, "verify") == 0);
    }
    return may;
}

/* Whether a member is a text where it is there. */
static bool is_text(const json_t *jwk, const char *name)
{
    const json_t *member = json_object_get(jwk, name);
    return !member || json_is_string(member);
}

/* RFC 7518 6.2.2, 6.3.2: the private number of both kinds of pairs. */
static bool is_private(const json_t *jwk)
{
    return json_object_get(jwk, "d") && !weir_bytes_are(rules_json_text(jwk, "kty"), "oct");
}

/* Of what kind a key is; -1: of none that is known here, or not for signatures. */
static int algorithm_of(const json_t *jwk)
{
    static const char *const kinds[RULES_ALGORITHMS] = {"RSA", "EC", "oct"};
    struct weir_bytes kind = rules_json_text(jwk, "kty"), use = rules_json_text(jwk, "use");
    struct weir_bytes algorithm = rules_json_text(jwk, "alg");
    if (!is_text(jwk, "use") || !is_text(jwk, "alg") || !is_text(jwk, "kid"))
        return -1;
    for (int i = 0; i < RULES_ALGORITHMS; i++) {
        bool meant = !algorithm.data || weir_bytes_are(algorithm, rules_algorithm_names[i]);
        if (weir_bytes_are(kind, kinds[i]))
            return meant && (!use.data || weir_bytes_are(use, "sig")) && may_verify(jwk) ? i : -1;
    }
    return -1;
}

static int read_secret(struct rules_arena *arena, struct weir_bytes value,
                       struct rules_jwt_key *key)
{
    if (value.size < RULES_SECRET_BYTES_MIN)
        return WEIR_ERR_RANGE;
    key->algorithm = RULES_HS256;
    key->secret = (struct weir_bytes){rules_arena_copy(arena, value.data, value.size), value.size};
    return key->secret.data ? 0 : WEIR_ERR_MEMORY;
}

/* Errors: WEIR_ERR_RANGE (it will not do), WEIR_ERR_UNSUPPORTED, WEIR_ERR_MEMORY. */
static int read_key(const json_t *jwk, struct rules_arena *arena, struct rules_jwt_key *key)
{
    static const char *const names[RULES_ALGORITHMS][2] = {{"n", "e"}, {"x", "y"}, {"k", "k"}};
    struct number numbers[2];
    int algorithm = algorithm_of(jwk), err = WEIR_ERR_RANGE;
    memset(key, 0, sizeof(*key));
    if (is_private(jwk))
        return WEIR_ERR_UNSUPPORTED;
    if (algorithm < 0 || !read_number(jwk, names[algorithm][0], &numbers[0]) ||
        !read_number(jwk, names[algorithm][1], &numbers[1]))
        return WEIR_ERR_RANGE;
    if (algorithm == RULES_RS256) {
        err = rules_jwt_key_rsa(key, numbers[0].value, numbers[1].value);
    } else if (algorithm == RULES_ES256 && weir_bytes_are(rules_json_text(jwk, "crv"), "P-256")) {
        err = rules_jwt_key_ec(key, numbers[0].value, numbers[1].value);
    } else if (algorithm == RULES_HS256) {
        err = read_secret(arena, numbers[0].value, key);
        OPENSSL_cleanse(numbers, sizeof(numbers));
    }
    struct weir_bytes id = rules_json_text(jwk, "kid");
    if (err == 0 && id.data) {
        key->id = (struct weir_bytes){rules_arena_copy(arena, id.data, id.size), id.size};
        err = key->id.data ? 0 : WEIR_ERR_MEMORY;
    }
    if (err < 0)
        rules_jwt_key_free(key);
    return err;
}

int rules_jwks_read(struct weir_bytes text, struct rules_arena *arena, struct rules_jwt_key *keys,
                    uint32_t room)
{
    json_t *root = rules_json_read(text, UINT32_MAX);
    const json_t *set = json_object_get(root, "keys");
    bool alone = root && !set && json_object_get(root, "kty");
    size_t listed = alone ? 1 : json_array_size(set);
    int count = alone || json_is_array(set) ? 0 : WEIR_ERR_SYNTAX;
    for (size_t i = 0; i < listed && count >= 0; i++) {
        struct rules_jwt_key key;
        int err = read_key(alone ? root : json_array_get(set, i), arena, &key);
        if (err == WEIR_ERR_MEMORY || err == WEIR_ERR_UNSUPPORTED) {
            for (int made = 0; made < count && (uint32_t)made < room; made++)
                rules_jwt_key_free(&keys[made]);
            count = err;
        } else if (err == 0 && (uint32_t)count < room) {
            keys[count++] = key;
        } else if (err == 0) {
            rules_jwt_key_free(&key);
            count++;
        }
    }
    json_decref(root);
    return count;
}
