/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what is valid, what is not and why, and what claims read as. */
#include "core/bytes.h"
#include "rules_test.h"
#include "test.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>

#include "core/text/base64url.h"
#include "feature/identity/rules/json.h"
#include "feature/identity/rules/jwks.h"
#include "feature/identity/rules/jwt.h"
#include "tokens_test.h"

#define NS_PER_S UINT64_C(1000000000)
#define NOW_S UINT64_C(1700000000)
#define NOW_NS (NOW_S * NS_PER_S)
#define GOOD "{\"sub\":\"alice\",\"exp\":1700000060}"

static char text[TOKEN_TEXT_MAX];

struct fixture {
    struct rules_arena arena;
    struct rules_jwt jwt;
    struct rules_claims claims;
};

static struct weir_bytes bytes_of(const char *string)
{
    return weir_bytes_of(string);
}

static void open_with(struct fixture *fixture, const char *set)
{
    struct rules_jwt *jwt = &fixture->jwt;
    memset(fixture, 0, sizeof(*fixture));
    int count = rules_jwks_read(bytes_of(set), &fixture->arena, jwt->keys, RULES_JWT_KEYS_MAX);
    assert_true(count > 0);
    jwt->key_count = (uint8_t)count;
    jwt->require_exp = true;
    for (int i = 0; i < RULES_ALGORITHMS; i++)
        jwt->algorithms[i] = true;
    jwt->user = jwt->org = jwt->plan = RULES_CLAIM_NONE;
    assert_int_equal(rules_jwt_seal(jwt), 0);
}

static void open_made(struct fixture *fixture)
{
    char set[TOKEN_SET_MAX];
    token_maker_set(&maker, 1, set);
    open_with(fixture, set);
}

static void close_fixture(struct fixture *fixture)
{
    rules_jwt_free(&fixture->jwt);
    rules_arena_free(&fixture->arena);
}

static enum weir_token verify_at(struct fixture *fixture, const char *token, uint64_t now_ns)
{
    return rules_jwt_verify(&fixture->jwt, bytes_of(token), now_ns, &fixture->claims);
}

static const char *verified(struct fixture *fixture, const char *token)
{
    return weir_token_names[verify_at(fixture, token, NOW_NS)];
}

/* What a token of these claims is. */
static const char *judged(struct fixture *fixture, const char *claims)
{
    return verified(fixture, token_of(&maker, TOKEN_HS256, claims, text));
}

/* --- RFC 7515, appendix A --------------------------------------------------------------------- */

static const char rfc_set[] =
    "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-"
    "1qS0gZH75aKtMN3"
    "Yj0iPS4hcgUuTwjAzZr1Z9CAow\"},{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_"
    "wWJcyQ"
    "oTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32"
    "690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xs"
    "mtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PA"
    "cDTW9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\"},{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
    "\"f83OJ3D2xF1Bg8v"
    "ub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";

#define RFC_CLAIMS                                                                                 \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnV"  \
    "lfQ"

static const char *const rfc_tokens[] = {
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." RFC_CLAIMS
    ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "eyJhbGciOiJSUzI1NiJ9." RFC_CLAIMS
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp"
    "5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb"
    "1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOY"
    "EUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
    "eyJhbGciOiJFUzI1NiJ9." RFC_CLAIMS
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
};
#define RFC_EXP_NS (UINT64_C(1300819380) * NS_PER_S)

TEST("the examples of the standard are valid until they expire")
{
    struct fixture fixture;
    open_with(&fixture, rfc_set);
    fixture.jwt.claims[0] = bytes_of("iss");
    fixture.jwt.claims[1] = bytes_of("http://example.com/is_root");
    fixture.jwt.claim_count = 2;
    for (int i = 0; i < 3; i++) {
        const char *token = rfc_tokens[i];
        assert_int_equal(verify_at(&fixture, token, RFC_EXP_NS - 1), WEIR_TOKEN_VALID);
        assert_int_equal(fixture.claims.until_ns, RFC_EXP_NS);
        assert_memory_equal(fixture.claims.values[0].data, "joe", 3);
        assert_memory_equal(fixture.claims.values[1].data, "true", 4);
        assert_int_equal(verify_at(&fixture, token, RFC_EXP_NS), WEIR_TOKEN_EXPIRED);
    }
    close_fixture(&fixture);
}

