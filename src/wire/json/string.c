/* SPDX-License-Identifier: Apache-2.0 */
/* See string.h. */
#include "wire/json/string.h"

#include <stdbool.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/utf8.h"

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

static char *escape_write(char *out, char c)
{
    static const char names[] = "btnvfr"; /* of 8..13 */
    *out++ = '\\';
    if (c == '"' || c == '\\') {
        *out++ = c;
    } else if (c >= '\b' && c <= '\r' && c != '\v') {
        *out++ = names[c - '\b'];
    } else {
        memcpy(out, "u00", 3);
        out = weir_hex_write(out + 3, &(unsigned char){(unsigned char)c}, 1);
    }
    return out;
}

size_t weir_json_string_write(const char *text, size_t size, char *out)
{
    char *start = out;
    *out++ = '"';
    for (size_t i = 0; i < size;) {
        if (is_plain(text[i])) {
            *out++ = text[i++];
        } else if ((unsigned char)text[i] < 0x80) {
            out = escape_write(out, text[i++]);
        } else {
            size_t length = weir_utf8_size(text + i, size - i);
            memcpy(out, length > 0 ? text + i : "\xef\xbf\xbd", length > 0 ? length : 3);
            out += length > 0 ? length : 3;
            i += length > 0 ? length : 1;
        }
    }
    *out++ = '"';
    return (size_t)(out - start);
}
