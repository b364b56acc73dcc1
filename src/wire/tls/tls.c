/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions; see tls.h */
#include "wire/tls/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tls/client_hello.h"
#include "wire/tls/context.h"
#include "wire/tls/names.h"

/* A session that has nothing on its way keeps buffers up to this size; larger ones are freed, so
 * that thousands of idle connections stay small. */
#define QUEUE_KEPT 4096

/* Bytes that wait: data[at..used). */
struct queue {
    char *data;
    size_t at, used, size;
};

struct weir_tls {
    SSL *ssl;
    struct weir_tls_context *context;
    struct queue in, out; /* encrypted */
    struct queue early;   /* plain, written before the handshake was done */
    struct weir_bytes common_name, name;
    char ja4[WEIR_JA4_SIZE + 1]; /* empty: none */
    bool ready, failed, ended, peer_ended;
    char error[128];
};

/* --- Queues ----------------------------------------------------------------------------------- */

static int queue_put(struct queue *queue, const char *data, size_t size)
{
    if (queue->at) {
        memmove(queue->data, queue->data + queue->at, queue->used - queue->at);
        queue->used -= queue->at;
        queue->at = 0;
    }
    if (size > queue->size - queue->used) {
        size_t wanted = queue->size ? queue->size : QUEUE_KEPT;
        while (wanted - queue->used < size)
            wanted *= 2;
        char *grown = realloc(queue->data, wanted);
        if (!grown)
            return WEIR_ERR_MEMORY;
        queue->data = grown;
        queue->size = wanted;
    }
    memcpy(queue->data + queue->used, data, size);
    queue->used += size;
    return 0;
}

/* What the queue holds. One that was never used has no memory, in which nothing can be pointed at.
 */
static struct weir_bytes queue_held(const struct queue *queue)
{
    size_t size = queue->used - queue->at;
    return (struct weir_bytes){size ? queue->data + queue->at : NULL, size};
}

static void queue_free(struct queue *queue)
{
    free(queue->data);
    *queue = (struct queue){0};
}

static void queue_drop(struct queue *queue, size_t size)
{
    queue->at += size;
    if (queue->at < queue->used)
        return;
    if (queue->size > QUEUE_KEPT)
        queue_free(queue);
    queue->at = queue->used = 0;
}

/* --- What OpenSSL reads from and writes to ---------------------------------------------------- */

static int bio_write(BIO *bio, const char *data, int size)
{
    struct weir_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    return size > 0 && queue_put(&tls->out, data, (size_t)size) == 0 ? size : -1;
}

