/* SPDX-License-Identifier: Apache-2.0 */
/* see jwt_key.h */
#define OPENSSL_SUPPRESS_DEPRECATED /* see keys.c */
#include "feature/identity/rules/jwt_key.h"

#include <stdio.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#define COORDINATE_BYTES 32 /* of P-256 */
#define ES256_BYTES (2 * COORDINATE_BYTES)
#define ES256_DER_MAX 72 /* two INTEGERs of 33 bytes, their heads, and the SEQUENCE's */
/* Larger exponents make verifying slow and keys no better; 65537 is everybody's. */
#define EXPONENT_BITS_MAX 32

const char *const rules_algorithm_names[RULES_ALGORITHMS] = {"RS256", "ES256", "HS256"};

/* Every failure of OpenSSL leaves texts in the thread's queue, which nobody would read. */
static int failed(int error)
{
    ERR_clear_error();
    return error;
}

/* --- Which keys will do ----------------------------------------------------------------------- */

static bool rsa_will_do(EVP_PKEY *key)
{
    BIGNUM *exponent = NULL;
    int bits = EVP_PKEY_get_bits(key);
    bool good = bits >= RULES_RSA_BITS_MIN && bits <= RULES_RSA_BITS_MAX &&
                EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
                BN_is_odd(exponent) && BN_num_bits(exponent) >= 2 &&
                BN_num_bits(exponent) <= EXPONENT_BITS_MAX;
    BN_free(exponent);
    return good;
}

static bool ec_will_do(EVP_PKEY *key)
{
    char group[32];
    size_t size;
    if (EVP_PKEY_get_group_name(key, group, sizeof(group), &size) != 1 ||
        OBJ_sn2nid(group) != NID_X9_62_prime256v1)
        return false;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    bool good = context && EVP_PKEY_public_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    return good;
}

/* Takes the key over, or frees it. */
static int take(struct rules_jwt_key *key, EVP_PKEY *public_key)
{
    bool rsa = EVP_PKEY_is_a(public_key, "RSA") == 1;
    bool good = rsa ? rsa_will_do(public_key)
                    : EVP_PKEY_is_a(public_key, "EC") == 1 && ec_will_do(public_key);
    if (!good) {
        EVP_PKEY_free(public_key);
        return failed(WEIR_ERR_RANGE);
    }
    key->public_key = public_key;
    key->algorithm = rsa ? RULES_RS256 : RULES_ES256;
    return 0;
}

/* --- PEM -------------------------------------------------------------------------------------- */

/* The key in one block of a PEM file; NULL: there is none that is public. */
static EVP_PKEY *decode(const char *name, const unsigned char *bytes, long size)
{
    EVP_PKEY *key = NULL;
    if (strcmp(name, PEM_STRING_PUBLIC) == 0) {
        key = d2i_PUBKEY(NULL, &bytes, size);
    } else if (strcmp(name, PEM_STRING_RSA_PUBLIC) == 0) {
        key = d2i_PublicKey(EVP_PKEY_RSA, NULL, &bytes, size);
    } else if (strcmp(name, PEM_STRING_X509) == 0) {
        X509 *certificate = d2i_X509(NULL, &bytes, size);
        key = certificate ? X509_get_pubkey(certificate) : NULL;
        X509_free(certificate);
    }
    return key;
}

static int refuse(struct weir_reason *reason, int error, const char *what)
{
    snprintf(reason->text, sizeof(reason->text), "%s", what);
    return failed(error);
}

static int read_block(struct rules_jwt_key *key, const char *name, const unsigned char *bytes,
                      long size, struct weir_reason *reason)
{
    if (strstr(name, "PRIVATE KEY"))
        return refuse(reason, WEIR_ERR_SYNTAX, RULES_JWT_KEY_IS_PRIVATE);
    EVP_PKEY *public_key = decode(name, bytes, size);
    if (!public_key)
        return refuse(reason, WEIR_ERR_SYNTAX, "holds no public key and no certificate");
    if (take(key, public_key) < 0) {
        return refuse(reason, WEIR_ERR_RANGE,
                      "must hold a key of RSA, 2048 to 8192 bits, or on the curve P-256");
    }
    return 0;
}

int rules_jwt_key_pem(struct rules_jwt_key *key, struct weir_bytes text, struct weir_reason *reason)
{
    char *name = NULL, *header = NULL;
    unsigned char *bytes = NULL;
    long size = 0;
    BIO *file = BIO_new_mem_buf(text.data, (int)text.size);
    int err = WEIR_ERR_MEMORY;
    if (!file || PEM_read_bio(file, &name, &header, &bytes, &size) != 1) {
        err = refuse(reason, WEIR_ERR_SYNTAX, "holds no PEM and no JSON");
        goto close_file;
    }
    err = read_block(key, name, bytes, size, reason);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(bytes, (size_t)size);
    if (err < 0)
        goto close_file;
    /* Of a chain of certificates, only the first may sign tokens, not its issuers. */
    if (PEM_read_bio(file, &name, &header, &bytes, &size) == 1) {
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(bytes, (size_t)size);
        rules_jwt_key_free(key);
        err = refuse(reason, WEIR_ERR_SYNTAX,
                     "holds several keys or certificates; give each a file of its own");
    }
close_file:
    BIO_free(file);
    return failed(err);
}

