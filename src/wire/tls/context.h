/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a TLS context, for the files of this codec only; see tls.h.
 *
 * Threads: immutable once made, but for the count of references.
 */
#ifndef WEIR_WIRE_TLS_CONTEXT_H
#define WEIR_WIRE_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "wire/tls/tls.h"

struct weir_tls_context {
    atomic_uint references;
    SSL_CTX *ssl;
    BIO_METHOD *bio; /* how its sessions read and write */
    bool server, verifies;
    char **names; /* allowed names of clients */
    unsigned name_count;
    unsigned char *alpn; /* as on the wire: a length before each */
    unsigned alpn_size;
};

/* The method of a session's BIO, whose data is the session; NULL: no memory. */
BIO_METHOD *weir_tls_bio_method(void);

/* The names in a certificate that stand for who shows it, one after the other: calls `each` until
 * it returns true; returns whether it did. SAN entries of kinds that have a text (DNS, URI, email,
 * IP) in their order; the common name of the subject where there is no such entry. A name with a
 * NUL in it is passed over: whoever compares C strings would see another name than the authority
 * signed. */
struct weir_tls_name {
    int kind; /* GEN_DNS, GEN_URI, GEN_EMAIL, GEN_IPADD; 0: the common name */
    struct weir_bytes text;
};
bool weir_tls_each_name(const X509 *certificate,
                        bool (*each)(void *context, const struct weir_tls_name *name),
                        void *context);

/* The common name of the subject (the last one, as everybody reads it); data == NULL: none. */
struct weir_bytes weir_tls_common_name(const X509 *certificate);

/* Whether a certificate carries one of `count` allowed names. Names of hosts and email domains are
 * compared without case, all others exactly. */
bool weir_tls_name_allowed(const X509 *certificate, char *const *allowed, unsigned count);

#endif
