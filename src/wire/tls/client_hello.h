/* SPDX-License-Identifier: Apache-2.0 */
/* What a client says first in TLS (RFC 8446 4.1.2, RFC 5246 7.4.1.2), and its JA4 fingerprint: how
 * the client's TLS library is made and set up, whatever the request behind it says of itself.
 *
 *   t13d1516h2_8daaf6152771_e5627efa2ab1
 *
 *   t               TLS
 *   13              the version
 *   d               with SNI; i: without
 *   15              ciphers
 *   16              extensions
 *   h2              first and last character of the first ALPN; 00: there is none
 *   8daaf6152771    12 digits of the SHA-256 of the ciphers in ascending order; zeros: none
 *   e5627efa2ab1    the same of the extensions in ascending order, without SNI and ALPN, then "_"
 *                   and the signature algorithms as they came
 *
 * GREASE (RFC 8701) is left out everywhere. Where the first or last byte of the ALPN is no letter
 * or digit, those of its hexadecimal form are shown. Source: the JA4 specification of FoxIO
 * (https://github.com/FoxIO-LLC/ja4, technical_details/JA4.md, BSD 3-clause).
 *
 * A client can send any hello, also that of a browser: a fingerprint is a hint, no proof.
 *
 * Threads: pure.
 */
#ifndef WEIR_WIRE_TLS_CLIENT_HELLO_H
#define WEIR_WIRE_TLS_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

/* Of each list that is sorted or hashed. Clients have about a hundred; a hello may have thousands,
 * whose sorting would be work that a stranger asks for. */
#define WEIR_HELLO_VALUES_MAX 512

#define WEIR_JA4_SIZE 36

/* A list without its GREASE. */
struct weir_hello_list {
    uint16_t values[WEIR_HELLO_VALUES_MAX];
    size_t count;
};

struct weir_client_hello {
    uint16_t version; /* the highest that it supports */
    bool has_server_name;
    struct weir_bytes alpn; /* the first; size 0: none. In the message */
    struct weir_hello_list ciphers, extensions, signatures;
};

/* Reads the body of a ClientHello, behind the 4 bytes that every handshake message begins with.
 * Errors: WEIR_ERR_SYNTAX (no ClientHello, or bytes are left), WEIR_ERR_TOO_LARGE (a list has more
 * than WEIR_HELLO_VALUES_MAX values). */
int weir_client_hello_parse(struct weir_client_hello *hello, const uint8_t *data, size_t size)
    __attribute__((warn_unused_result));

/* Writes the fingerprint, and a NUL. Sorts the lists of the hello. */
void weir_client_hello_ja4(struct weir_client_hello *hello, char ja4[WEIR_JA4_SIZE + 1]);

#endif
