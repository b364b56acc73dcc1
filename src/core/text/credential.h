/* SPDX-License-Identifier: Apache-2.0 */
/* The value of Authorization in one form, so that one credential is one caller however it is
 * spelled (RFC 9110 11.4: credentials = auth-scheme 1*SP ..., and a scheme's case does not count).
 *
 *    "bearer  K", " BEARER\tK "   Bearer K
 *    "bAsIc dTpw"                 Basic dTpw
 *    "token K"                    Token K
 *    "ACME K"                     acme K: no scheme that is known here
 *    "K", "Bearer"                as they are, without white space around them
 *
 * Known schemes have the spelling that is usual, which hashes in use were made of. Freestanding.
 */
#ifndef WEIR_CORE_TEXT_CREDENTIAL_H
#define WEIR_CORE_TEXT_CREDENTIAL_H

#include <stdbool.h>

#include <weir/bytes.h>

/* The canonical form is never longer than the value. */
struct weir_credential {
    struct weir_bytes scheme; /* in its canonical spelling; of the value where `as_is` or unknown;
                                 size 0: the value has no scheme */
    struct weir_bytes token;  /* what comes behind the scheme; without one, all */
    bool as_is;               /* the value, without white space around it, is in that form */
    bool lower;               /* the scheme is to be written in lower case */
};

/* Takes a value apart. */
void weir_credential_read(struct weir_credential *credential, struct weir_bytes value);

/* Writes the canonical form; `out` has as many bytes as the value. Returns its size. */
size_t weir_credential_write(const struct weir_credential *credential, char *out);

/* The canonical form of a value: the value itself where it is in that form, else written to `room`,
 * which has as many bytes. */
static inline struct weir_bytes weir_credential_form(struct weir_bytes value, char *room)
{
    struct weir_credential credential;
    weir_credential_read(&credential, value);
    struct weir_bytes form = {room, weir_credential_write(&credential, room)};
    return credential.as_is && form.size == value.size ? value : form;
}

/* Takes the next of the credentials that are joined by commas, as an intermediary may join the
 * lines of a repeated header field (RFC 9110 5.2; Envoy's ext_authz does): "K,x" is two. With
 * `scheme` the value is one of Authorization, whose parameters are one credential:
 *
 *    Digest username="a, b", uri="/"   one
 *    Bearer K,Digest username="a"      two
 *
 * False: there is none left; empty ones and white space around them are skipped. */
bool weir_credential_next(struct weir_bytes *rest, bool scheme, struct weir_bytes *credential);

#endif
