/* SPDX-License-Identifier: Apache-2.0 */
/* The header fields of an answer (weir_call.fields), one by one: "Name: value\r\n" lines become
 * names and values in place. */
#ifndef WEIR_PROXY_FIELDS_H
#define WEIR_PROXY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct weir_field {
    const char *name, *value; /* not NUL-terminated */
    size_t name_size, value_size;
};

/* The next field from *at on, which moves behind it; false at `end`, or where the text is none. */
static inline bool weir_field_next(struct weir_field *field, const char **at, const char *end)
{
    const char *line = *at;
    const char *stop = line < end ? memchr(line, '\r', (size_t)(end - line)) : NULL;
    const char *colon = stop ? memchr(line, ':', (size_t)(stop - line)) : NULL;
    if (!colon || stop - colon < 2 || end - stop < 2)
        return false;
    *at = stop + 2; /* "\r\n" */
    *field = (struct weir_field){.name = line,
                                 .value = colon + 2, /* ": " */
                                 .name_size = (size_t)(colon - line),
                                 .value_size = (size_t)(stop - colon - 2)};
    return true;
}

#endif
