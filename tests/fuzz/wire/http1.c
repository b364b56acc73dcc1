/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1: any bytes mean the same requests however they come. */
#include "pieces.h"

#include "http1_text.h"

/* The requests of a connection whose bytes come in pieces: first `first` of them, then `step` at a
 * time; as text. A connection ends at its first error. */
static char *text_in_pieces(const uint8_t *data, size_t size, size_t first, size_t step)
{
    struct weir_http1_parser parser = {0};
    struct weir_http1_request request;
    struct pieces pieces = {.data = data};
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL);
    for (size_t have = first; taken >= 0; have = size - have < step ? size : have + step) {
        pieces_come(&pieces, have);
        while ((taken = weir_http1_parse(&parser, pieces.buffer, pieces.kept, &request)) > 0) {
            REQUIRE(request.body.size <= WEIR_HTTP1_BODY_MAX);
            char *one = http1_text(taken, &parser, &request);
            fputs(one, out);
            free(one);
            pieces_take(&pieces, (size_t)taken);
            memset(&parser, 0, sizeof parser);
        }
        if (have == size)
            break;
    }
    if (taken < 0) {
        REQUIRE(parser.problem != NULL && parser.status >= 400);
        fprintf(out, "%ld %u %s\n", taken, parser.status, parser.problem);
    }
    free(pieces.buffer);
    fclose(out);
    return text;
}
