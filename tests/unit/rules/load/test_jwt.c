/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of tokens as files have them, and what is wrong with a `jwt`. */
#include "core/bytes.h"
#include "rules_test.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "feature/identity/rules/jwt.h"
#include "rules/compiled.h"
#include "temporary.h"
#include "text_file.h"
#include "token_maker.h"

static struct token_maker maker;
static char folder[TEMPORARY_MAX];

/* A certificate that nobody need believe. */
static void write_certificate(const char *name, const char *mode)
{
    X509 *certificate = X509_new();
    FILE *file = fopen(name, mode);
    assert_true(certificate != NULL && file != NULL);
    assert_int_equal(X509_set_pubkey(certificate, maker.rsa), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -7200));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), -3600));
    assert_true(X509_sign(certificate, maker.rsa, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    X509_free(certificate);
}

static void write_public(const char *name, EVP_PKEY *key)
{
    char pem[TOKEN_SET_MAX];
    assert_non_null(key);
    token_maker_pem(key, pem);
    text_file_write(name, pem);
}

static void write_weak(const char *name, EVP_PKEY *key)
{
    write_public(name, key);
    EVP_PKEY_free(key);
}

/* A good secret, except for one member. */
#define ODD(name, value)                                                                           \
    "{\"kty\": \"oct\", \"" name "\": " value                                                      \
    ", \"k\": \"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlq\"}"

/* The pair of RFC 7515, appendix A.3. */
#define PAIR                                                                                       \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"                                                     \
    "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","                                             \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\","                                       \
    "\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\"}"

static void write_keys(void)
{
    char set[TOKEN_SET_MAX];
    token_maker_set(&maker, 1, set);
    text_file_write("set.json", set);
    token_maker_set(&maker, 0, set);
    text_file_write("plain.json", set);
    write_public("rsa.pem", maker.rsa);
    write_public("ec.pem", maker.ec);
    write_certificate("cert.pem", "w");
    write_certificate("chain.pem", "w");
    write_certificate("chain.pem", "a");
    write_weak("weak.pem", EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024));
    write_weak("p384.pem", EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384"));
    write_weak("ed.pem", EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
    FILE *file = fopen("private.pem", "w");
    assert_true(file != NULL &&
                PEM_write_PKCS8PrivateKey(file, maker.ec, NULL, NULL, 0, NULL, NULL) == 1);
    assert_int_equal(fclose(file), 0);
    text_file_write("pair.json", PAIR);
    text_file_write("pairs.json", "{\"keys\": [" PAIR "]}");
    text_file_write("words.pem", "Certificate:\n    Data:\n-----BEGIN CERTIFICATE-----\nAA==\n");
    text_file_write("secret", "0123456789abcdef0123456789abcdef\n");
    text_file_write("short", "0123456789abcdef0123456789abcde\n");
    text_file_write("empty", "");
    text_file_write("words", "hello\n");
    text_file_write("bad.json", "{\"keys\": [}");
    text_file_write("other.json", "{\"jwks\": []}");
    text_file_write("none.json", "{\"keys\": []}");
    text_file_write(
        "odd.json",
        "{\"keys\": [1, null, [], {}, {\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"AA\"},"
        "{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": \"AA\", \"y\": \"AA\"},"
        "{\"kty\": \"oct\", \"k\": \"c2hvcnQ\"}, {\"kty\": \"oct\"},"
        "{\"kty\": \"RSA\", \"n\": \"AQAB\", \"e\": \"AQAB\"},"
        "{\"kty\": \"oct\", \"use\": \"enc\", \"k\": \"" /* 36 bytes */
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlq\"}," ODD("use", "[\"enc\"]") "," ODD(
            "alg", "null") "," ODD("kid", "7") "]}");
}

static const char *const files[] = {
    "set.json", "plain.json", "rsa.pem",     "ec.pem",   "cert.pem",  "chain.pem",  "weak.pem",
    "p384.pem", "ed.pem",     "private.pem", "secret",   "short",     "empty",      "words",
    "bad.json", "other.json", "none.json",   "odd.json", "pair.json", "pairs.json", "words.pem",
};

static int make_keys(void **state)
{
    token_maker_open(&maker);
    temporary_folder(folder);
    assert_int_equal(chdir(folder), 0);
    write_keys();
    return 0;
}

static int remove_keys(void **state)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(unlink(files[i]), 0);
    assert_int_equal(chdir("/"), 0);
    temporary_remove(folder);
    token_maker_close(&maker);
    return 0;
}

/* A file whose `jwt` has these lines, in braces. */
static char *with(const char *jwt)
{
    static char text[4096];
    snprintf(text, sizeof(text), "jwt: {%s}\nlimits: [{name: a, key: [jwt.sub], rate: 1/s}]\n",
             jwt);
    return text;
}

/* How many keys of each algorithm: "RS256 x ES256 y HS256 z". */
static void expect_keys(const char *keys, const char *expected)
{
    char jwt[1024], found[64];
    int counts[RULES_ALGORITHMS] = {0};
    snprintf(jwt, sizeof(jwt), "keys: %s, audience: any", keys);
    struct weir_rules *rules = test_load(with(jwt));
    for (uint8_t i = 0; i < rules->jwt->key_count; i++)
        counts[rules->jwt->keys[i].algorithm]++;
    snprintf(found, sizeof(found), "RS256 %d ES256 %d HS256 %d", counts[0], counts[1], counts[2]);
    assert_string_equal(found, expected);
    weir_rules_unref(rules);
}

TEST("keys come from pem certificates sets and secrets")
{
    expect_keys("rsa.pem", "RS256 1 ES256 0 HS256 0");
    expect_keys("[ec.pem]", "RS256 0 ES256 1 HS256 0");
    expect_keys("{file: cert.pem, kid: a}", "RS256 1 ES256 0 HS256 0");
    expect_keys("[{secret_file: secret}]", "RS256 0 ES256 0 HS256 1");
    expect_keys("set.json", "RS256 1 ES256 1 HS256 1");
    expect_keys("[{file: plain.json}, rsa.pem, {secret_file: secret, kid: s}]",
                "RS256 2 ES256 1 HS256 2");
    expect_keys("set.json, algorithms: [ES256]", "RS256 0 ES256 1 HS256 0");
    expect_keys("set.json, algorithms: RS256", "RS256 1 ES256 0 HS256 0");
}

TEST("a key from pem verifies and a secret is its line")
{
    struct weir_rules *rules =
        test_load(with("keys: [{file: cert.pem}, {secret_file: secret}], audience: any"));
    char token[TOKEN_TEXT_MAX];
    struct rules_claims claims;
    struct token_maker same = maker;
    memcpy(same.secret, "0123456789abcdef0123456789abcdef", 32);
    static const enum token_algorithm algorithms[] = {TOKEN_RS256, TOKEN_HS256};
    for (int i = 0; i < 2; i++) {
        token_of(&same, algorithms[i], "{\"exp\":9,\"sub\":\"a\"}", token);
        assert_int_equal(rules_jwt_verify(rules->jwt, weir_bytes_of(token), 0, &claims),
                         WEIR_TOKEN_VALID);
    }
    token_of(&maker, TOKEN_HS256, "{\"exp\":9,\"sub\":\"a\"}", token);
    assert_int_equal(rules_jwt_verify(rules->jwt, weir_bytes_of(token), 0, &claims),
                     WEIR_TOKEN_SIGNATURE);
    weir_rules_unref(rules);
}

TEST("what is wrong with keys is said")
{
    static const struct {
        const char *keys, *problem;
    } cases[] = {
        {"nowhere.pem", "cannot read nowhere.pem: No such file or directory"},
        {"private.pem", "private.pem is a private key; weir needs only the public one, and should "
                        "have no other"},
        {"pair.json", "pair.json holds what is a private key; weir needs only the public one, and "
                      "should have no other"},
        {"pairs.json", "pairs.json holds what is a private key; weir needs only the public one, "
                       "and should have no other"},
        {"chain.pem", "chain.pem holds several keys or certificates; give each a file of its own"},
        {"weak.pem", "weak.pem must hold a key of RSA, 2048 to 8192 bits, or on the curve P-256"},
        {"p384.pem", "p384.pem must hold a key of RSA, 2048 to 8192 bits, or on the curve P-256"},
        {"ed.pem", "ed.pem must hold a key of RSA, 2048 to 8192 bits, or on the curve P-256"},
        {"empty", "empty holds no PEM and no JSON"},
        {"words", "words holds no PEM and no JSON"},
        {"bad.json", "bad.json is not a JSON object with `keys` (RFC 7517)"},
        {"other.json", "other.json is not a JSON object with `keys` (RFC 7517)"},
        {"none.json",
         "none.json has no key that is allowed: RSA of 2048 bits at least, EC on P-256, "
         "oct of 32 bytes at least, for signatures"},
        {"odd.json", "odd.json has no key that is allowed: RSA of 2048 bits at least, EC on P-256, "
                     "oct of 32 bytes at least, for signatures"},
    };
    char jwt[256], expected[512];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(jwt, sizeof(jwt), "audience: any, keys: %s", cases[i].keys);
        snprintf(expected, sizeof(expected), "1:28: %s\n", cases[i].problem);
        test_refused(with(jwt), expected);
    }
    test_refused(with("audience: any, keys: {secret_file: short}"),
                 "1:42: short must hold a secret of 32 bytes at least\n");
    test_refused(with("audience: any, keys: {secret_file: rsa.pem}"),
                 "1:42: rsa.pem is a key, not a secret: give it as `file`\n");
    test_refused(with("audience: any, keys: {secret_file: words.pem}"),
                 "1:42: words.pem is a key, not a secret: give it as `file`\n");
    test_refused(with("audience: any, keys: {secret_file: set.json}"),
                 "1:42: set.json is a key, not a secret: give it as `file`\n");
    test_refused(with("audience: any, keys: []"),
                 "1:28: `keys` is empty: no token would be accepted\n");
    test_refused(with("audience: any, keys: [{kid: a}]"),
                 "1:29: a key has either `file` (PEM or JWK set) or `secret_file` (for HS256)\n");
    test_refused(with("audience: any, keys: [{file: rsa.pem, secret_file: secret}]"),
                 "1:29: a key has either `file` (PEM or JWK set) or `secret_file` (for HS256)\n");
    test_refused(with("audience: any, keys: [{file: set.json, kid: a}]"),
                 "1:36: the keys in set.json have identifiers of their own; remove `kid`\n");
    test_refused(with("audience: any, keys: [{file: rsa.pem}, {secret_file: secret}], "
                      "algorithms: [HS256]"),
                 "1:36: rsa.pem is a key for RS256, which is not in `algorithms`\n");
    test_refused(with("audience: any, keys: rsa.pem, algorithms: [RS256, ES256]"),
                 "1:49: `algorithms` has ES256, but no key is for it\n");
    test_refused(with("audience: any, keys: rsa.pem, algorithms: none"),
                 "1:28: rsa.pem is a key for RS256, which is not in `algorithms`\n"
                 "1:49: `algorithms` must be one of RS256, ES256, HS256, not `none`\n");
    test_refused(with("audience: any, keys: [rsa.pem, rsa.pem, rsa.pem, rsa.pem, cert.pem]"),
                 "1:28: more than 4 keys of RS256 share a `kid` or have none: give each key its "
                 "own `kid`\n");
}

