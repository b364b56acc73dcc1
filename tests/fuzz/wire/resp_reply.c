/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the Redis protocol: any bytes mean the same tree however they come. */
#include "pieces.h"

#include "wire/resp/reply.h"

#define NODES_MAX 64
static void node_print(FILE *out, const struct weir_resp_node *node, const char *data, size_t taken)
{
    REQUIRE(node->text.data == NULL ||
            (node->text.data >= data && node->text.data + node->text.size <= data + taken));
    REQUIRE(node->depth <= WEIR_RESP_DEPTH_MAX && node->type <= WEIR_RESP_ATTRIBUTE);
    fprintf(out, "%u %u %u ", node->depth, node->type, node->count);
    if (node->type == WEIR_RESP_INTEGER || node->type == WEIR_RESP_BOOLEAN)
        fprintf(out, "%lld ", (long long)node->integer);
    else if (node->type == WEIR_RESP_DOUBLE)
        fprintf(out, "%.17g ", node->number);
    if (node->text.size > 0)
        fwrite(node->text.data, 1, node->text.size, out);
    fputc('\n', out);
}

/* The first reply of bytes that come in pieces, as text. */
static char *text_in_pieces(const uint8_t *data, size_t size, size_t first, size_t step)
{
    struct weir_resp_reader reader = {0};
    struct weir_resp_node nodes[NODES_MAX];
    uint32_t count = 0;
    char *text = NULL, *buffer = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL);
    for (size_t have = first;; have = size - have < step ? size : have + step) {
        char *grown = fuzz_copy(data, have);
        free(buffer);
        buffer = grown;
        taken = weir_resp_reply_parse(&reader, buffer, have, nodes, NODES_MAX, &count);
        REQUIRE(taken <= (long)have);
        if (taken != 0 || have == size)
            break;
    }
    fprintf(out, "%ld\n", taken);
    for (uint32_t i = 0; taken > 0 && i < count && i < NODES_MAX; i++)
        node_print(out, &nodes[i], buffer, (size_t)taken);
    free(buffer);
    fclose(out);
    return text;
}