static int bio_read(BIO *bio, char *out, int size)
{
    struct weir_tls *tls = BIO_get_data(bio);
    struct weir_bytes held = queue_held(&tls->in);
    BIO_clear_retry_flags(bio);
    if (!held.size || size <= 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = held.size < (size_t)size ? held.size : (size_t)size;
    memcpy(out, held.data, n);
    queue_drop(&tls->in, n);
    return (int)n;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *weir_tls_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir");
    if (method && BIO_meth_set_write(method, bio_write) && BIO_meth_set_read(method, bio_read) &&
        BIO_meth_set_ctrl(method, bio_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* --- Failing ---------------------------------------------------------------------------------- */

static int session_fail(struct weir_tls *tls)
{
    unsigned long error = ERR_peek_last_error();
    long verified = SSL_get_verify_result(tls->ssl);
    const char *why = error ? ERR_reason_error_string(error) : NULL;
    tls->failed = true;
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK)
        why = verified == X509_V_ERR_APPLICATION_VERIFICATION
                  ? "the client's certificate has none of the allowed names"
                  : X509_verify_cert_error_string(verified);
    snprintf(tls->error, sizeof tls->error, "%s", why ? why : "the TLS session failed");
    ERR_clear_error();
    return WEIR_ERR_SYNTAX;
}

/* --- Handshake -------------------------------------------------------------------------------- */

static bool take_first(void *context, const struct weir_tls_name *name)
{
    struct weir_bytes *first = context;
    char *copy = name->kind ? malloc(name->text.size) : NULL;
    if (copy) {
        memcpy(copy, name->text.data, name->text.size);
        *first = (struct weir_bytes){copy, name->text.size};
    }
    return true;
}

/* The certificate lives as long as the session, and the common name in it. */
static void learn_peer(struct weir_tls *tls)
{
    const X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    if (!certificate || !tls->context->verifies)
        return;
    tls->common_name = weir_tls_common_name(certificate);
    weir_tls_each_name(certificate, take_first, &tls->name);
}

static int session_write(struct weir_tls *tls, const char *data, size_t size)
{
    size_t written;
    ERR_clear_error();
    if (size && SSL_write_ex(tls->ssl, data, size, &written) != 1) {
        session_fail(tls);
        return WEIR_ERR_IO;
    }
    return 0;
}

static int session_shake(struct weir_tls *tls)
{
    ERR_clear_error();
    int done = SSL_do_handshake(tls->ssl);
    if (done != 1) {
        int error = SSL_get_error(tls->ssl, done);
        return error == SSL_ERROR_WANT_READ ? 0 : session_fail(tls);
    }
    tls->ready = true;
    learn_peer(tls);
    struct weir_bytes early = queue_held(&tls->early);
    int err = session_write(tls, early.data, early.size);
    queue_free(&tls->early);
    return err;
}

/* OpenSSL has read a message, whole and with its head of 4 bytes. The client's first one says what
 * it is; a second hello, to a retry, is an answer to us. */
static void on_message(int is_sent, int version, int type, const void *data, size_t size, SSL *ssl,
                       void *session)
{
    struct weir_tls *tls = session;
    const uint8_t *message = data;
    struct weir_client_hello hello;
    (void)version;
    if (is_sent || type != SSL3_RT_HANDSHAKE || size < SSL3_HM_HEADER_LENGTH)
        return;
    SSL_set_msg_callback(ssl, NULL);
    if (message[0] == SSL3_MT_CLIENT_HELLO &&
        weir_client_hello_parse(&hello, message + SSL3_HM_HEADER_LENGTH,
                                size - SSL3_HM_HEADER_LENGTH) == 0)
        weir_client_hello_ja4(&hello, tls->ja4);
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* The name is checked as an address where it is one: certificates tell them apart. */
static bool expect_server(struct weir_tls *tls, const char *server_name)
{
    X509_VERIFY_PARAM *verify = SSL_get0_param(tls->ssl);
    unsigned char address[16];
    bool is_address = inet_pton(AF_INET, server_name, address) == 1 ||
                      inet_pton(AF_INET6, server_name, address) == 1;
    if (is_address)
        return !tls->context->verifies || X509_VERIFY_PARAM_set1_ip_asc(verify, server_name) == 1;
    X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(tls->ssl, server_name) == 1 &&
           (!tls->context->verifies || X509_VERIFY_PARAM_set1_host(verify, server_name, 0) == 1);
}

static bool session_make(struct weir_tls *tls, const char *server_name)
{
    BIO *bio = BIO_new(tls->context->bio);
    tls->ssl = SSL_new(tls->context->ssl);
    if (!bio || !tls->ssl) {
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    if (tls->context->server) {
        SSL_set_accept_state(tls->ssl);
        SSL_set_msg_callback(tls->ssl, on_message);
        SSL_set_msg_callback_arg(tls->ssl, tls);
        return true;
    }
    SSL_set_connect_state(tls->ssl);
    return (!server_name || expect_server(tls, server_name)) && session_shake(tls) == 0;
}

int weir_tls_open(struct weir_tls **out, struct weir_tls_context *context, const char *server_name)
{
    *out = NULL;
    struct weir_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return WEIR_ERR_MEMORY;
    tls->context = weir_tls_ref(context);
    if (!session_make(tls, server_name)) {
        weir_tls_close(tls);
        ERR_clear_error();
        return WEIR_ERR_MEMORY;
    }
    *out = tls;
    return 0;
}

void weir_tls_close(struct weir_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl); /* and its BIO */
    weir_tls_unref(tls->context);
    queue_free(&tls->in);
    queue_free(&tls->out);
    queue_free(&tls->early);
    free((char *)(uintptr_t)tls->name.data);
    free(tls);
}

/* --- Bytes ------------------------------------------------------------------------------------ */

int weir_tls_receive(struct weir_tls *tls, const char *data, size_t size)
{
    if (tls->failed)
        return WEIR_ERR_SYNTAX;
    if (size && queue_put(&tls->in, data, size) < 0)
        return WEIR_ERR_MEMORY;
    if (tls->ready)
        return 0;
    return session_shake(tls) < 0 ? WEIR_ERR_SYNTAX : 0;
}

long weir_tls_read(struct weir_tls *tls, char *out, size_t size)
{
    size_t n = 0;
    if (tls->failed || tls->peer_ended)
        return -1;
    if (!tls->ready || !size)
        return 0;
    ERR_clear_error();
    int done = SSL_read_ex(tls->ssl, out, size, &n);
    if (done == 1)
        return (long)n;
    int error = SSL_get_error(tls->ssl, done);
    if (error == SSL_ERROR_WANT_READ)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        tls->peer_ended = true;
    else
        session_fail(tls);
    return -1;
}

int weir_tls_write(struct weir_tls *tls, const char *data, size_t size)
{
    if (tls->failed || tls->ended)
        return WEIR_ERR_IO;
    if (!tls->ready)
        return size ? queue_put(&tls->early, data, size) : 0;
    return session_write(tls, data, size);
}

void weir_tls_end(struct weir_tls *tls)
{
    if (tls->failed || tls->ended || !tls->ready)
        return;
    tls->ended = true;
    ERR_clear_error();
    if (SSL_shutdown(tls->ssl) < 0)
        session_fail(tls);
}

struct weir_bytes weir_tls_pending(struct weir_tls *tls)
{
    return queue_held(&tls->out);
}

void weir_tls_sent(struct weir_tls *tls, size_t size)
{
    queue_drop(&tls->out, size);
}

/* --- What is known ---------------------------------------------------------------------------- */

bool weir_tls_midway(const struct weir_tls *tls)
{
    return !tls->failed && (!tls->ready || tls->in.used > tls->in.at || SSL_has_pending(tls->ssl));
}

bool weir_tls_ready(const struct weir_tls *tls)
{
    return tls->ready;
}

struct weir_bytes weir_tls_alpn(const struct weir_tls *tls)
{
    const unsigned char *name;
    unsigned size;
    SSL_get0_alpn_selected(tls->ssl, &name, &size);
    return (struct weir_bytes){(const char *)name, size};
}

struct weir_bytes weir_tls_peer_common_name(const struct weir_tls *tls)
{
    return tls->common_name;
}

struct weir_bytes weir_tls_peer_name(const struct weir_tls *tls)
{
    return tls->name;
}

struct weir_bytes weir_tls_ja4(const struct weir_tls *tls)
{
    return (struct weir_bytes){tls->ja4[0] ? tls->ja4 : NULL, tls->ja4[0] ? WEIR_JA4_SIZE : 0};
}

const char *weir_tls_error(const struct weir_tls *tls)
{
    return tls->error;
}
