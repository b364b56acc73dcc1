/* SPDX-License-Identifier: Apache-2.0 */
/* see return_path.h */
#include "feature/challenge/return_path.h"

#include <string.h>

bool weir_return_path_is_valid(struct weir_bytes path)
{
    if (path.size == 0 || path.size > WEIR_RETURN_PATH_MAX || path.data[0] != '/' ||
        (path.size > 1 && path.data[1] == '/'))
        return false;
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] <= ' ' || path.data[i] > '~' || path.data[i] == '\\')
            return false;
    return true;
}

struct weir_bytes weir_return_path_find(struct weir_bytes query)
{
    while (query.size >= 3) {
        if (memcmp(query.data, "to=", 3) == 0)
            return (struct weir_bytes){query.data + 3, query.size - 3};
        const char *stop = memchr(query.data, '&', query.size);
        if (!stop)
            break;
        query.size -= (size_t)(stop + 1 - query.data);
        query.data = stop + 1;
    }
    return (struct weir_bytes){NULL, 0};
}
