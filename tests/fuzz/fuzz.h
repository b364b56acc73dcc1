/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target is: an entry for libFuzzer, and for incremental parsers a second one. A target
 * says that something is wrong by ending the process (require). */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs one input; always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: runs one input in two pieces, data[0..at) and the rest, and requires that this makes no
 * difference. */
__attribute__((weak)) void weir_fuzz_split(const uint8_t *data, size_t size, size_t at);

#define REQUIRE(condition) require((condition), #condition, __FILE__, __LINE__)

static inline void require(int holds, const char *condition, const char *file, int line)
{
    if (!holds) {
        fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
        abort();
    }
}

/* A copy in a block of exactly its size; the caller frees it. */
static inline char *fuzz_copy(const uint8_t *data, size_t size)
{
    char *copy = calloc(1, size > 0 ? size : 1);
    REQUIRE(copy != NULL);
    for (size_t i = 0; i < size; i++)
        copy[i] = (char)data[i];
    return copy;
}

#endif
