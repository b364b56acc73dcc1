/* SPDX-License-Identifier: Apache-2.0 */
/* see given_limits.h */
#include "wire/given_limits.h"

const char *weir_limit_field_name(enum weir_limit_field field)
{
    static const char *const names[WEIR_LIMIT_FIELDS] = {
        [WEIR_LIMIT_KEY] = "key",       [WEIR_LIMIT_NAME] = "name",
        [WEIR_LIMIT_RATE] = "rate",     [WEIR_LIMIT_ALGORITHM] = "algorithm",
        [WEIR_LIMIT_BURST] = "burst",   [WEIR_LIMIT_SEGMENTS] = "segments",
        [WEIR_LIMIT_STRICT] = "strict", [WEIR_LIMIT_QUEUE] = "queue",
        [WEIR_LIMIT_LIMIT] = "limit",   [WEIR_LIMIT_LIFE] = "life",
        [WEIR_LIMIT_COST] = "cost",
    };
    return names[field];
}

bool weir_limit_name_valid(struct weir_bytes name)
{
    bool valid = name.size >= 1 && name.size <= WEIR_LIMIT_NAME_MAX;
    for (size_t i = 0; valid && i < name.size; i++) {
        char byte = name.data[i];
        valid = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '.' ||
                byte == '_' || byte == '-';
    }
    return valid;
}
