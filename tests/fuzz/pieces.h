/* SPDX-License-Identifier: Apache-2.0 */
/* The two entries of a fuzz target whose parser takes its input in pieces: the text of what it read
 * must not depend on the pieces. The target defines text_in_pieces. Include it once. */
#ifndef PIECES_H
#define PIECES_H

#include "fuzz.h"

#include <string.h>

#define BYTEWISE_MAX 1024 /* beyond it, byte by byte would slow the fuzzer down */

/* What the target's parser reads where the input comes in pieces: first `first` bytes, then `step`
 * at a time. The caller frees it. */
static char *text_in_pieces(const uint8_t *data, size_t size, size_t first, size_t step);

/* The bytes of a connection that are not taken yet: data[start..start + kept). */
struct pieces {
    const uint8_t *data;
    char *buffer;
    size_t start, kept;
};

/* Appends what came up to data[have]. The buffer is a block of exactly its size, so that a
 * sanitizer sees what reads beyond it; what a parser changed in the old one stays changed. */
static inline void pieces_come(struct pieces *pieces, size_t have)
{
    char *grown = fuzz_copy(pieces->data + pieces->start, have - pieces->start);
    if (pieces->kept > 0)
        memcpy(grown, pieces->buffer, pieces->kept);
    free(pieces->buffer);
    pieces->buffer = grown;
    pieces->kept = have - pieces->start;
}

static inline void pieces_take(struct pieces *pieces, size_t taken)
{
    REQUIRE(taken <= pieces->kept);
    pieces->start += taken;
    pieces->kept -= taken;
    memmove(pieces->buffer, pieces->buffer + taken, pieces->kept);
}

void weir_fuzz_split(const uint8_t *data, size_t size, size_t at)
{
    char *whole = text_in_pieces(data, size, size, 1);
    char *split = text_in_pieces(data, size, at, size);
    REQUIRE(strcmp(whole, split) == 0);
    free(whole);
    free(split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *whole = text_in_pieces(data, size, size, 1);
    if (size <= BYTEWISE_MAX) {
        char *bytewise = text_in_pieces(data, size, 0, 1);
        REQUIRE(strcmp(whole, bytewise) == 0);
        free(bytewise);
    }
    free(whole);
    if (size > 0)
        weir_fuzz_split(data, size, data[size / 2] * size / 256);
    return 0;
}

#endif