TEST("what is wrong with a jwt is said")
{
    test_refused(with(""), "1:6: `keys` is missing: without keys no signature can be verified\n"
                           "1:6: `audience` is missing: tokens for other services would be "
                           "accepted; name this service, or set `audience: any`\n");
    test_refused(with("keys: rsa.pem, audience: any, leeway: 6min"),
                 "1:45: `leeway` must be 0s to 5min, not `6min`\n");
    test_refused(with("keys: rsa.pem, audience: any, max_age: 500ms"),
                 "1:46: `max_age` must be 1s to 366d, not `500ms`\n");
    test_refused(with("keys: rsa.pem, audience: []"),
                 "1:32: `audience` is an empty list: no token would be accepted\n");
    test_refused(with("keys: rsa.pem, audience: any, require_exp: maybe"),
                 "1:50: `require_exp` must be true or false, not `maybe`\n");
    test_refused(
        with("keys: rsa.pem, audience: any, user: \"a b\""),
        "1:43: `a b` is not the name of a claim: use 1 to 124 of a-z, A-Z, 0-9, ._-:/@#~+\n");
    test_refused(with("keys: rsa.pem, audience: any, from: path"),
                 "1:43: `path` holds no token; a header or another attribute can\n");
    test_refused(with("keys: rsa.pem, audience: any, from: jwt.sub"),
                 "1:43: `jwt.sub` holds no token; a header or another attribute can\n");
    test_refused(with("keys: rsa.pem, audience: any, from: []"),
                 "1:43: `from` is an empty list: no token would be found\n");
    test_refused(with("keys: rsa.pem, audience: any, from: [a, b, c, d, e]"),
                 "1:56: `from` has more than 4 attributes\n");
    test_refused(with("keys: rsa.pem, audience: any, issuers: x"),
                 "1:37: `jwt` has no key `issuers`; did you mean `issuer`?\n");
    test_refused("jwt: yes\nlimits: []\n", "1:6: `jwt` must be a mapping, not a text\n");
}

