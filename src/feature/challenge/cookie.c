/* SPDX-License-Identifier: Apache-2.0 */
/* see cookie.h */
#include "feature/challenge/cookie.h"

#include <string.h>

#include "core/bytes.h"

/* Takes the text before the next semicolon or comma off the field. */
static struct weir_bytes take_pair(struct weir_bytes *field)
{
    size_t size = 0;
    while (size < field->size && field->data[size] != ';' && field->data[size] != ',')
        size++;
    struct weir_bytes pair = {field->data, size};
    size += size < field->size;
    field->data += size;
    field->size -= size;
    return weir_bytes_trim(pair);
}

bool weir_cookie_next(struct weir_bytes *field, struct weir_bytes name, struct weir_bytes *value)
{
    while (field->size > 0) {
        struct weir_bytes pair = take_pair(field);
        if (pair.size <= name.size || pair.data[name.size] != '=' ||
            memcmp(pair.data, name.data, name.size) != 0)
            continue;
        *value = (struct weir_bytes){pair.data + name.size + 1, pair.size - name.size - 1};
        if (value->size >= 2 && value->data[0] == '"' && value->data[value->size - 1] == '"')
            *value = (struct weir_bytes){value->data + 1, value->size - 2};
        return true;
    }
    return false;
}

bool weir_cookie_name_is_valid(struct weir_bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9');
        if (!plain && (byte == '\0' || !strchr("!#$%&'*+-.^_`|~", byte)))
            return false;
    }
    return name.size > 0;
}
