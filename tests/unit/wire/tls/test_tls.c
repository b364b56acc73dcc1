/* SPDX-License-Identifier: Apache-2.0 */
/* wire/tls: handshakes, names, what is refused; peers are sessions of our own, whose bytes the test
 * carries, whole or one by one, and sessions of OpenSSL set to what ours would never do. */
#include "../unit_wire.h"
#include "test.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tls_certificates.h"
#include "wire/tls/tls.h"

static char *folder;
static char paths[24][512];
static unsigned path_count;

/* The path of a file of the test's, good for the present case. */
static const char *in(const char *name)
{
    char *path = paths[path_count++ % 24];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int files_make(void **state)
{
    folder = certificate_folder_make();
    certificate_make(folder, "ca", &(struct certificate_options){"test CA", .authority = true});
    certificate_make(folder, "other-ca",
                     &(struct certificate_options){"other CA", .authority = true});
    certificate_make(folder, "old-ca",
                     &(struct certificate_options){"old CA", .authority = true, .valid_s = -100});
    certificate_make(
        folder, "server",
        &(struct certificate_options){"server", "DNS:weir.example,DNS:*.wild.example,IP:127.0.0.1",
                                      .signer = "ca"});
    certificate_make(folder, "expired",
                     &(struct certificate_options){"expired", "DNS:weir.example", .signer = "ca",
                                                   .valid_s = -100});
    certificate_make(folder, "client",
                     &(struct certificate_options){
                         "the client",
                         "DNS:Client.Example,URI:spiffe://weir/a,email:me@Client.Example,"
                         "IP:192.0.2.7",
                         .signer = "ca"});
    certificate_make(folder, "plain",
                     &(struct certificate_options){"plain.example", .signer = "ca"});
    certificate_make(
        folder, "stranger",
        &(struct certificate_options){"client", "DNS:c.example", .signer = "other-ca"});
    certificate_make(folder, "late-client",
                     &(struct certificate_options){"late", "DNS:client.example", .signer = "ca",
                                                   .valid_s = -100});
    return 0;
}

static int files_remove(void **state)
{
    certificate_folder_remove(folder);
    return 0;
}

/* --- Two sessions, and the wire between them -------------------------------------------------- */

struct pair {
    struct weir_tls_context *server_context, *client_context;
    struct weir_tls *server, *client;
};

static struct weir_tls_options server_options(void)
{
    return (struct weir_tls_options){.cert_file = in("server.pem"), .key_file = in("server.key")};
}

static struct weir_tls_options client_options(void)
{
    return (struct weir_tls_options){.ca_file = in("ca.pem")};
}

static struct pair pair_open(const struct weir_tls_options *server,
                             const struct weir_tls_options *client, const char *server_name)
{
    struct pair pair;
    struct weir_reason reason;
    if (weir_tls_server(&pair.server_context, server, &reason) != 0 ||
        weir_tls_client(&pair.client_context, client, &reason) != 0)
        fail_msg("%s", reason.text);
    assert_int_equal(weir_tls_open(&pair.server, pair.server_context, NULL), 0);
    assert_int_equal(weir_tls_open(&pair.client, pair.client_context, server_name), 0);
    return pair;
}

static void pair_close(struct pair *pair)
{
    weir_tls_close(pair->server);
    weir_tls_close(pair->client);
    weir_tls_unref(pair->server_context);
    weir_tls_unref(pair->client_context);
}

/* Carries what is pending, `step` bytes at a time. Returns how many were carried. */
static size_t carry(struct weir_tls *from, struct weir_tls *to, size_t step)
{
    size_t carried = 0;
    struct weir_bytes bytes;
    while ((bytes = weir_tls_pending(from)).size) {
        size_t n = bytes.size < step ? bytes.size : step;
        char copy[4096];
        n = n < sizeof copy ? n : sizeof copy;
        memcpy(copy, bytes.data, n);
        weir_tls_sent(from, n);
        int err = weir_tls_receive(to, copy, n);
        assert_true(err == 0 || err == WEIR_ERR_SYNTAX);
        carried += n;
    }
    return carried;
}

static void talk(struct pair *pair, size_t step)
{
    while (carry(pair->client, pair->server, step) + carry(pair->server, pair->client, step))
        ;
}

static void assert_reads(struct weir_tls *tls, const char *text)
{
    char out[64] = {0};
    assert_int_equal(weir_tls_read(tls, out, sizeof out), (long)strlen(text));
    assert_string_equal(out, text);
}

/* Both are ready, and what one says the other reads. */
static void assert_talk(struct pair *pair, size_t step)
{
    talk(pair, step);
    assert_true(weir_tls_ready(pair->client) && weir_tls_ready(pair->server));
    assert_int_equal(weir_tls_write(pair->client, "question", 8), 0);
    talk(pair, step);
    assert_reads(pair->server, "question");
    assert_int_equal(weir_tls_write(pair->server, "answer", 6), 0);
    talk(pair, step);
    assert_reads(pair->client, "answer");
}

/* The server refuses the client; both know it. */
static void assert_server_refuses(const struct weir_tls_options *server,
                                  const struct weir_tls_options *client, const char *why)
{
    char out[8];
    struct pair pair = pair_open(server, client, "weir.example");
    talk(&pair, 4096);
    assert_false(weir_tls_ready(pair.server));
    assert_string_equal(weir_tls_error(pair.server), why);
    assert_int_equal(weir_tls_read(pair.server, out, sizeof out), -1);
    assert_int_equal(weir_tls_read(pair.client, out, sizeof out), -1);
    assert_int_equal(weir_tls_write(pair.server, "x", 1), WEIR_ERR_IO);
    assert_int_equal(weir_tls_receive(pair.server, "x", 1), WEIR_ERR_SYNTAX);
    pair_close(&pair);
}

static void assert_client_refuses(const struct weir_tls_options *server,
                                  const struct weir_tls_options *client, const char *name,
                                  const char *why)
{
    struct pair pair = pair_open(server, client, name);
    talk(&pair, 4096);
    assert_false(weir_tls_ready(pair.client));
    assert_false(weir_tls_ready(pair.server));
    assert_string_equal(weir_tls_error(pair.client), why);
    pair_close(&pair);
}

static void assert_both_ready(const struct weir_tls_options *server,
                              const struct weir_tls_options *client, const char *name)
{
    struct pair pair = pair_open(server, client, name);
    assert_talk(&pair, 4096);
    pair_close(&pair);
}

/* --- Cases ------------------------------------------------------------------------------------ */

TEST("a server's session has the fingerprint of its client")
{
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_null(weir_tls_ja4(pair.server).data);
    talk(&pair, 1);
    assert_true(weir_tls_ready(pair.server));
    struct weir_bytes ja4 = weir_tls_ja4(pair.server);
    assert_int_equal(ja4.size, 36);
    assert_memory_equal(ja4.data, "t13d", 4);
    assert_memory_equal(ja4.data + 8, "00_", 3);
    assert_null(weir_tls_ja4(pair.client).data);
    pair_close(&pair);
}

TEST("two sessions talk")
{
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_false(weir_tls_ready(pair.server));
    assert_talk(&pair, 4096);
    assert_null(weir_tls_peer_common_name(pair.server).data);
    assert_null(weir_tls_peer_name(pair.server).data);
    assert_int_equal(weir_tls_alpn(pair.server).size, 0);
    pair_close(&pair);
}

TEST("the wire may cut at every byte")
{
    struct weir_tls_options server = server_options(), client = client_options();
    client.cert_file = in("client.pem");
    client.key_file = in("client.key");
    server.ca_file = in("ca.pem");
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_talk(&pair, 1);
    pair_close(&pair);
}

TEST("a client may write before the handshake")
{
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_int_equal(weir_tls_write(pair.client, "early ", 6), 0);
    assert_int_equal(weir_tls_write(pair.client, "words", 5), 0);
    talk(&pair, 4096);
    assert_reads(pair.server, "early words");
    pair_close(&pair);
}

TEST("much data comes through")
{
    enum { SIZE = 300000 };
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    talk(&pair, 4096);
    char *sent = malloc(SIZE), *got = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 2654435761u >> 24);
    assert_int_equal(weir_tls_write(pair.server, sent, SIZE), 0);
    size_t have = 0;
    struct weir_bytes bytes;
    while ((bytes = weir_tls_pending(pair.server)).size) {
        size_t n = bytes.size < 65536 ? bytes.size : 65536;
        assert_int_equal(weir_tls_receive(pair.client, bytes.data, n), 0);
        weir_tls_sent(pair.server, n);
        long read;
        while ((read = weir_tls_read(pair.client, got + have, SIZE - have)) > 0)
            have += (size_t)read;
        assert_int_equal(read, 0);
    }
    assert_int_equal(have, SIZE);
    assert_memory_equal(sent, got, SIZE);
    free(sent);
    free(got);
    pair_close(&pair);
}

