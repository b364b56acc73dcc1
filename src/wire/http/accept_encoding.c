/* SPDX-License-Identifier: Apache-2.0 */
/* see accept_encoding.h */
#include "wire/http/accept_encoding.h"

#include <strings.h>

#include "core/bytes.h"

/* Takes what is before a separator off a text. */
static struct weir_bytes take(struct weir_bytes *rest, char separator)
{
    const char *end = rest->size > 0 ? memchr(rest->data, separator, rest->size) : NULL;
    struct weir_bytes taken = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t used = taken.size + (end != NULL);
    rest->data = rest->size > 0 ? rest->data + used : NULL;
    rest->size -= used;
    return weir_bytes_trim(taken);
}

/* "q=0", "q=0.000": the client refuses it. Other parameters say nothing. */
static bool is_refusal(struct weir_bytes parameter)
{
    if (parameter.size < 3 || (parameter.data[0] | 0x20) != 'q' || parameter.data[1] != '=')
        return false;
    for (size_t i = 2; i < parameter.size; i++)
        if (parameter.data[i] != '0' && parameter.data[i] != '.')
            return false;
    return true;
}

static bool is_named(struct weir_bytes name, const char *coding)
{
    return name.size == strlen(coding) && strncasecmp(name.data, coding, name.size) == 0;
}

bool weir_accepts_coding(struct weir_bytes field, const char *coding)
{
    bool any = false;
    while (field.size > 0) {
        struct weir_bytes item = take(&field, ',');
        struct weir_bytes name = take(&item, ';');
        bool refused = false;
        while (item.size > 0)
            refused |= is_refusal(take(&item, ';'));
        if (name.size > 0 && is_named(name, coding))
            return !refused;
        any |= weir_bytes_are(name, "*") && !refused;
    }
    return any;
}