/* --- Numbers ---------------------------------------------------------------------------------- */

/* A key of OpenSSL from its parameters, which are freed; NULL: it would not have them. */
static EVP_PKEY *build(const char *kind, OSSL_PARAM *parameters)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    if (context && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

int rules_jwt_key_rsa(struct rules_jwt_key *key, struct weir_bytes modulus,
                      struct weir_bytes exponent)
{
    if (modulus.size > RULES_RSA_BITS_MAX / 8 + 1 || exponent.size > EXPONENT_BITS_MAX / 8 + 1)
        return WEIR_ERR_RANGE;
    OSSL_PARAM *parameters = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *n = BN_bin2bn((const unsigned char *)modulus.data, (int)modulus.size, NULL);
    BIGNUM *e = BN_bin2bn((const unsigned char *)exponent.data, (int)exponent.size, NULL);
    if (builder && n && e && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        parameters = OSSL_PARAM_BLD_to_param(builder);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    if (!parameters) /* not the key's fault, which must not be ignored then */
        return failed(WEIR_ERR_MEMORY);
    EVP_PKEY *public_key = build("RSA", parameters);
    return public_key ? take(key, public_key) : failed(WEIR_ERR_RANGE);
}

int rules_jwt_key_ec(struct rules_jwt_key *key, struct weir_bytes x, struct weir_bytes y)
{
    /* RFC 7518 6.2.1.2: always as long as the curve's numbers are. */
    if (x.size != COORDINATE_BYTES || y.size != COORDINATE_BYTES)
        return WEIR_ERR_RANGE;
    unsigned char point[1 + ES256_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    memcpy(point + 1, x.data, COORDINATE_BYTES);
    memcpy(point + 1 + COORDINATE_BYTES, y.data, COORDINATE_BYTES);
    OSSL_PARAM *parameters = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, SN_X9_62_prime256v1,
                                        0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) ==
            1)
        parameters = OSSL_PARAM_BLD_to_param(builder);
    OSSL_PARAM_BLD_free(builder);
    if (!parameters)
        return failed(WEIR_ERR_MEMORY);
    EVP_PKEY *public_key = build("EC", parameters);
    return public_key ? take(key, public_key) : failed(WEIR_ERR_RANGE);
}

/* --- Verifying -------------------------------------------------------------------------------- */

static bool hmac_verifies(const struct rules_jwt_key *key, struct weir_bytes text,
                          struct weir_bytes signature)
{
    unsigned char expected[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    return HMAC(EVP_sha256(), key->secret.data, (int)key->secret.size,
                (const unsigned char *)text.data, text.size, expected, &size) &&
           signature.size == size && CRYPTO_memcmp(expected, signature.data, size) == 0;
}

/* r | s as the DER that OpenSSL reads. Returns its size, 0: not of the right size, or no memory. */
static size_t ecdsa_der(struct weir_bytes signature, unsigned char der[ES256_DER_MAX])
{
    if (signature.size != ES256_BYTES)
        return 0;
    const unsigned char *bytes = (const unsigned char *)signature.data;
    BIGNUM *r = BN_bin2bn(bytes, COORDINATE_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(bytes + COORDINATE_BYTES, COORDINATE_BYTES, NULL);
    ECDSA_SIG *pair = ECDSA_SIG_new();
    int size = 0;
    if (!r || !s || !pair || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
    } else {
        size = i2d_ECDSA_SIG(pair, &der);
    }
    ECDSA_SIG_free(pair);
    return size > 0 ? (size_t)size : 0;
}

bool rules_jwt_key_verifies(const struct rules_jwt_key *key, struct weir_bytes text,
                            struct weir_bytes signature)
{
    unsigned char der[ES256_DER_MAX];
    if (key->algorithm == RULES_HS256)
        return hmac_verifies(key, text, signature);
    if (key->algorithm == RULES_ES256) {
        signature = (struct weir_bytes){(const char *)der, ecdsa_der(signature, der)};
        if (signature.size == 0)
            return failed(false);
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context &&
                EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->public_key) == 1 &&
                EVP_DigestVerify(context, (const unsigned char *)signature.data, signature.size,
                                 (const unsigned char *)text.data, text.size) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

/* --- Books ------------------------------------------------------------------------------------ */

int rules_jwt_key_digest(const struct rules_jwt_key *key, unsigned char digest[32])
{
    unsigned char *der = NULL;
    int size = key->public_key ? i2d_PUBKEY(key->public_key, &der) : 0;
    SHA256_CTX context;
    if (size < 0)
        return failed(WEIR_ERR_MEMORY);
    SHA256_Init(&context);
    SHA256_Update(&context, &key->algorithm, sizeof(key->algorithm));
    SHA256_Update(&context, &key->id.size, sizeof(key->id.size));
    SHA256_Update(&context, key->id.data, key->id.size);
    SHA256_Update(&context, der, (size_t)size);
    SHA256_Update(&context, key->secret.data, key->secret.size);
    SHA256_Final(digest, &context);
    OPENSSL_free(der);
    return 0;
}

void rules_jwt_key_free(struct rules_jwt_key *key)
{
    EVP_PKEY_free(key->public_key);
    key->public_key = NULL;
    if (key->secret.data)
        OPENSSL_cleanse((char *)(uintptr_t)key->secret.data, key->secret.size);
}
