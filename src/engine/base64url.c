/* see base64url.h */
#include "engine/base64url.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int digit(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
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
