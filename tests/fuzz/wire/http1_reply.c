/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 replies: any bytes mean the same replies however they come. */
#include "pieces.h"

#include "wire/http/http1_reply.h"

/* The replies of a connection whose bytes come in pieces: first `first` of them, then `step` at a
 * time; as text. A connection ends at its first error. */
static char *text_in_pieces(const uint8_t *data, size_t size, size_t first, size_t step)
{
    struct weir_http1_reply_reader reader = {0};
    struct weir_http1_reply reply = {0};
    struct pieces pieces = {.data = data};
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL);
    for (size_t have = first; taken >= 0; have = size - have < step ? size : have + step) {
        pieces_come(&pieces, have);
        while (pieces.kept > 0 &&
               (taken = weir_http1_reply_parse(&reader, pieces.buffer, pieces.kept, &reply)) > 0) {
            REQUIRE(reply.status >= 100 && reply.status < 600);
            REQUIRE(reply.body.data + reply.body.size <= pieces.buffer + taken);
            REQUIRE(reply.fields.data + reply.fields.size <= reply.body.data);
            fprintf(out, "%ld %u %d %zu ", taken, reply.status, reply.keep_alive,
                    reply.fields.size);
            fwrite(reply.body.data, 1, reply.body.size, out);
            fputc('\n', out);
            pieces_take(&pieces, (size_t)taken);
            memset(&reader, 0, sizeof reader);
        }
        if (have == size)
            break;
    }
    fprintf(out, "%ld\n", taken < 0 ? taken : 0);
    free(pieces.buffer);
    fclose(out);
    return text;
}