TEST("a token with any byte changed is not valid")
{
    struct fixture fixture;
    open_with(&fixture, rfc_set);
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(rfc_tokens[i]);
        for (size_t at = 0; at < size; at++) {
            strcpy(text, rfc_tokens[i]);
            text[at] = text[at] == 'A' ? 'B' : 'A';
            if (text[at] == rfc_tokens[i][at])
                continue;
            assert_int_not_equal(verify_at(&fixture, text, RFC_EXP_NS - 1), WEIR_TOKEN_VALID);
            text[at] = '\0';
            assert_int_not_equal(verify_at(&fixture, text, RFC_EXP_NS - 1), WEIR_TOKEN_VALID);
        }
    }
    close_fixture(&fixture);
}

/* --- Which key -------------------------------------------------------------------------------- */

TEST("each algorithm verifies its own signatures")
{
    struct fixture fixture;
    open_made(&fixture);
    for (int i = TOKEN_RS256; i <= TOKEN_HS256; i++) {
        assert_string_equal(verified(&fixture, token_of(&maker, i, GOOD, text)), "valid");
        fixture.jwt.algorithms[i] = false;
        assert_string_equal(verified(&fixture, text), "key");
        fixture.jwt.algorithms[i] = true;
    }
    close_fixture(&fixture);
}

TEST("no token is valid without a signature")
{
    static const char *const names[] = {"none", "None", "nOnE", "NONE", "", "HS512", "hs256"};
    struct fixture fixture;
    char header[64], plain[TOKEN_TEXT_MAX];
    open_made(&fixture);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"%s\"}", names[i]);
        token_with(header, GOOD, NULL, 0, plain);
        assert_string_equal(verified(&fixture, plain), "malformed");
        plain[strlen(plain) - 1] = '\0';
        assert_string_equal(verified(&fixture, plain), "malformed");
        token_make(&maker, TOKEN_HS256, header, GOOD, plain);
        assert_string_equal(verified(&fixture, plain), "key");
    }
    token_make(&maker, TOKEN_HS256, "{\"typ\":\"JWT\"}", GOOD, plain);
    assert_string_equal(verified(&fixture, plain), "malformed");
    token_make(&maker, TOKEN_HS256, "{\"alg\":[\"HS256\"]}", GOOD, plain);
    assert_string_equal(verified(&fixture, plain), "malformed");
    close_fixture(&fixture);
}

TEST("a public key is no secret")
{
    struct fixture fixture;
    struct token_maker forger = maker;
    char pem[TOKEN_SET_MAX];
    open_made(&fixture);
    token_maker_pem(maker.rsa, pem);
    /* As if the key's text were the secret, of which HMAC takes 64 bytes as they are. */
    memcpy(forger.secret, pem, sizeof(forger.secret));
    assert_string_equal(verified(&fixture, token_of(&forger, TOKEN_HS256, GOOD, text)),
                        "signature");
    assert_string_equal(
        verified(&fixture, token_make(&forger, TOKEN_HS256, "{\"alg\":\"HS256\",\"kid\":\"rsa\"}",
                                      GOOD, text)),
        "key");
    fixture.jwt.key_count = 1; /* the RSA key alone */
    assert_string_equal(verified(&fixture, token_of(&forger, TOKEN_HS256, GOOD, text)), "key");
    fixture.jwt.key_count = 3;
    close_fixture(&fixture);
}

