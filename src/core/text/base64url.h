/* SPDX-License-Identifier: Apache-2.0 */
/* base64url without padding (RFC 4648 section 5): how tokens are written.
 *
 * Reading is strict: one text for given bytes, so no padding, no other alphabet, no bits left over.
 */
#ifndef WEIR_CORE_TEXT_BASE64URL_H
#define WEIR_CORE_TEXT_BASE64URL_H

#include <stddef.h>
#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_BASE64URL_SIZE(bytes) (((bytes)*4 + 2) / 3)

/* Returns the length. */
size_t weir_base64url_write(const unsigned char *bytes, size_t size, char *text);

/* Returns the number of bytes; `bytes` has room for them. Errors: WEIR_ERR_SYNTAX. */
long weir_base64url_read(struct weir_bytes text, unsigned char *bytes)
    __attribute__((warn_unused_result));

/* Numbers in tokens are big-endian. */
static inline void weir_put64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (56 - 8 * i));
}

static inline uint64_t weir_get64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

#endif
