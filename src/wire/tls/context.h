/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a TLS context, for the files of this codec only; see tls.h.
 *
 * Threads: immutable once made, except the count of references.
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

#endif