TEST("claims need a jwt and a name")
{
    test_refused("limits: [{name: a, key: [jwt.sub], rate: 1/s}]\n",
                 "1:26: the claim `sub` needs the section `jwt:`, which verifies tokens\n");
    test_refused("identify: [jwt]\nlimits: []\n",
                 "1:12: `jwt` needs the section `jwt:`, which this file does not have\n");
    test_refused("jwt: {keys: rsa.pem, audience: any}\nidentify: [jwt.sub]\nlimits: []\n",
                 "2:12: `jwt.sub`: write `jwt`, and in `jwt:` which claim is the `user`\n");
    test_refused("jwt: {keys: rsa.pem, audience: any}\n"
                 "limits: [{name: a, key: [jwt.], rate: 1/s}]\n",
                 "2:26: `` is not the name of a claim: use 1 to 124 of a-z, A-Z, 0-9, ._-:/@#~+\n");
}

TEST("there may be 32 claims")
{
    static char text[8192];
    for (int count = 31; count <= 32; count++) { /* beside `sub` */
        size_t used =
            (size_t)snprintf(text, sizeof(text), "jwt: {keys: rsa.pem, audience: any}\nlimits:\n");
        for (int i = 0; i < count; i++) {
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "- {name: l%d, key: [jwt.c%d, jwt.c%d], rate: 1/s}\n", i, i,
                                     i / 2 + 100);
        }
        char problems[TEST_PROBLEMS_MAX];
        struct weir_rules *rules = test_parse(text, problems);
        assert_null(rules);
        assert_non_null(strstr(problems, "more than 32 claims in one file"));
    }
    size_t used =
        (size_t)snprintf(text, sizeof(text), "jwt: {keys: rsa.pem, audience: any}\nlimits:\n");
    for (int i = 0; i < 31; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "- {name: l%d, key: [jwt.c%d, jwt.sub], rate: 1/s}\n", i, i);
    }
    struct weir_rules *rules = test_load(text);
    assert_int_equal(rules->jwt->claim_count, 32);
    weir_rules_unref(rules);
}

RUN_TESTS_WITH(make_keys, remove_keys)
