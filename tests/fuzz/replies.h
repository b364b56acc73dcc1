/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share whose input is replies of the Redis protocol. */
#ifndef REPLIES_H
#define REPLIES_H

#include "fuzz.h"

#include <string.h>

#include "wire/resp/reply.h"

#define NODES_MAX 4096

/* Calls `check` for each reply, up to the first that is invalid. Its nodes are in a block of their
 * own size, so that a read beyond its end is seen. */
static inline void for_each_reply(const uint8_t *data, size_t size,
                                  void (*check)(const struct weir_resp_node *nodes, uint32_t count,
                                                void *context),
                                  void *context)
{
    static struct weir_resp_node nodes[NODES_MAX];
    struct weir_resp_reader reader = {0};
    char *text = fuzz_copy(data, size), *at = text;
    uint32_t count;
    long taken;

    while (size > 0 &&
           (taken = weir_resp_reply_parse(&reader, at, size, nodes, NODES_MAX, &count)) > 0) {
        if (count <= NODES_MAX) {
            struct weir_resp_node *exact = malloc(count * sizeof *exact);
            REQUIRE(exact != NULL);
            memcpy(exact, nodes, count * sizeof *exact);
            check(exact, count, context);
            free(exact);
        }
        at += taken;
        size -= (size_t)taken;
    }
    free(text);
}

#endif
