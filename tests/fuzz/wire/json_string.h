/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of JSON require of every string that a parser accepted. */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include <weir/bytes.h>

#include "core/text/utf8.h"
#include "fuzz.h"

/* It lies within the text, and is UTF-8 without NUL; or it is absent. */
static inline void string_check(const char *text, size_t size, struct weir_bytes string)
{
    if (string.data == NULL)
        return;
    REQUIRE(string.data >= text && string.size <= size && string.data + string.size <= text + size);
    for (size_t i = 0; i < string.size;) {
        size_t length = weir_utf8_size(string.data + i, string.size - i);
        REQUIRE(length > 0 && string.data[i] != '\0');
        i += length;
    }
}

#endif