TEST("close notify ends the reading")
{
    char out[8];
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    talk(&pair, 4096);
    assert_int_equal(weir_tls_write(pair.client, "last", 4), 0);
    weir_tls_end(pair.client);
    assert_int_equal(weir_tls_write(pair.client, "x", 1), WEIR_ERR_IO);
    talk(&pair, 4096);
    assert_reads(pair.server, "last");
    assert_int_equal(weir_tls_read(pair.server, out, sizeof out), -1);
    assert_int_equal(weir_tls_write(pair.server, "reply", 5), 0);
    talk(&pair, 4096);
    assert_reads(pair.client, "reply");
    pair_close(&pair);
}

TEST("a client checks the server")
{
    struct weir_tls_options server = server_options(), client = client_options();
    assert_both_ready(&server, &client, "a.wild.example");
    assert_both_ready(&server, &client, "127.0.0.1");
    assert_both_ready(&server, &client, NULL);
    assert_client_refuses(&server, &client, "else.example", "hostname mismatch");
    assert_client_refuses(&server, &client, "127.0.0.2", "IP address mismatch");
    client.ca_file = in("other-ca.pem");
    assert_client_refuses(&server, &client, "weir.example",
                          "unable to get local issuer certificate");
    client.ca_file = in("ca.pem");
    server.cert_file = in("expired.pem");
    server.key_file = in("expired.key");
    assert_client_refuses(&server, &client, "weir.example", "certificate has expired");
    client.insecure = true;
    assert_both_ready(&server, &client, "else.example");
}