TEST("an identifier only chooses among the keys")
{
    static const char *const ids[] = {
        "\"../../../dev/null\"", "\"ec\"",   "\"RSA\"", "\"\"",
        "\"rsa' OR 1=1\"",       "\"rsa \"", "\"hs\"",
    };
    struct fixture fixture;
    char header[128];
    open_made(&fixture);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"RS256\",\"kid\":%s}", ids[i]);
        assert_string_equal(verified(&fixture, token_make(&maker, TOKEN_RS256, header, GOOD, text)),
                            "key");
    }
    static const char *const odd[] = {"1", "null", "[\"rsa\"]", "{}"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"RS256\",\"kid\":%s}", odd[i]);
        assert_string_equal(verified(&fixture, token_make(&maker, TOKEN_RS256, header, GOOD, text)),
                            "malformed");
    }
    token_make(&maker, TOKEN_RS256, "{\"alg\":\"RS256\"}", GOOD, text);
    assert_string_equal(verified(&fixture, text), "valid");
    close_fixture(&fixture);
}

TEST("keys without identifiers are for tokens with any")
{
    struct fixture fixture;
    char set[TOKEN_SET_MAX];
    token_maker_set(&maker, 0, set);
    open_with(&fixture, set);
    for (int i = TOKEN_RS256; i <= TOKEN_HS256; i++)
        assert_string_equal(verified(&fixture, token_of(&maker, i, GOOD, text)), "valid");
    close_fixture(&fixture);
}

TEST("one of several keys of one algorithm is enough and tries are bounded")
{
    struct fixture fixture;
    struct rules_jwt *jwt = &fixture.jwt;
    open_made(&fixture);
    static const char wrong[] = "a secret that nobody signs with!";
    struct rules_jwt_key right = jwt->keys[2];
    for (uint8_t i = 0; i < RULES_JWT_TRIES_MAX; i++) {
        jwt->keys[2 + i] =
            (struct rules_jwt_key){.secret = bytes_of(wrong), .algorithm = RULES_HS256};
    }
    jwt->keys[2 + RULES_JWT_TRIES_MAX - 1] = right;
    jwt->key_count = 2 + RULES_JWT_TRIES_MAX;
    token_make(&maker, TOKEN_HS256, "{\"alg\":\"HS256\"}", GOOD, text);
    assert_string_equal(verified(&fixture, text), "valid");
    jwt->keys[jwt->key_count++] =
        (struct rules_jwt_key){.secret = bytes_of(wrong), .algorithm = RULES_HS256};
    assert_string_equal(verified(&fixture, text), "key");
    for (uint8_t i = 2; i < jwt->key_count; i++) /* which are constant, and not to be wiped */
        jwt->keys[i].secret = (struct weir_bytes){NULL, 0};
    close_fixture(&fixture);
}

TEST("keys that a token brings along count for nothing")
{
    static const char *const extras[] = {"\"jku\":\"https://evil.example/keys\"",
                                         "\"x5u\":\"https://evil.example/cert\"",
                                         "\"x5c\":[\"MIIB\"]", "\"x5t\":\"AAAA\""};
    struct fixture fixture;
    struct token_maker forger;
    char set[TOKEN_SET_MAX], header[TOKEN_SET_MAX + 64];
    open_made(&fixture);
    token_maker_open(&forger);
    token_maker_set(&forger, 0, set);
    snprintf(header, sizeof(header), "{\"alg\":\"RS256\",\"jwk\":%s}", set);
    assert_string_equal(verified(&fixture, token_make(&forger, TOKEN_RS256, header, GOOD, text)),
                        "signature");
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"RS256\",%s}", extras[i]);
        token_make(&forger, TOKEN_RS256, header, GOOD, text);
        assert_string_equal(verified(&fixture, text), "signature");
        token_make(&maker, TOKEN_RS256, header, GOOD, text);
        assert_string_equal(verified(&fixture, text), "valid");
    }
    token_maker_close(&forger);
    close_fixture(&fixture);
}

TEST("what a header calls critical is not known here")
{
    static const char *const headers[] = {
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}",
        "{\"alg\":\"HS256\",\"crit\":[\"exp\"],\"exp\":1}",
        "{\"alg\":\"HS256\",\"crit\":[]}",
        "{\"alg\":\"HS256\",\"crit\":null}",
    };
    struct fixture fixture;
    open_made(&fixture);
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        token_make(&maker, TOKEN_HS256, headers[i], GOOD, text);
        assert_string_equal(verified(&fixture, text), "malformed");
    }
    close_fixture(&fixture);
}

