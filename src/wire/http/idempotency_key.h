/* SPDX-License-Identifier: Apache-2.0 */
/* The field Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): by the draft a string of
 * structured fields (RFC 8941 3.3.3), `"8e03978e"`; what most clients send is the bare text, which
 * is taken too. Two spellings of one key are one key.
 */
#ifndef WEIR_WIRE_HTTP_IDEMPOTENCY_KEY_H
#define WEIR_WIRE_HTTP_IDEMPOTENCY_KEY_H

#include <stddef.h>

#include "core/check.h"

/* Writes the key to `key`, 1..WEIR_IDEMPOTENCY_KEY_MAX bytes. A quoted text is unescaped, and
 * parameters behind it are ignored; a bare one has no white space and no quotes. Returns the
 * size. Errors: WEIR_ERR_SYNTAX (empty, too long, or malformed). */
long weir_idempotency_key_parse(struct weir_bytes field, char key[WEIR_IDEMPOTENCY_KEY_MAX])
    __attribute__((warn_unused_result));

#endif