TEST("a server asks for certificates")
{
    struct weir_tls_options server = server_options(), client = client_options();
    server.ca_file = in("ca.pem");
    assert_server_refuses(&server, &client, "peer did not return a certificate");
    client.cert_file = in("stranger.pem");
    client.key_file = in("stranger.key");
    assert_server_refuses(&server, &client, "unable to get local issuer certificate");
    client.cert_file = in("late-client.pem");
    client.key_file = in("late-client.key");
    assert_server_refuses(&server, &client, "certificate has expired");
    client.cert_file = in("client.pem");
    client.key_file = in("client.key");
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_talk(&pair, 4096);
    struct weir_bytes cn = weir_tls_peer_common_name(pair.server);
    struct weir_bytes name = weir_tls_peer_name(pair.server);
    assert_int_equal(cn.size, 10);
    assert_memory_equal(cn.data, "the client", 10);
    assert_int_equal(name.size, 14);
    assert_memory_equal(name.data, "Client.Example", 14);
    pair_close(&pair);
}

TEST("allowed names are matched by kind")
{
    static const struct {
        const char *certificate, *allowed;
        bool matches;
    } cases[] = {
        {"client", "client.example", true},
        {"client", "CLIENT.EXAMPLE", true},
        {"client", "*.example", true},
        {"client", "*.client.example", false},
        {"client", "*.xample", false},
        {"client", "example", false},
        {"client", "lient.example", false},
        {"client", "spiffe://weir/a", true},
        {"client", "spiffe://weir/A", false},
        {"client", "spiffe://weir", false},
        {"client", "me@client.example", true},
        {"client", "Me@client.example", false},
        {"client", "you@client.example", false},
        {"client", "192.0.2.7", true},
        {"client", "192.0.2.8", false},
        {"client", "the client", false}, /* it has SAN entries: its common name does not count */
        {"plain", "plain.example", true},
        {"plain", "*.example", true},
        {"plain", "spiffe://weir/a", false},
    };
    const char *no = "the client's certificate has none of the allowed names";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char cert[64], key[64];
        const char *names[] = {"nobody.example", cases[i].allowed};
        struct weir_tls_options server = server_options(), client = client_options();
        server.ca_file = in("ca.pem");
        server.names = names;
        server.name_count = 2;
        snprintf(cert, sizeof cert, "%s.pem", cases[i].certificate);
        snprintf(key, sizeof key, "%s.key", cases[i].certificate);
        client.cert_file = in(cert);
        client.key_file = in(key);
        if (cases[i].matches)
            assert_both_ready(&server, &client, "weir.example");
        else
            assert_server_refuses(&server, &client, no);
    }
}

