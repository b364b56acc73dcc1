/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits: read in either case, written in lower case.
 *
 * Pure functions, inline: keys' texts are written with them on the path of a request.
 */
#ifndef WEIR_CORE_TEXT_HEX_H
#define WEIR_CORE_TEXT_HEX_H

#include <stddef.h>
#include <stdint.h>

/* 0 to 15; -1 for what is no digit. */
static inline int weir_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The digit of the lowest four bits. */
static inline char weir_hex_digit(uint64_t value)
{
    return "0123456789abcdef"[value & 15];
}

/* Writes 2 * size digits. Returns their end. */
static inline char *weir_hex_write(char *out, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        *out++ = weir_hex_digit(bytes[i] >> 4);
        *out++ = weir_hex_digit(bytes[i]);
    }
    return out;
}

/* Writes 16 digits, the highest first. Returns their end. */
static inline char *weir_hex_write64(char *out, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *out++ = weir_hex_digit(value >> shift);
    return out;
}

#endif
