/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF (RFC 3629; Unicode 15
 * table 3-7). */
#ifndef WEIR_CORE_TEXT_UTF8_H
#define WEIR_CORE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the well-formed character at the start of text[0..size), 1..4; 0 when there is
 * none. */
static inline size_t weir_utf8_size(const char *text, size_t size)
{
    uint8_t first = size > 0 ? (uint8_t)text[0] : 0xff;
    uint8_t second = size > 1 ? (uint8_t)text[1] : 0;
    uint8_t low = 0x80, high = 0xbf; /* of the second byte */
    size_t length;

    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first == 0xe0)
        low = 0xa0; /* shorter forms exist */
    else if (first == 0xed)
        high = 0x9f; /* surrogates */
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f; /* above U+10FFFF */
    if (length > size || second < low || second > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (((uint8_t)text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Whether all of a text is UTF-8. */
static inline bool weir_utf8_valid(const char *text, size_t size)
{
    while (size > 0) {
        size_t step = weir_utf8_size(text, size);
        if (step == 0)
            return false;
        text += step;
        size -= step;
    }
    return true;
}

#endif
