/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1: any bytes mean the same requests however they come. */
#include "fuzz.h"

#include <string.h>

#include "http1_text.h"

#define BYTEWISE_MAX 1024 /* beyond it, byte by byte would slow the fuzzer down */

/* The requests of a connection whose bytes come in pieces: first `first` of them, then `step` at a
 * time; as text. A connection ends at its first error. */
static char *connection_text(const uint8_t *data, size_t size, size_t first, size_t step)
{
    struct weir_http1_parser parser = {0};
    struct weir_http1_request request;
    char *text = NULL, *buffer = malloc(1);
    size_t text_size = 0, start = 0, kept = 0; /* buffer = data[start..start + kept) */
    FILE *out = open_memstream(&text, &text_size);
    long taken = 0;

    REQUIRE(out != NULL && buffer != NULL);
    for (size_t have = first; taken >= 0; have = size - have < step ? size : have + step) {
        char *grown = fuzz_copy(data + start, have - start);
        memcpy(grown, buffer, kept);
        free(buffer);
        buffer = grown;
        kept = have - start;
        while ((taken = weir_http1_parse(&parser, buffer, kept, &request)) > 0) {
            REQUIRE((size_t)taken <= kept && request.body.size <= WEIR_HTTP1_BODY_MAX);
            char *one = http1_text(taken, &parser, &request);
            fputs(one, out);
            free(one);
            start += (size_t)taken;
            kept -= (size_t)taken;
            memmove(buffer, buffer + taken, kept);
            memset(&parser, 0, sizeof parser);
        }
        if (have == size)
            break;
    }
    if (taken < 0) {
        REQUIRE(parser.problem != NULL && parser.status >= 400);
        fprintf(out, "%ld %u %s\n", taken, parser.status, parser.problem);
    }
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
    char *whole = connection_text(data, size, size, 1);
    if (size <= BYTEWISE_MAX) {
        char *bytewise = connection_text(data, size, 0, 1);
        REQUIRE(strcmp(whole, bytewise) == 0);
        free(bytewise);
    }
    free(whole);
    if (size > 0)
        weir_fuzz_split(data, size, data[size / 2] * size / 256);
    return 0;
}
