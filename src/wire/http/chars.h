/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of characters in HTTP (RFC 9110 section 5.6.2), as one table. */
#ifndef WEIR_WIRE_HTTP_CHARS_H
#define WEIR_WIRE_HTTP_CHARS_H

#include <stdbool.h>
#include <stdint.h>

enum weir_http_char {
    WEIR_HTTP_TOKEN = 1,  /* tchar: of a method or a field name */
    WEIR_HTTP_TARGET = 2, /* of a request target: anything visible but '#', and bytes over 0x7f,
                             which curl and browsers send as they are */
    WEIR_HTTP_HOST = 4,   /* of a Host field: uri-host and port (RFC 3986 3.2.2, 3.2.3) */
    WEIR_HTTP_VALUE = 8,  /* of a field value: visible, SP, HTAB, obs-text */
};

extern const uint8_t weir_http_chars[256];

static inline bool weir_http_is(char c, enum weir_http_char wanted)
{
    return (weir_http_chars[(uint8_t)c] & wanted) != 0;
}

/* The lower-case form of an ASCII letter; any other token character stays what it is, or becomes
 * something that no lower-case name holds. */
static inline char weir_http_fold(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

#endif
