/* SPDX-License-Identifier: Apache-2.0 */
/* see token_maker.h */
#include "token_maker.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include "core/text/base64url.h"

static const char *const headers[] = {
    [TOKEN_RS256] = "{\"alg\":\"RS256\",\"kid\":\"rsa\"}",
    [TOKEN_ES256] = "{\"alg\":\"ES256\",\"kid\":\"ec\"}",
    [TOKEN_HS256] = "{\"alg\":\"HS256\",\"kid\":\"hs\"}",
};

static void need(int holds)
{
    if (!holds) {
        fputs("token_maker: OpenSSL would not\n", stderr);
        abort();
    }
}

void token_maker_open(struct token_maker *maker)
{
    maker->rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    maker->ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    need(maker->rsa != NULL && maker->ec != NULL);
    need(RAND_bytes(maker->secret, sizeof(maker->secret)) == 1);
}

void token_maker_close(struct token_maker *maker)
{
    EVP_PKEY_free(maker->rsa);
    EVP_PKEY_free(maker->ec);
}

static size_t put(char *text, const void *bytes, size_t size)
{
    size_t length = weir_base64url_write(bytes, size, text);
    text[length] = '\0';
    return length;
}

static void put_number(const EVP_PKEY *key, const char *name, int size, char *text)
{
    unsigned char bytes[512];
    BIGNUM *number = NULL;
    need(EVP_PKEY_get_bn_param(key, name, &number) == 1);
    int used = size > 0 ? size : BN_num_bytes(number);
    need(BN_bn2binpad(number, bytes, used) == used);
    put(text, bytes, (size_t)used);
    BN_free(number);
}

void token_maker_set(const struct token_maker *maker, int with_ids, char set[TOKEN_SET_MAX])
{
    char n[700], e[16], x[64], y[64], k[64];
    put_number(maker->rsa, OSSL_PKEY_PARAM_RSA_N, 0, n);
    put_number(maker->rsa, OSSL_PKEY_PARAM_RSA_E, 0, e);
    put_number(maker->ec, OSSL_PKEY_PARAM_EC_PUB_X, 32, x);
    put_number(maker->ec, OSSL_PKEY_PARAM_EC_PUB_Y, 32, y);
    put(k, maker->secret, sizeof(maker->secret));
    snprintf(set, TOKEN_SET_MAX,
             "{\"keys\": [{\"kty\": \"RSA\", \"n\": \"%s\", \"e\": \"%s\"%s},\n"
             "{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": \"%s\", \"y\": \"%s\"%s},\n"
             "{\"kty\": \"oct\", \"k\": \"%s\"%s}]}\n",
             n, e, with_ids ? ", \"kid\": \"rsa\"" : "", x, y, with_ids ? ", \"kid\": \"ec\"" : "",
             k, with_ids ? ", \"kid\": \"hs\"" : "");
}

void token_maker_pem(EVP_PKEY *key, char pem[TOKEN_SET_MAX])
{
    BIO *file = BIO_new(BIO_s_mem());
    need(file != NULL && PEM_write_bio_PUBKEY(file, key) == 1);
    int size = BIO_read(file, pem, TOKEN_SET_MAX - 1);
    need(size > 0);
    pem[size] = '\0';
    BIO_free(file);
}

static size_t sign(EVP_PKEY *key, const char *text, size_t size, unsigned char *signature)
{
    size_t used = 512;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    need(context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
         EVP_DigestSign(context, signature, &used, (const unsigned char *)text, size) == 1);
    EVP_MD_CTX_free(context);
    return used;
}

static size_t sign_ec(EVP_PKEY *key, const char *text, size_t size, unsigned char *signature)
{
    unsigned char der[512];
    const unsigned char *at = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)sign(key, text, size, der));
    need(pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, 32) == 32 &&
         BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + 32, 32) == 32);
    ECDSA_SIG_free(pair);
    return 64;
}

size_t token_signature(const struct token_maker *maker, enum token_algorithm algorithm,
                       const char *text, size_t size, unsigned char signature[512])
{
    unsigned used = 0;
    switch (algorithm) {
    case TOKEN_RS256:
        return sign(maker->rsa, text, size, signature);
    case TOKEN_ES256:
        return sign_ec(maker->ec, text, size, signature);
    default:
        need(HMAC(EVP_sha256(), maker->secret, sizeof(maker->secret), (const unsigned char *)text,
                  size, signature, &used) != NULL);
        return used;
    }
}

const char *token_with(const char *header, const char *claims, const unsigned char *signature,
                       size_t size, char token[TOKEN_TEXT_MAX])
{
    need(WEIR_BASE64URL_SIZE(strlen(header)) + WEIR_BASE64URL_SIZE(strlen(claims)) +
             WEIR_BASE64URL_SIZE(size) + 3 <=
         TOKEN_TEXT_MAX);
    size_t used = put(token, header, strlen(header));
    token[used++] = '.';
    used += put(token + used, claims, strlen(claims));
    token[used++] = '.';
    put(token + used, signature, size);
    return token;
}

const char *token_make(const struct token_maker *maker, enum token_algorithm algorithm,
                       const char *header, const char *claims, char token[TOKEN_TEXT_MAX])
{
    unsigned char signature[512] = {0};
    token_with(header, claims, signature, 0, token);
    size_t size = token_signature(maker, algorithm, token, strlen(token) - 1, signature);
    return token_with(header, claims, signature, size, token);
}

const char *token_of(const struct token_maker *maker, enum token_algorithm algorithm,
                     const char *claims, char token[TOKEN_TEXT_MAX])
{
    return token_make(maker, algorithm, headers[algorithm], claims, token);
}
