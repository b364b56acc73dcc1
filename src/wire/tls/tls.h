/* SPDX-License-Identifier: Apache-2.0 */
/* TLS as a codec: encrypted bytes in, plain bytes out, and back; no sockets (OpenSSL over memory
 * BIOs). TLS 1.2 and 1.3 only, no renegotiation, no compression.
 *
 *   socket ──▶ weir_tls_receive ──▶ weir_tls_read  ──▶ the protocol
 *   socket ◀── weir_tls_pending ◀── weir_tls_write ◀── the protocol
 *
 * A context holds certificates and is shared by many sessions; it is reference counted and
 * immutable: reloading certificates makes a new one, and sessions keep theirs.
 *
 * Threads: a context may be used by many; a session by one.
 */
#ifndef WEIR_WIRE_TLS_TLS_H
#define WEIR_WIRE_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/bytes.h>
#include <weir/error.h>

struct weir_tls_context;
struct weir_tls;

struct weir_tls_options {
    const char *cert_file, *key_file; /* PEM: chain and key; a server needs both */
    const char *ca_file; /* server: clients must show a certificate signed by one of these; NULL:
                            none is asked for. Client: NULL means the system's authorities */
    const char *const *names; /* server: allowed names of clients (DNS, URI, email or IP in SAN,
                                 else CN); a leading "*." matches one label; none: all */
    unsigned name_count;
    const char *const *alpn; /* in order of preference ("h2", "http/1.1"); none: no ALPN */
    unsigned alpn_count;
    bool insecure; /* client: the server's certificate is not verified */
};

/* Errors: WEIR_ERR_IO (a file cannot be read, or is a pipe), WEIR_ERR_SYNTAX (not PEM, key and
 * certificate do not belong together, expired CA file…), WEIR_ERR_MEMORY; `reason` names file and
 * fault. */
int weir_tls_server(struct weir_tls_context **context, const struct weir_tls_options *options,
                    struct weir_reason *reason) __attribute__((warn_unused_result));
int weir_tls_client(struct weir_tls_context **context, const struct weir_tls_options *options,
                    struct weir_reason *reason) __attribute__((warn_unused_result));
struct weir_tls_context *weir_tls_ref(struct weir_tls_context *context);
void weir_tls_unref(struct weir_tls_context *context);

/* A session of a context (a reference is taken). `server_name` (clients only): for SNI and for the
 * check of the certificate; an IP address is checked as one. Errors: WEIR_ERR_MEMORY. */
int weir_tls_open(struct weir_tls **tls, struct weir_tls_context *context, const char *server_name)
    __attribute__((warn_unused_result));
void weir_tls_close(struct weir_tls *tls);

/* Takes bytes from the peer (copied; at most a few records are held: read before giving more).
 * Drives the handshake. Returns 0, or WEIR_ERR_SYNTAX when the session has failed (an alert may be
 * pending), WEIR_ERR_MEMORY. */
int weir_tls_receive(struct weir_tls *tls, const char *data, size_t size)
    __attribute__((warn_unused_result));

/* Plain bytes into `out`. Returns how many, 0: none until more is received, or -1: the peer has
 * ended the session (close_notify) or it has failed. */
long weir_tls_read(struct weir_tls *tls, char *out, size_t size);

/* Encrypts all of it; a client may write before the handshake is done (it is kept). Errors:
 * WEIR_ERR_MEMORY, WEIR_ERR_IO (the session has failed or is ended). */
int weir_tls_write(struct weir_tls *tls, const char *data, size_t size)
    __attribute__((warn_unused_result));

/* Says close_notify. */
void weir_tls_end(struct weir_tls *tls);

/* What is to be sent to the peer; valid until the next call on this session. weir_tls_sent drops
 * its first `size` bytes. */
struct weir_bytes weir_tls_pending(struct weir_tls *tls);
void weir_tls_sent(struct weir_tls *tls, size_t size);

/* The handshake is going on, or a part of a record has come. */
bool weir_tls_midway(const struct weir_tls *tls);
bool weir_tls_ready(const struct weir_tls *tls);             /* the handshake is done */
struct weir_bytes weir_tls_alpn(const struct weir_tls *tls); /* chosen; size 0: none */
/* Of a verified client certificate: its subject's common name, and the first SAN name of each
 * kind as text; data == NULL: none. Valid as long as the session. */
struct weir_bytes weir_tls_peer_common_name(const struct weir_tls *tls);
struct weir_bytes weir_tls_peer_name(const struct weir_tls *tls);
/* Of a server's session: the fingerprint of the client's first hello (client_hello.h); data ==
 * NULL: there was none, or one with too many values to sort. Valid as long as the session. */
struct weir_bytes weir_tls_ja4(const struct weir_tls *tls);
/* Why it failed, in words. */
const char *weir_tls_error(const struct weir_tls *tls);

#endif