TEST("a name with a nul is no name")
{
    const char *names[] = {"good.example"};
    certificate_make(
        folder, "nul",
        &(struct certificate_options){"good.example", .signer = "ca", .cn_tail = ".evil"});
    struct weir_tls_options server = server_options(), client = client_options();
    server.ca_file = in("ca.pem");
    server.names = names;
    server.name_count = 1;
    client.cert_file = in("nul.pem");
    client.key_file = in("nul.key");
    assert_server_refuses(&server, &client,
                          "the client's certificate has none of the allowed names");
}

TEST("alpn takes the servers choice")
{
    const char *both[] = {"h2", "http/1.1"}, *turned[] = {"http/1.1", "h2"}, *other[] = {"spdy"};
    struct weir_tls_options server = server_options(), client = client_options();
    server.alpn = both;
    client.alpn = turned;
    server.alpn_count = client.alpn_count = 2;
    struct pair pair = pair_open(&server, &client, "weir.example");
    assert_talk(&pair, 4096);
    assert_int_equal(weir_tls_alpn(pair.server).size, 2);
    assert_memory_equal(weir_tls_alpn(pair.client).data, "h2", 2);
    pair_close(&pair);
    client.alpn_count = 0;
    assert_both_ready(&server, &client, "weir.example");
    client.alpn = other;
    client.alpn_count = 1;
    assert_client_refuses(&server, &client, "weir.example", "tlsv1 alert no application protocol");
}

TEST("a resumed session still knows its peer")
{
    const char *names[] = {"client.example"};
    struct weir_tls_options server = server_options();
    struct weir_reason reason;
    server.ca_file = in("ca.pem");
    server.names = names;
    server.name_count = 1;
    struct weir_tls_context *context;
    assert_int_equal(weir_tls_server(&context, &server, &reason), 0);
    SSL_CTX *client = SSL_CTX_new(TLS_client_method());
    SSL_CTX_use_certificate_chain_file(client, in("client.pem"));
    SSL_CTX_use_PrivateKey_file(client, in("client.key"), SSL_FILETYPE_PEM);
    SSL_SESSION *session = NULL;
    for (int round = 0; round < 2; round++) {
        SSL *ssl = SSL_new(client);
        BIO *ours, *theirs;
        struct weir_tls *tls;
        char bytes[8192], byte;
        BIO_new_bio_pair(&ours, 65536, &theirs, 65536);
        SSL_set_bio(ssl, theirs, theirs);
        SSL_set_connect_state(ssl);
        if (session)
            SSL_set_session(ssl, session);
        assert_int_equal(weir_tls_open(&tls, context, NULL), 0);
        for (int i = 0; i < 4; i++) {
            SSL_read(ssl, &byte, 1);
            int n = BIO_read(ours, bytes, sizeof bytes);
            if (n > 0)
                assert_int_equal(weir_tls_receive(tls, bytes, (size_t)n), 0);
            struct weir_bytes out = weir_tls_pending(tls);
            if (out.size)
                assert_int_equal(BIO_write(ours, out.data, (int)out.size), (int)out.size);
            weir_tls_sent(tls, out.size);
        }
        assert_true(weir_tls_ready(tls));
        assert_int_equal(SSL_session_reused(ssl), round);
        assert_int_equal(weir_tls_peer_name(tls).size, 14);
        SSL_SESSION_free(session);
        session = SSL_get1_session(ssl);
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN); /* else it counts as one not to be resumed */
        SSL_free(ssl);
        BIO_free(ours);
        weir_tls_close(tls);
    }
    SSL_SESSION_free(session);
    SSL_CTX_free(client);
    weir_tls_unref(context);
}

