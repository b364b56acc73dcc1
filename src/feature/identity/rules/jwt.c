/* SPDX-License-Identifier: Apache-2.0 */
/* see jwt.h */
#define OPENSSL_SUPPRESS_DEPRECATED /* see keys.c */
#include "feature/identity/rules/jwt.h"

#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

#include "core/bytes.h"
#include "core/text/base64url.h"
#include "feature/identity/rules/json.h"
#include "feature/identity/rules/jwt_claims.h"

/* A token in its parts, as sent. */
struct parts {
    struct weir_bytes header, payload, signature;
    struct weir_bytes text; /* header.payload: what is signed */
};

static bool cut(struct weir_bytes token, struct parts *parts)
{
    if (token.size > RULES_TOKEN_MAX)
        return false;
    const char *first = memchr(token.data, '.', token.size), *end = token.data + token.size;
    if (!first)
        return false;
    const char *second = memchr(first + 1, '.', (size_t)(end - first - 1));
    if (!second)
        return false;
    parts->header = (struct weir_bytes){token.data, (size_t)(first - token.data)};
    parts->payload = (struct weir_bytes){first + 1, (size_t)(second - first - 1)};
    parts->signature = (struct weir_bytes){second + 1, (size_t)(end - second - 1)};
    parts->text = (struct weir_bytes){token.data, (size_t)(second - token.data)};
    return true; /* a third dot is no digit of base64url */
}

/* The object that a part is; NULL: it is none, or has more than `most` values. */
static json_t *read_object(struct weir_bytes part, uint32_t most)
{
    unsigned char bytes[RULES_PAYLOAD_MAX];
    if (part.size > WEIR_BASE64URL_SIZE(RULES_PAYLOAD_MAX))
        return NULL;
    long size = weir_base64url_read(part, bytes);
    return size > 0 ? rules_json_read((struct weir_bytes){(const char *)bytes, (size_t)size}, most)
                    : NULL;
}

/* --- Which keys may have signed it ------------------------------------------------------------ */

struct candidates {
    const struct rules_jwt_key *keys[RULES_JWT_TRIES_MAX];
    uint32_t count;
};

static enum weir_token find_keys(const struct rules_jwt *jwt, int algorithm, struct weir_bytes id,
                                 struct candidates *candidates)
{
    candidates->count = 0;
    for (uint8_t i = 0; i < jwt->key_count; i++) {
        const struct rules_jwt_key *key = &jwt->keys[i];
        bool named = id.data && key->id.data;
        if (key->algorithm != algorithm || (named && !weir_bytes_equal(key->id, id)))
            continue;
        if (candidates->count == RULES_JWT_TRIES_MAX)
            return WEIR_TOKEN_KEY; /* a token that does not say which of many */
        candidates->keys[candidates->count++] = key;
    }
    return candidates->count > 0 ? WEIR_TOKEN_VALID : WEIR_TOKEN_KEY;
}

static enum weir_token read_header(const struct rules_jwt *jwt, struct weir_bytes part,
                                   struct candidates *candidates)
{
    enum weir_token result = WEIR_TOKEN_MALFORMED;
    json_t *header = read_object(part, RULES_HEADER_VALUES_MAX);
    struct weir_bytes algorithm = rules_json_text(header, "alg");
    struct weir_bytes id = rules_json_text(header, "kid");
    bool odd = (!id.data && json_object_get(header, "kid")) || json_object_get(header, "crit");
    if (algorithm.data && !odd) {
        result = WEIR_TOKEN_KEY;
        for (int i = 0; i < RULES_ALGORITHMS; i++) {
            struct weir_bytes name = {rules_algorithm_names[i], strlen(rules_algorithm_names[i])};
            if (jwt->algorithms[i] && weir_bytes_equal(algorithm, name))
                result = find_keys(jwt, i, id, candidates);
        }
    }
    json_decref(header);
    return result;
}

/* --- The whole -------------------------------------------------------------------------------- */

static bool is_signed(const struct candidates *candidates, const struct parts *parts,
                      struct weir_bytes signature)
{
    for (uint32_t i = 0; i < candidates->count; i++)
        if (rules_jwt_key_verifies(candidates->keys[i], parts->text, signature))
            return true;
    return false;
}

