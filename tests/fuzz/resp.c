/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the Redis protocol: any bytes mean the same commands however they come. */
#include "fuzz.h"

#include <string.h>

#include "wire/resp/resp.h"

#define BYTEWISE_MAX 1024 /* beyond it, byte by byte would slow the fuzzer down */

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
static char *connection_text(const uint8_t *data, size_t size, size_t first, size_t step)
{
    static struct weir_resp_request request;
    struct weir_resp_parser parser = {.unauthenticated = size > 0 && data[0] == 'U'};
    char *text = NULL, *buffer = fuzz_copy(data, 0);
    size_t text_size = 0, start = 0, kept = 0; /* buffer = data[start..start + kept) */
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL);
    for (size_t have = first; taken >= 0; have = size - have < step ? size : have + step) {
        char *grown = fuzz_copy(data + start, have - start);
        memcpy(grown, buffer, kept);
        free(buffer);
        buffer = grown;
        kept = have - start;
        while ((taken = weir_resp_parse(&parser, buffer, kept, &request)) > 0) {
            REQUIRE((size_t)taken <= kept && taken <= WEIR_RESP_REQUEST_MAX);
            request_print(out, &request, buffer, (size_t)taken);
            start += (size_t)taken;
            kept -= (size_t)taken;
            memmove(buffer, buffer + taken, kept);
        }
        if (have == size)
            break;
    }
    REQUIRE((taken < 0) == (parser.problem[0] != '\0'));
    REQUIRE(strchr(parser.problem, '\n') == NULL && strchr(parser.problem, '\r') == NULL);
    fprintf(out, "%ld %s\n", taken, parser.problem);
    free(buffer);
    fclose(out);
    return text;
}

void weir_fuzz_split(const uint8_t *data, size_t size, size_t at)
{
    char *whole = connection_text(data, size, size, 1);
    char *split = connection_text(data, size, at, size);
    REQUIRE(strcmp(whole, split) == 0);
    free(whole);
    free(split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= BYTEWISE_MAX) {
        char *whole = connection_text(data, size, size, 1);
        char *bytewise = connection_text(data, size, 0, 1);
        REQUIRE(strcmp(whole, bytewise) == 0);
        free(bytewise);
        free(whole);
    }
    if (size > 0)
        weir_fuzz_split(data, size, data[size / 2] * size / 256);
    return 0;
}
