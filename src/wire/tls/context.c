/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: certificates, keys, what is allowed; see tls.h */
#include "wire/tls/context.h"
#include "wire/tls/names.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* TLS 1.2 with forward secrecy and AEAD only: what HTTP/2 demands (RFC 9113 9.2.2) and every
 * client of the last ten years has. TLS 1.3 has nothing else. */
#define CIPHERS_TLS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* --- Files ------------------------------------------------------------------------------------ */

/* Says what OpenSSL holds against a file. */
static int file_refuse(struct weir_reason *reason, const char *file, const char *fallback)
{
    unsigned long error = ERR_peek_error();
    const char *why = error ? ERR_reason_error_string(error) : NULL;
    int err = ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE ? WEIR_ERR_MEMORY : WEIR_ERR_SYNTAX;
    snprintf(reason->text, sizeof reason->text, "%.150s: %.80s", file, why ? why : fallback);
    ERR_clear_error();
    return err;
}

/* Distinguishes a file that cannot be read from one with wrong contents. A pipe would be
 * waited for, and with it the renewal of certificates. */
static int file_check(const char *file, struct weir_reason *reason)
{
    struct stat status;
    const char *why = "not a regular file";
    if (access(file, R_OK) < 0 || stat(file, &status) < 0)
        why = strerror(errno);
    else if (S_ISREG(status.st_mode))
        return 0;
    snprintf(reason->text, sizeof reason->text, "%.150s: %s", file, why);
    return WEIR_ERR_IO;
}

/* A pass phrase cannot be typed in: without this OpenSSL would ask the terminal. */
static int no_password(char *buffer, int size, int writing, void *context)
{
    (void)buffer, (void)size, (void)writing, (void)context;
    return -1;
}

static int load_certificate(SSL_CTX *ssl, const struct weir_tls_options *options,
                            struct weir_reason *reason)
{
    int err = file_check(options->cert_file, reason);
    if (err == 0)
        err = file_check(options->key_file, reason);
    if (err < 0)
        return err;
    if (SSL_CTX_use_certificate_chain_file(ssl, options->cert_file) != 1)
        return file_refuse(reason, options->cert_file, "contains no PEM certificate");
    if (SSL_CTX_use_PrivateKey_file(ssl, options->key_file, SSL_FILETYPE_PEM) != 1)
        return file_refuse(reason, options->key_file,
                           "contains no PEM private key without a pass phrase");
    if (SSL_CTX_check_private_key(ssl) != 1)
        return file_refuse(reason, options->key_file, "does not belong to the certificate");
    return 0;
}

/* If all authorities have expired, every client would be refused later, one by one. */
static bool has_valid(X509_STORE *store)
{
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);
    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        const X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        if (certificate && X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0)
            return true;
    }
    return false;
}

static int load_authorities(struct weir_tls_context *context, const char *file,
                            struct weir_reason *reason)
{
    int err = file_check(file, reason);
    if (err < 0)
        return err;
    if (SSL_CTX_load_verify_file(context->ssl, file) != 1)
        return file_refuse(reason, file, "contains no PEM certificate");
    if (!has_valid(SSL_CTX_get_cert_store(context->ssl)))
        return file_refuse(reason, file, "every certificate in it has expired");
    if (!context->server)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(file); /* sent to clients */
    if (!names)
        return file_refuse(reason, file, "contains no PEM certificate");
    SSL_CTX_set_client_CA_list(context->ssl, names);
    return 0;
}

/* --- Who may come ----------------------------------------------------------------------------- */

