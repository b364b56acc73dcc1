/* SPDX-License-Identifier: Apache-2.0 */
/* see tls_certificates.h */
#include "tls_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "temporary.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "certificates: %s failed\n", #condition);                              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static FILE *file_open(const char *folder, const char *base, const char *end, const char *mode)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s%s", folder, base, end);
    FILE *file = fopen(path, mode);
    REQUIRE(file);
    return file;
}

static void extension_add(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    REQUIRE(extension && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static void name_set(X509 *certificate, const struct certificate_options *options)
{
    char text[256];
    size_t size = strlen(options->common_name);
    memcpy(text, options->common_name, size + 1);
    if (options->cn_tail) {
        memcpy(text + size + 1, options->cn_tail, strlen(options->cn_tail));
        size += 1 + strlen(options->cn_tail);
    }
    X509_NAME *name = X509_get_subject_name(certificate);
    REQUIRE(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (unsigned char *)text, (int)size,
                                       -1, 0) == 1);
}

void certificate_make(const char *folder, const char *base,
                      const struct certificate_options *options)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *signing_key = key;
    X509 *certificate = X509_new(), *signer = certificate;
    REQUIRE(key && certificate);
    if (options->signer) {
        FILE *file = file_open(folder, options->signer, ".pem", "r");
        signer = PEM_read_X509(file, NULL, NULL, NULL);
        fclose(file);
        file = file_open(folder, options->signer, ".key", "r");
        signing_key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
        fclose(file);
        REQUIRE(signer && signing_key);
    }
    long valid_s = options->valid_s ? options->valid_s : 3600;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), random() % 1000000 + 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), valid_s < 0 ? valid_s * 2 : -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), valid_s);
    X509_set_pubkey(certificate, key);
    name_set(certificate, options);
    X509_set_issuer_name(certificate, X509_get_subject_name(signer));
    extension_add(certificate, signer, NID_basic_constraints,
                  options->authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (options->names)
        extension_add(certificate, signer, NID_subject_alt_name, options->names);
    REQUIRE(X509_sign(certificate, signing_key, EVP_sha256()) > 0);

    FILE *file = file_open(folder, base, ".pem", "w");
    REQUIRE(PEM_write_X509(file, certificate) == 1 && fclose(file) == 0);
    file = file_open(folder, base, ".key", "w");
    REQUIRE(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    if (options->signer) {
        X509_free(signer);
        EVP_PKEY_free(signing_key);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

char *certificate_folder_make(void)
{
    char *folder = malloc(TEMPORARY_MAX);
    REQUIRE(folder);
    temporary_folder(folder);
    return folder;
}

void certificate_folder_remove(char *folder)
{
    temporary_remove(folder);
    free(folder);
}