/* --- Signatures ------------------------------------------------------------------------------- */

#define ES_HEADER "{\"alg\":\"ES256\"}"

TEST("signatures of another size or with zeros are refused")
{
    struct fixture fixture;
    unsigned char signature[1200] = {0}, zeros[64] = {0};
    open_made(&fixture);
    token_with(ES_HEADER, GOOD, NULL, 0, text);
    assert_int_equal(token_signature(&maker, TOKEN_ES256, text, strlen(text) - 1, signature), 64);
    assert_string_equal(verified(&fixture, token_with(ES_HEADER, GOOD, signature, 64, text)),
                        "valid");
    static const size_t sizes[] = {1, 32, 63, 65, 70, 72, 128, 1024};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        token_with(ES_HEADER, GOOD, signature, sizes[i], text);
        assert_string_equal(verified(&fixture, text), "signature");
    }
    token_with(ES_HEADER, GOOD, signature, 1100, text);
    assert_string_equal(verified(&fixture, text), "malformed");
    token_with(ES_HEADER, GOOD, zeros, 64, text);
    assert_string_equal(verified(&fixture, text), "signature");
    memcpy(zeros, signature, 32); /* s = 0 */
    token_with(ES_HEADER, GOOD, zeros, 64, text);
    assert_string_equal(verified(&fixture, text), "signature");
    memset(zeros, 0, 32); /* r = 0 */
    memcpy(zeros + 32, signature + 32, 32);
    token_with(ES_HEADER, GOOD, zeros, 64, text);
    assert_string_equal(verified(&fixture, text), "signature");
    memset(zeros, 0xFF, 64);
    token_with(ES_HEADER, GOOD, zeros, 64, text);
    assert_string_equal(verified(&fixture, text), "signature");
    for (size_t i = 0; i < 256; i += 31) { /* of RSA, and of HMAC */
        token_with("{\"alg\":\"RS256\"}", GOOD, signature, i + 1, text);
        assert_string_equal(verified(&fixture, text), "signature");
        token_with("{\"alg\":\"HS256\"}", GOOD, signature, i + 1, text);
        assert_string_equal(verified(&fixture, text), "signature");
    }
    close_fixture(&fixture);
}

/* Of ECDSA, (r, n - s) is as good as (r, s): tokens have no one text, and nothing counts on it. */
TEST("the other signature of a pair is valid too")
{
    struct fixture fixture;
    unsigned char signature[512];
    open_made(&fixture);
    token_with(ES_HEADER, GOOD, NULL, 0, text);
    token_signature(&maker, TOKEN_ES256, text, strlen(text) - 1, signature);
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BIGNUM *s = BN_bin2bn(signature + 32, 32, NULL);
    assert_int_equal(BN_sub(s, EC_GROUP_get0_order(group), s), 1);
    assert_int_equal(BN_bn2binpad(s, signature + 32, 32), 32);
    BN_free(s);
    EC_GROUP_free(group);
    assert_string_equal(verified(&fixture, token_with(ES_HEADER, GOOD, signature, 64, text)),
                        "valid");
    close_fixture(&fixture);
}

/* --- Shape ------------------------------------------------------------------------------------ */

