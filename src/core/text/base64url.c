/* SPDX-License-Identifier: Apache-2.0 */
/* see base64url.h */
#include "core/text/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* What a byte is worth; -1: it is none of the alphabet. A table, because tokens of kilobytes come
 * with every request. */
static const signed char digits[128] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, /* controls */
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, /* */
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, /* - */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1, /* 0 to 9 */
    -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, /* A to O */
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, 63, /* P to Z, _ */
    -1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, /* a to o */
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1, /* p to z */
};

static int digit(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte < sizeof digits ? digits[byte] : -1;
}

size_t weir_base64url_write(const unsigned char *bytes, size_t size, char *text)
{
    uint32_t bits = 0, held = 0;
    size_t length = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            text[length++] = alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        text[length++] = alphabet[bits << (6 - held) & 63];
    return length;
}

long weir_base64url_read(struct weir_bytes text, unsigned char *bytes)
{
    uint32_t bits = 0, held = 0;
    long size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return WEIR_ERR_SYNTAX;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[size++] = (unsigned char)(bits >> held);
        }
    }
    if (held >= 6 || (bits & ((1U << held) - 1)) != 0)
        return WEIR_ERR_SYNTAX; /* a digit too many, or bits that say nothing */
    return size;
}