/* --- Peers that misbehave --------------------------------------------------------------------- */

static struct weir_tls *server_session(struct weir_tls_context **context)
{
    struct weir_tls_options options = server_options();
    struct weir_reason reason;
    struct weir_tls *tls;
    assert_int_equal(weir_tls_server(context, &options, &reason), 0);
    assert_int_equal(weir_tls_open(&tls, *context, NULL), 0);
    return tls;
}

/* A handshake of OpenSSL's client, set up by the test, with our server. Returns whether ours is
 * ready; leaves the client open for more. */
static bool shake(SSL *ssl, BIO *ours, struct weir_tls *tls)
{
    char bytes[8192];
    for (int i = 0; i < 4; i++) {
        SSL_do_handshake(ssl);
        int n = BIO_read(ours, bytes, sizeof bytes);
        if (n > 0 && weir_tls_receive(tls, bytes, (size_t)n) != 0)
            return false;
        struct weir_bytes out = weir_tls_pending(tls);
        if (out.size)
            BIO_write(ours, out.data, (int)out.size);
        weir_tls_sent(tls, out.size);
    }
    return weir_tls_ready(tls);
}

TEST("only tls 1 2 and 1 3 are spoken")
{
    static const int versions[] = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 4; i++) {
        struct weir_tls_context *context;
        struct weir_tls *tls = server_session(&context);
        SSL_CTX *client = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_security_level(client, 0);
        SSL_CTX_set_cipher_list(client, "ALL:@SECLEVEL=0");
        SSL_CTX_set_min_proto_version(client, versions[i]);
        SSL_CTX_set_max_proto_version(client, versions[i]);
        SSL *ssl = SSL_new(client);
        BIO *ours, *theirs;
        BIO_new_bio_pair(&ours, 65536, &theirs, 65536);
        SSL_set_bio(ssl, theirs, theirs);
        SSL_set_connect_state(ssl);
        assert_int_equal(shake(ssl, ours, tls), i >= 2);
        if (i < 2)
            assert_string_equal(weir_tls_error(tls), "unsupported protocol");
        SSL_free(ssl);
        BIO_free(ours);
        SSL_CTX_free(client);
        weir_tls_close(tls);
        weir_tls_unref(context);
    }
}

TEST("renegotiation is refused")
{
    struct weir_tls_context *context;
    struct weir_tls *tls = server_session(&context);
    SSL_CTX *client = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(client, TLS1_2_VERSION);
    SSL *ssl = SSL_new(client);
    BIO *ours, *theirs;
    BIO_new_bio_pair(&ours, 65536, &theirs, 65536);
    SSL_set_bio(ssl, theirs, theirs);
    SSL_set_connect_state(ssl);
    assert_true(shake(ssl, ours, tls));
    assert_int_equal(SSL_renegotiate(ssl), 1);
    SSL_do_handshake(ssl);
    char bytes[8192], out[8];
    int n = BIO_read(ours, bytes, sizeof bytes);
    assert_true(n > 0);
    assert_int_equal(weir_tls_receive(tls, bytes, (size_t)n), 0);
    assert_true(weir_tls_read(tls, out, sizeof out) <= 0);
    struct weir_bytes alert = weir_tls_pending(tls);
    assert_true(alert.size > 5 && alert.data[0] == 21); /* not a handshake record */
    BIO_write(ours, alert.data, (int)alert.size);
    assert_true(SSL_do_handshake(ssl) < 0);
    SSL_free(ssl);
    BIO_free(ours);
    SSL_CTX_free(client);
    weir_tls_close(tls);
    weir_tls_unref(context);
}

