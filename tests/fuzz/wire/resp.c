/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the Redis protocol: any bytes mean the same commands however they come. */
#include "pieces.h"

#include "wire/resp/resp.h"

static void request_print(FILE *out, const struct weir_resp_request *request, const char *data,
                          size_t taken)
{
    fprintf(out, "%zu bytes, %u arguments\n", taken, request->count);
    for (uint32_t i = 0; i < request->count && i < WEIR_RESP_ARGS_MAX; i++) {
        struct weir_bytes arg = request->args[i];
        REQUIRE(arg.data == NULL || (arg.data >= data && arg.data + arg.size <= data + taken));
        fprintf(out, "%zu%s:", arg.size, arg.data == NULL ? " null" : "");
        if (arg.size > 0)
            fwrite(arg.data, 1, arg.size, out);
        fputc('\n', out);
    }
}

/* The commands of a connection whose bytes come in pieces: first `first` of them, then `step` at a
 * time; as text. The first byte of the input tells whether the client has authenticated. */
static char *text_in_pieces(const uint8_t *data, size_t size, size_t first, size_t step)
{
    static struct weir_resp_request request;
    struct weir_resp_parser parser = {.unauthenticated = size > 0 && data[0] == 'U'};
    struct pieces pieces = {.data = data};
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL);
    for (size_t have = first; taken >= 0; have = size - have < step ? size : have + step) {
        pieces_come(&pieces, have);
        while ((taken = weir_resp_parse(&parser, pieces.buffer, pieces.kept, &request)) > 0) {
            REQUIRE(taken <= WEIR_RESP_REQUEST_MAX);
            request_print(out, &request, pieces.buffer, (size_t)taken);
            pieces_take(&pieces, (size_t)taken);
        }
        if (have == size)
            break;
    }
    REQUIRE((taken < 0) == (parser.problem[0] != '\0'));
    REQUIRE(strchr(parser.problem, '\n') == NULL && strchr(parser.problem, '\r') == NULL);
    fprintf(out, "%ld %s\n", taken, parser.problem);
    free(pieces.buffer);
    fclose(out);
    return text;
}
