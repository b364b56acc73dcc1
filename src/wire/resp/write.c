/* SPDX-License-Identifier: Apache-2.0 */
/* See write.h. */
#include "wire/resp/write.h"

static char *line_write(char *out, char type, const char *text, size_t size)
{
    *out++ = type;
    for (size_t i = 0; i < size; i++)
        *out++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

char *weir_resp_write_simple(char *out, const char *text, size_t size)
{
    return line_write(out, '+', text, size);
}

char *weir_resp_write_error(char *out, const char *text, size_t size)
{
    return line_write(out, '-', text, size);
}

char *weir_resp_write_null(char *out, int version)
{
    return version >= 3 ? WEIR_LITERAL_WRITE(out, "_\r\n") : WEIR_LITERAL_WRITE(out, "$-1\r\n");
}

char *weir_resp_write_boolean(char *out, int version, bool value)
{
    if (version < 3)
        return weir_resp_write_integer(out, value);
    return value ? WEIR_LITERAL_WRITE(out, "#t\r\n") : WEIR_LITERAL_WRITE(out, "#f\r\n");
}