TEST("garbage fails at once")
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n\r\n", "*1\r\n$4\r\nPING\r\n",
                                          "\x16\x03\x01\xff\xff\xff\xff"};
    static const size_t sizes[] = {18, 14, 7};
    for (size_t i = 0; i < 3; i++) {
        char out[8];
        struct weir_tls_context *context;
        struct weir_tls *tls = server_session(&context);
        assert_int_equal(weir_tls_receive(tls, garbage[i], sizes[i]), WEIR_ERR_SYNTAX);
        assert_true(strlen(weir_tls_error(tls)) > 0);
        assert_int_equal(weir_tls_read(tls, out, sizeof out), -1);
        weir_tls_close(tls);
        weir_tls_unref(context);
    }
}

/* Whatever byte of a good conversation is changed: an error or nothing, never other words. */
TEST("a changed byte never passes")
{
    struct weir_tls_options server = server_options(), client = client_options();
    for (size_t at = 0; at < 60; at++) {
        char out[16];
        struct pair pair = pair_open(&server, &client, "weir.example");
        talk(&pair, 4096);
        assert_int_equal(weir_tls_write(pair.client, "question", 8), 0);
        struct weir_bytes bytes = weir_tls_pending(pair.client);
        char copy[64];
        assert_true(bytes.size <= sizeof copy);
        memcpy(copy, bytes.data, bytes.size);
        if (at < bytes.size) {
            copy[at] ^= 1;
            assert_int_equal(weir_tls_receive(pair.server, copy, bytes.size), 0);
            long n = weir_tls_read(pair.server, out, sizeof out);
            assert_true(n <= 0);
        }
        pair_close(&pair);
    }
}

TEST("bad files are named")
{
    struct weir_tls_context *context;
    struct weir_reason reason;
    struct weir_tls_options options = server_options();
    FILE *file = fopen(in("text.pem"), "w");
    fputs("no certificate at all\n", file);
    fclose(file);

    options.cert_file = in("absent.pem");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_IO);
    assert_null(context);
    assert_non_null(strstr(reason.text, "absent.pem: No such file"));
    assert_int_equal(mkfifo(in("pipe.pem"), 0600), 0); /* nobody waits for who may write to it */
    options.cert_file = in("pipe.pem");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "pipe.pem: not a regular file"));
    options.cert_file = in("text.pem");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_SYNTAX);
    assert_non_null(strstr(reason.text, "text.pem: "));
    options = server_options();
    options.key_file = in("client.key");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_SYNTAX);
    assert_non_null(strstr(reason.text, "client.key: key values mismatch"));
    options = server_options();
    options.ca_file = in("old-ca.pem");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_SYNTAX);
    assert_non_null(strstr(reason.text, "old-ca.pem: every certificate in it has expired"));
    options.ca_file = in("text.pem");
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_SYNTAX);
    options = (struct weir_tls_options){.cert_file = in("server.pem")};
    assert_int_equal(weir_tls_server(&context, &options, &reason), WEIR_ERR_SYNTAX);
    assert_string_equal(reason.text, "TLS needs a certificate and its key");
}

TEST("a context outlives its owner for its sessions")
{
    struct weir_tls_options server = server_options(), client = client_options();
    struct pair pair = pair_open(&server, &client, "weir.example");
    weir_tls_unref(pair.server_context);
    weir_tls_unref(pair.client_context);
    pair.server_context = pair.client_context = NULL;
    assert_talk(&pair, 4096);
    pair_close(&pair);
}

RUN_TESTS_WITH(files_make, files_remove)
