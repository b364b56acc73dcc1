/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a certificate: the holder that it was issued to, and whether that is one of the
 * allowed names.
 *
 * Memory: none beyond OpenSSL's. Threads: pure.
 */
#ifndef WEIR_WIRE_TLS_NAMES_H
#define WEIR_WIRE_TLS_NAMES_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <weir/bytes.h>

struct weir_tls_name {
    int kind; /* GEN_DNS, GEN_URI, GEN_EMAIL, GEN_IPADD; 0: the common name */
    struct weir_bytes text;
};

/* Calls `each` for the names of the certificate's holder until it returns true; returns whether it
 * did. The names are the SAN entries of kinds that have a text (DNS, URI, email, IP), in their
 * order; the common name of the subject if there is no such entry. A name that contains NUL is
 * skipped: code that compares C strings would see another name than the one that the authority
 * signed. */
bool weir_tls_each_name(const X509 *certificate,
                        bool (*each)(void *context, const struct weir_tls_name *name),
                        void *context);

/* The common name of the subject (the last one, as is usual); data == NULL: none. */
struct weir_bytes weir_tls_common_name(const X509 *certificate);

/* Whether a certificate carries one of `count` allowed names. Names of hosts and email domains are
 * compared without case, all others exactly. */
bool weir_tls_name_allowed(const X509 *certificate, char *const *allowed, unsigned count);

#endif
