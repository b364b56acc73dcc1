/* SPDX-License-Identifier: Apache-2.0 */
/* see print.h */
#include "server/text/print.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text/shown.h"
#include "core/text/utf8.h"

bool weir_print_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]), *dot = value ? strchr(value, '.') : NULL;
        if (value && *value)
            return !dot || !strncasecmp(dot, ".utf-8", 6) || !strncasecmp(dot, ".utf8", 5);
    }
    return true;
}

void weir_print_bytes(const struct weir_print *print, const char *text, size_t size, size_t limit)
{
    size_t step = 1, at = 0;
    for (; at < size && at < limit; at += step) {
        size_t character = weir_utf8_size(text + at, size - at);
        bool plain = character > 0 && (character == 1 || print->utf8) &&
                     weir_text_is_plain(text + at, character);
        step = plain ? character : 1;
        if (plain)
            fwrite(text + at, 1, step, print->out);
        else
            fprintf(print->out, "\\x%02x", (unsigned char)text[at]);
    }
    if (at < size)
        fputs("...", print->out);
}

void weir_print_key_bytes(const struct weir_print *print, const char *text, size_t size,
                          size_t limit)
{
    if (size == 0)
        fputs("[]", print->out);
    else
        weir_print_bytes(print, text, size, limit);
}

void weir_print_text(FILE *stream, const char *text, size_t size, size_t limit)
{
    struct weir_print print = {.out = stream, .utf8 = weir_print_utf8()};
    weir_print_bytes(&print, text, size, limit);
}

void weir_print_key(FILE *stream, const char *text, size_t size, size_t limit)
{
    struct weir_print print = {.out = stream, .utf8 = weir_print_utf8()};
    weir_print_key_bytes(&print, text, size, limit);
}