/* Asked once for each certificate of a chain that OpenSSL has found good or bad. */
static int on_verify(int good, X509_STORE_CTX *store)
{
    if (!good || X509_STORE_CTX_get_error_depth(store) != 0)
        return good;
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct weir_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (!context->name_count || weir_tls_name_allowed(X509_STORE_CTX_get_current_cert(store),
                                                      context->names, context->name_count))
        return 1;
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

/* RFC 7301 3.2: no protocol in common ends the handshake; a client that names none is let pass. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                   const unsigned char *in, unsigned in_size, void *data)
{
    const struct weir_tls_context *context = data;
    unsigned char *chosen;
    (void)ssl;
    if (SSL_select_next_proto(&chosen, out_size, context->alpn, context->alpn_size, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int set_alpn(struct weir_tls_context *context, const struct weir_tls_options *options)
{
    if (!options->alpn_count)
        return 0;
    size_t size = 0;
    for (unsigned i = 0; i < options->alpn_count; i++)
        size += 1 + strlen(options->alpn[i]);
    context->alpn = malloc(size);
    if (!context->alpn)
        return WEIR_ERR_MEMORY;
    for (unsigned i = 0; i < options->alpn_count; i++) {
        size_t length = strlen(options->alpn[i]);
        context->alpn[context->alpn_size++] = (unsigned char)length;
        memcpy(context->alpn + context->alpn_size, options->alpn[i], length);
        context->alpn_size += (unsigned)length;
    }
    if (context->server)
        SSL_CTX_set_alpn_select_cb(context->ssl, on_alpn, context);
    else if (SSL_CTX_set_alpn_protos(context->ssl, context->alpn, context->alpn_size) != 0)
        return WEIR_ERR_MEMORY;
    return 0;
}

static int keep_names(struct weir_tls_context *context, const struct weir_tls_options *options)
{
    if (!options->name_count)
        return 0;
    context->names = calloc(options->name_count, sizeof *context->names);
    if (!context->names)
        return WEIR_ERR_MEMORY;
    for (; context->name_count < options->name_count; context->name_count++) {
        context->names[context->name_count] = strdup(options->names[context->name_count]);
        if (!context->names[context->name_count])
            return WEIR_ERR_MEMORY;
    }
    return 0;
}

/* --- Making ----------------------------------------------------------------------------------- */

static int context_make(struct weir_tls_context *context)
{
    static const unsigned char session_context[] = "weir";
    context->ssl = SSL_CTX_new(context->server ? TLS_server_method() : TLS_client_method());
    context->bio = weir_tls_bio_method();
    if (!context->ssl || !context->bio ||
        SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context->ssl, CIPHERS_TLS_1_2) != 1 ||
        SSL_CTX_set_session_id_context(context->ssl, session_context, sizeof session_context) != 1)
        return WEIR_ERR_MEMORY;
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    /* Sessions are resumed by tickets alone, whose key lives and dies with the context: what one
     * set of certificates and names has let in counts for no other. */
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context->ssl, 1);
    SSL_CTX_set_default_passwd_cb(context->ssl, no_password);
    SSL_CTX_set_app_data(context->ssl, context);
    return 0;
}

static int context_fill(struct weir_tls_context *context, const struct weir_tls_options *options,
                        struct weir_reason *reason)
{
    int err = context_make(context);
    if (err == 0 && options->cert_file)
        err = load_certificate(context->ssl, options, reason);
    if (err == 0 && options->ca_file)
        err = load_authorities(context, options->ca_file, reason);
    else if (err == 0 && !context->server && SSL_CTX_set_default_verify_paths(context->ssl) != 1)
        err = WEIR_ERR_MEMORY;
    if (err == 0)
        err = keep_names(context, options);
    if (err == 0)
        err = set_alpn(context, options);
    if (err < 0)
        return err;
    context->verifies = context->server ? options->ca_file != NULL : !options->insecure;
    if (context->verifies)
        SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           on_verify);
    return 0;
}

static int context_open(struct weir_tls_context **out, bool server,
                        const struct weir_tls_options *options, struct weir_reason *reason)
{
    *out = NULL;
    reason->text[0] = 0;
    if (!options->cert_file != !options->key_file || (server && !options->cert_file)) {
        snprintf(reason->text, sizeof reason->text, "TLS needs a certificate and its key");
        return WEIR_ERR_SYNTAX;
    }
    struct weir_tls_context *context = calloc(1, sizeof *context);
    int err = WEIR_ERR_MEMORY;
    if (context) {
        atomic_init(&context->references, 1);
        context->server = server;
        ERR_clear_error();
        err = context_fill(context, options, reason);
    }
    if (err < 0) {
        if (!reason->text[0])
            snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        weir_tls_unref(context);
        return err;
    }
    *out = context;
    return 0;
}

int weir_tls_server(struct weir_tls_context **context, const struct weir_tls_options *options,
                    struct weir_reason *reason)
{
    return context_open(context, true, options, reason);
}

int weir_tls_client(struct weir_tls_context **context, const struct weir_tls_options *options,
                    struct weir_reason *reason)
{
    return context_open(context, false, options, reason);
}

struct weir_tls_context *weir_tls_ref(struct weir_tls_context *context)
{
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

void weir_tls_unref(struct weir_tls_context *context)
{
    if (!context || atomic_fetch_sub(&context->references, 1) != 1)
        return;
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->bio);
    while (context->name_count)
        free(context->names[--context->name_count]);
    free(context->names);
    free(context->alpn);
    free(context);
}
