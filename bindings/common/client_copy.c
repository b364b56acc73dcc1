/* SPDX-License-Identifier: Apache-2.0 */
/* see client_copy.h */
#include "client_copy.h"

#include <stdlib.h>
#include <string.h>

void *client_copy(const void *from, size_t size, bool *no_memory)
{
    if (!from)
        return NULL;
    char *to = malloc(size + 1);
    if (to) {
        memcpy(to, from, size);
        to[size] = '\0';
    } else {
        *no_memory = true;
    }
    return to;
}

struct weir_client_answer client_copy_answer(const struct weir_client_answer *from, bool *no_memory)
{
    struct weir_client_answer to = *from;
    to.headers = client_copy(from->headers, from->headers ? strlen(from->headers) : 0, no_memory);
    to.body = client_copy(from->body, from->body_size, no_memory);
    return to;
}
