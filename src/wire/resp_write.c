/* See resp_write.h. */
#include "wire/resp_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char *line_write(char *out, char type, const char *text, size_t size)
{
    *out++ = type;
    for (size_t i = 0; i < size; i++) {
        *out++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    }
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
    if (version < 3) {
        return weir_resp_write_integer(out, value);
    }
    return value ? WEIR_LITERAL_WRITE(out, "#t\r\n") : WEIR_LITERAL_WRITE(out, "#f\r\n");
}

char *weir_resp_write_double(char *out, int version, double value)
{
    char text[32];
    int size = 0;

    if (isnan(value)) {
        size = snprintf(text, sizeof text, "nan");
    } else if (isinf(value)) {
        size = snprintf(text, sizeof text, value < 0 ? "-inf" : "inf");
    } else {
        /* 17 digits always read back the same; fewer often do. */
        for (int digits = 15; digits <= 17; digits++) {
            size = snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value) {
                break;
            }
        }
    }
    return version >= 3 ? line_write(out, ',', text, (size_t)size)
                        : weir_resp_write_bulk(out, text, (size_t)size);
}
