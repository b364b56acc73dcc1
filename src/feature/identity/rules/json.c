/* SPDX-License-Identifier: Apache-2.0 */
/* see json.h */
#include "feature/identity/rules/json.h"

#include <stdbool.h>

/* Counts brackets and commas outside strings; that they fit together is jansson's to find out. */
static bool is_small(struct weir_bytes text, uint32_t most)
{
    uint32_t depth = 0, values = 1;
    bool quoted = false;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (quoted) {
            i += byte == '\\';
            quoted = byte != '"';
        } else if (byte == '"') {
            quoted = true;
        } else if (byte == '{' || byte == '[') {
            values++; /* what is first in it */
            if (++depth > RULES_JSON_DEPTH_MAX || values > most)
                return false;
        } else if (byte == ',') {
            if (++values > most)
                return false;
        } else if (byte == '}' || byte == ']') {
            depth -= depth > 0;
        }
    }
    return true;
}

json_t *rules_json_read(struct weir_bytes text, uint32_t most)
{
    json_error_t error;
    json_t *root = is_small(text, most)
                       ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &error)
                       : NULL;
    if (root && !json_is_object(root)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

struct weir_bytes rules_json_text(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);
    struct weir_bytes text = {NULL, 0};
    if (json_is_string(member))
        text = (struct weir_bytes){json_string_value(member), json_string_length(member)};
    return text;
}