enum weir_token rules_jwt_verify(const struct rules_jwt *jwt, struct weir_bytes token,
                                 uint64_t now_ns, struct rules_claims *claims)
{
    struct parts parts;
    struct candidates candidates = {{NULL}, 0};
    unsigned char bytes[RULES_SIGNATURE_MAX];
    if (!cut(token, &parts) || parts.signature.size > WEIR_BASE64URL_SIZE(RULES_SIGNATURE_MAX))
        return WEIR_TOKEN_MALFORMED;
    long size = weir_base64url_read(parts.signature, bytes);
    if (size <= 0)
        return WEIR_TOKEN_MALFORMED;
    enum weir_token result = read_header(jwt, parts.header, &candidates);
    if (result != WEIR_TOKEN_VALID)
        return result;
    json_t *payload = read_object(parts.payload, RULES_PAYLOAD_VALUES_MAX);
    result = payload ? rules_jwt_judge(jwt, payload, now_ns, claims) : WEIR_TOKEN_MALFORMED;
    if (result == WEIR_TOKEN_VALID &&
        !is_signed(&candidates, &parts, (struct weir_bytes){(const char *)bytes, (size_t)size}))
        result = WEIR_TOKEN_SIGNATURE;
    if (result == WEIR_TOKEN_VALID && !rules_jwt_claims(jwt, payload, claims))
        result = WEIR_TOKEN_MALFORMED;
    json_decref(payload);
    return result;
}

struct weir_bytes rules_jwt_cut(const struct rules_jwt *jwt, uint32_t source,
                                struct weir_bytes value)
{
    static const char scheme[] = "Bearer ";
    size_t size = sizeof(scheme) - 1;
    if (!value.data || value.size == 0)
        return (struct weir_bytes){NULL, 0};
    if (value.size < size || strncasecmp(value.data, scheme, size) != 0)
        return jwt->schemes[source] ? (struct weir_bytes){NULL, 0} : value;
    while (size < value.size && value.data[size] == ' ') /* RFC 9110 11.4: one or more */
        size++;
    return (struct weir_bytes){value.data + size, value.size - size};
}

/* --- Books ------------------------------------------------------------------------------------ */

static void add(SHA256_CTX *context, struct weir_bytes text)
{
    SHA256_Update(context, &text.size, sizeof(text.size));
    SHA256_Update(context, text.data, text.size);
}

int rules_jwt_seal(struct rules_jwt *jwt)
{
    unsigned char digest[32];
    SHA256_CTX context;
    SHA256_Init(&context);
    for (uint8_t i = 0; i < jwt->key_count; i++) {
        int err = rules_jwt_key_digest(&jwt->keys[i], digest);
        if (err < 0)
            return err;
        SHA256_Update(&context, digest, sizeof(digest));
    }
    const uint8_t counts[] = {jwt->key_count, jwt->issuer_count, jwt->audience_count,
                              jwt->claim_count, jwt->require_exp};
    SHA256_Update(&context, counts, sizeof(counts));
    SHA256_Update(&context, jwt->algorithms, sizeof(jwt->algorithms));
    SHA256_Update(&context, &jwt->leeway_ns, sizeof(jwt->leeway_ns));
    SHA256_Update(&context, &jwt->max_age_ns, sizeof(jwt->max_age_ns));
    for (uint8_t i = 0; i < jwt->issuer_count; i++)
        add(&context, jwt->issuers[i]);
    for (uint8_t i = 0; i < jwt->audience_count; i++)
        add(&context, jwt->audiences[i]);
    for (uint8_t i = 0; i < jwt->claim_count; i++)
        add(&context, jwt->claims[i]);
    SHA256_Final(digest, &context);
    memcpy(&jwt->fingerprint, digest, sizeof(jwt->fingerprint));
    return 0;
}

void rules_jwt_free(struct rules_jwt *jwt)
{
    for (uint8_t i = 0; jwt && i < jwt->key_count; i++)
        rules_jwt_key_free(&jwt->keys[i]);
}