TEST("what is not three parts of strict base64url is malformed")
{
    struct fixture fixture;
    char good[TOKEN_TEXT_MAX], bad[2 * TOKEN_TEXT_MAX];
    open_made(&fixture);
    token_of(&maker, TOKEN_HS256, GOOD, good);
    static const char *const forms[] = {"%s=",    "%s==",    " %s",    "%s ",      "\t%s",  "%s\n",
                                        ".%s",    "%s.",     "%s.%s",  "%s, %s",   "%s,%s", "%s %s",
                                        "\"%s\"", "%s.AAAA", "%s%%3D", "Bearer %s"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(bad, sizeof(bad), forms[i], good, good);
#pragma GCC diagnostic pop
        assert_string_equal(verified(&fixture, bad), "malformed");
    }
    static const char *const words[] = {"",  ".",    "..", "...", "a.b.c", "AAAA.AAAA.AAAA",
                                        "x", "é.é.é"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_string_equal(verified(&fixture, words[i]), "malformed");
    /* 43 digits hold 256 bits and 2 that must be zero. */
    size_t last = strlen(good) - 1;
    strcpy(bad, good);
    for (char c = 'A'; c <= 'Z'; c++) {
        bad[last] = c;
        assert_true(strcmp(bad, good) == 0 || strcmp(verified(&fixture, bad), "valid") != 0);
    }
    strcpy(bad, good);
    *strchr(bad, '.') = ':';
    assert_string_equal(verified(&fixture, bad), "malformed");
    close_fixture(&fixture);
}

TEST("tokens may have eight kibibytes and no byte more")
{
    static char claims[TOKEN_TEXT_MAX], header[512];
    struct fixture fixture;
    open_made(&fixture);
    for (int padding = 5900; padding < 6100; padding++) {
        for (int more = 0; more < 3; more++) { /* the header makes up for the steps of base64 */
            snprintf(header, sizeof(header), "{\"alg\":\"HS256\",\"x\":\"%.*s\"}", more, "yyyy");
            snprintf(claims, sizeof(claims), "{\"exp\":1700000060,\"pad\":\"%0*d\"}", padding, 0);
            token_make(&maker, TOKEN_HS256, header, claims, text);
            bool fits = strlen(text) <= RULES_TOKEN_MAX;
            assert_string_equal(verified(&fixture, text), fits ? "valid" : "malformed");
        }
    }
    assert_true(strlen(text) > RULES_TOKEN_MAX);
    close_fixture(&fixture);
}

TEST("objects that two readers could read in two ways are malformed")
{
    static const char *const claims[] = {
        "{\"exp\":1700000060,\"sub\":\"a\",\"sub\":\"b\"}",
        "{\"exp\":1,\"exp\":1700000060}",
        "{\"exp\":1700000060,\"a\":{\"b\":1,\"b\":2}}",
        "{\"exp\":1700000060,\"e\\u0078p\":1700000061}",
        "{\"exp\":1700000060} {}",
        "{\"exp\":1700000060}x",
        "[{\"exp\":1700000060}]",
        "\"exp\"",
        "1700000060",
        "null",
        "{exp:1700000060}",
        "{\"exp\":1700000060,}",
        "{\"exp\":1700000060",
        "{\"exp\":1700000060,\"sub\":\"a\\u0000b\"}",
        "{\"exp\":1700000060,\"sub\":\"\xff\xfe\"}",
        "{\"exp\":1700000060,\"sub\":\"\xc0\xaf\"}",
        "{\"exp\":1700000060,\"sub\":\"\\ud800\"}",
        "{\"exp\":01700000060}",
        "{\"exp\":NaN}",
        "{\"exp\":1e999}",
        "{\"exp\":99999999999999999999}",
        "\xef\xbb\xbf{\"exp\":1700000060}",
    };
    struct fixture fixture;
    open_made(&fixture);
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
        assert_string_equal(judged(&fixture, claims[i]), "malformed");
    token_make(&maker, TOKEN_HS256, "{\"alg\":\"RS256\",\"alg\":\"HS256\"}", GOOD, text);
    assert_string_equal(verified(&fixture, text), "malformed");
    close_fixture(&fixture);
}

TEST("depth is bounded")
{
    static char claims[8192];
    struct fixture fixture;
    open_made(&fixture);
    for (int depth = 1; depth < 2500; depth = depth < 40 ? depth + 1 : depth * 2) {
        size_t used = (size_t)sprintf(claims, "{\"exp\":1700000060,\"s\":\"[[[[{{{{\\\"\",\"a\":");
        memset(claims + used, '[', (size_t)depth);
        memset(claims + used + depth, ']', (size_t)depth);
        strcpy(claims + used + 2 * depth, "}");
        bool fits = depth + 1 <= RULES_JSON_DEPTH_MAX;
        assert_string_equal(judged(&fixture, claims), fits ? "valid" : "malformed");
    }
    close_fixture(&fixture);
}

/* Each value costs an allocation, and nobody has signed it yet. */
TEST("the number of values is bounded")
{
    static char claims[8192];
    struct fixture fixture;
    open_made(&fixture);
    for (int values = 500; values < 520; values++) { /* the object, exp, s, a, and those in a */
        size_t used =
            (size_t)sprintf(claims, "{\"exp\":1700000060,\"s\":\",,,[[{{\\\",,\",\"a\":[0");
        for (int i = 5; i < values; i++)
            used += (size_t)sprintf(claims + used, ",%d", i % 10);
        strcpy(claims + used, "]}");
        bool fits = values <= RULES_PAYLOAD_VALUES_MAX;
        assert_string_equal(judged(&fixture, claims), fits ? "valid" : "malformed");
    }
    for (int values = 60; values < 70; values++) { /* the object, alg, a, and those in a */
        size_t used = (size_t)sprintf(claims, "{\"alg\":\"HS256\",\"a\":[0");
        for (int i = 4; i < values; i++)
            used += (size_t)sprintf(claims + used, ",%d", i % 10);
        strcpy(claims + used, "]}");
        token_make(&maker, TOKEN_HS256, claims, GOOD, text);
        bool fits = values <= RULES_HEADER_VALUES_MAX;
        assert_string_equal(verified(&fixture, text), fits ? "valid" : "malformed");
    }
    close_fixture(&fixture);
}

/* --- Time ------------------------------------------------------------------------------------- */

TEST("expiry counts to the nanosecond and has to be there")
{
    struct fixture fixture;
    open_made(&fixture);
    token_of(&maker, TOKEN_HS256, GOOD, text);
    uint64_t end_ns = (NOW_S + 60) * NS_PER_S;
    assert_int_equal(verify_at(&fixture, text, 0), WEIR_TOKEN_VALID);
    assert_int_equal(verify_at(&fixture, text, end_ns - 1), WEIR_TOKEN_VALID);
    assert_int_equal(verify_at(&fixture, text, end_ns), WEIR_TOKEN_EXPIRED);
    assert_int_equal(verify_at(&fixture, text, UINT64_MAX), WEIR_TOKEN_EXPIRED);
    fixture.jwt.leeway_ns = 30 * NS_PER_S;
    assert_int_equal(verify_at(&fixture, text, end_ns + 30 * NS_PER_S - 1), WEIR_TOKEN_VALID);
    assert_int_equal(verify_at(&fixture, text, end_ns + 30 * NS_PER_S), WEIR_TOKEN_EXPIRED);
    assert_string_equal(judged(&fixture, "{\"sub\":\"alice\"}"), "expired");
    fixture.jwt.require_exp = false;
    assert_string_equal(judged(&fixture, "{\"sub\":\"alice\"}"), "valid");
    assert_string_equal(judged(&fixture, "{\"exp\":1}"), "expired");
    close_fixture(&fixture);
}

TEST("dates of every kind are what they say")
{
    static const struct {
        const char *claims, *result;
    } cases[] = {
        {"{\"exp\":1700000000}", "expired"},
        {"{\"exp\":1700000000.9}", "expired"}, /* rounded to the safe side */
        {"{\"exp\":1700000001.9}", "valid"},
        {"{\"exp\":1.70000006e9}", "valid"},
        {"{\"exp\":9223372036854775807}", "valid"},
        {"{\"exp\":1e300}", "valid"},
        {"{\"exp\":0}", "expired"},
        {"{\"exp\":-1}", "expired"},
        {"{\"exp\":-1e300}", "expired"},
        {"{\"exp\":-9223372036854775808}", "expired"},
        {"{\"exp\":\"1700000060\"}", "malformed"},
        {"{\"exp\":null}", "malformed"},
        {"{\"exp\":true}", "malformed"},
        {"{\"exp\":[1700000060]}", "malformed"},
        {"{\"exp\":1700000060,\"nbf\":1700000000}", "valid"},
        {"{\"exp\":1700000060,\"nbf\":1700000001}", "expired"},
        {"{\"exp\":1700000060,\"nbf\":1700000000.1}", "expired"},
        {"{\"exp\":1700000060,\"nbf\":-5}", "valid"},
        {"{\"exp\":1700000060,\"nbf\":1e300}", "expired"},
        {"{\"exp\":1700000060,\"nbf\":\"0\"}", "malformed"},
        {"{\"exp\":1700000060,\"iat\":1700009999}", "valid"}, /* says nothing by itself */
        {"{\"exp\":1700000060,\"iat\":{}}", "malformed"},
    };
    struct fixture fixture;
    open_made(&fixture);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(judged(&fixture, cases[i].claims), cases[i].result);
    close_fixture(&fixture);
}

TEST("a token before its time is valid with leeway")
{
    struct fixture fixture;
    open_made(&fixture);
    fixture.jwt.leeway_ns = 10 * NS_PER_S;
    assert_string_equal(judged(&fixture, "{\"exp\":1700000060,\"nbf\":1700000010}"), "valid");
    assert_string_equal(judged(&fixture, "{\"exp\":1700000060,\"nbf\":1700000011}"), "expired");
    assert_int_equal(fixture.claims.from_ns, NOW_NS + NS_PER_S);
    close_fixture(&fixture);
}

TEST("a token may be too old whatever its expiry says")
{
    struct fixture fixture;
    open_made(&fixture);
    fixture.jwt.max_age_ns = 100 * NS_PER_S;
    assert_string_equal(judged(&fixture, "{\"exp\":1800000000,\"iat\":1699999901}"), "valid");
    assert_int_equal(fixture.claims.until_ns, NOW_NS + NS_PER_S);
    assert_string_equal(judged(&fixture, "{\"exp\":1800000000,\"iat\":1699999900}"), "expired");
    assert_string_equal(judged(&fixture, "{\"exp\":1800000000}"), "expired");
    assert_string_equal(judged(&fixture, "{\"exp\":1800000000,\"iat\":1700000001}"), "expired");
    assert_string_equal(judged(&fixture, "{\"exp\":1699999999,\"iat\":1699999990}"), "expired");
    close_fixture(&fixture);
}

/* --- Parties ---------------------------------------------------------------------------------- */

TEST("the audience has to be among those of the token")
{
    static const struct {
        const char *claims, *result;
    } cases[] = {
        {"{\"exp\":1700000060}", "audience"},
        {"{\"exp\":1700000060,\"aud\":\"api\"}", "valid"},
        {"{\"exp\":1700000060,\"aud\":\"web\"}", "valid"},
        {"{\"exp\":1700000060,\"aud\":\"API\"}", "audience"},
        {"{\"exp\":1700000060,\"aud\":\"api2\"}", "audience"},
        {"{\"exp\":1700000060,\"aud\":\"ap\"}", "audience"},
        {"{\"exp\":1700000060,\"aud\":\"\"}", "audience"},
        {"{\"exp\":1700000060,\"aud\":[]}", "audience"},
        {"{\"exp\":1700000060,\"aud\":[\"other\",\"api\"]}", "valid"},
        {"{\"exp\":1700000060,\"aud\":[\"other\",[\"api\"]]}", "audience"},
        {"{\"exp\":1700000060,\"aud\":{\"api\":1}}", "audience"},
        {"{\"exp\":1700000060,\"aud\":1}", "audience"},
        {"{\"exp\":1700000060,\"aud\":null}", "audience"},
    };
    struct fixture fixture;
    open_made(&fixture);
    fixture.jwt.audiences[0] = bytes_of("api");
    fixture.jwt.audiences[1] = bytes_of("web");
    fixture.jwt.audience_count = 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(judged(&fixture, cases[i].claims), cases[i].result);
    close_fixture(&fixture);
}

TEST("the issuer is compared exactly")
{
    struct fixture fixture;
    open_made(&fixture);
    fixture.jwt.issuers[0] = bytes_of("https://id.example.org");
    fixture.jwt.issuer_count = 1;
    assert_string_equal(judged(&fixture, GOOD), "issuer");
    assert_string_equal(judged(&fixture, "{\"exp\":1700000060,\"iss\":\"https://id.example.org\"}"),
                        "valid");
    assert_string_equal(
        judged(&fixture, "{\"exp\":1700000060,\"iss\":\"https://id.example.org/\"}"), "issuer");
    assert_string_equal(
        judged(&fixture, "{\"exp\":1700000060,\"iss\":[\"https://id.example.org\"]}"), "issuer");
    close_fixture(&fixture);
}

/* --- Claims ----------------------------------------------------------------------------------- */

TEST("claims read as texts")
{
    static const struct {
        const char *name, *value; /* NULL: absent */
    } cases[] = {
        {"text", "a b,c"},
        {"empty", ""},
        {"umlaut", "\xc3\xa4\xf0\x9f\x98\x80"},
        {"whole", "42"},
        {"negative", "-7"},
        {"large", "9223372036854775807"},
        {"yes", "true"},
        {"no", "false"},
        {"half", NULL},
        {"scientific", NULL},
        {"nothing", NULL},
        {"missing", NULL},
        {"object", NULL},
        {"object.role", "admin"},
        {"object.deep.er", "x"},
        {"object.deep", NULL},
        {"object.role.more", NULL},
        {"dotted.name", "whole first"},
        {"https://example.com/roles", "a"},
        {"cognito:groups", "g1,g2"},
        {"list", "a,b%2Cc,d%25e"},
        {"none", ""},
        {"mixed", NULL},
        {".", NULL},
        {"object.", NULL},
    };
    static const char claims[] =
        "{\"exp\":1700000060,\"text\":\"a "
        "b,c\",\"empty\":\"\",\"umlaut\":\"\xc3\xa4\\ud83d\\ude00\","
        "\"whole\":42,\"negative\":-7,\"large\":9223372036854775807,\"yes\":true,\"no\":false,"
        "\"half\":0.5,\"scientific\":1e2,\"nothing\":null,"
        "\"object\":{\"role\":\"admin\",\"deep\":{\"er\":\"x\"}},"
        "\"dotted.name\":\"whole first\",\"dotted\":{\"name\":\"then nested\"},"
        "\"https://example.com/roles\":[\"a\"],\"cognito:groups\":[\"g1\",\"g2\"],"
        "\"list\":[\"a\",\"b,c\",\"d%e\"],\"none\":[],\"mixed\":[\"a\",1]}";
    enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
    struct fixture fixture;
    open_made(&fixture);
    for (uint8_t i = 0; i < COUNT; i++)
        fixture.jwt.claims[i] = bytes_of(cases[i].name);
    fixture.jwt.claim_count = COUNT;
    assert_string_equal(judged(&fixture, claims), "valid");
    for (size_t i = 0; i < COUNT; i++) {
        struct weir_bytes value = fixture.claims.values[i];
        assert_int_equal(value.data == NULL, cases[i].value == NULL);
        if (value.data != NULL) {
            assert_int_equal(value.size, strlen(cases[i].value));
            assert_memory_equal(value.data, cases[i].value, value.size);
        }
    }
    close_fixture(&fixture);
}

TEST("claims that are too long as texts make no valid token")
{
    static char claims[8192];
    struct fixture fixture;
    open_made(&fixture);
    fixture.jwt.claims[0] = bytes_of("list");
    fixture.jwt.claim_count = 1;
    for (int commas = 2000; commas <= 2100; commas++) { /* each becomes three bytes */
        size_t used = (size_t)sprintf(claims, "{\"exp\":1700000060,\"list\":[\"");
        memset(claims + used, ',', (size_t)commas);
        strcpy(claims + used + commas, "\"]}");
        bool fits = 3 * commas <= RULES_PAYLOAD_MAX;
        assert_string_equal(judged(&fixture, claims), fits ? "valid" : "malformed");
    }
    close_fixture(&fixture);
}

RUN_TESTS_WITH(make_keys, free_keys)
