/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files, plain, gzip and zstd, whole or damaged: what is read does not depend on the sizes of
 * the reads, and a plain file is read as it is. */
#include "trace_file.h"

#include <string.h>

#include "cli/replay/trace/input.h"

/* A bomb is cut there. */
#define OUT_MAX ((size_t)1 << 18)

struct text {
    char *bytes;
    size_t size;
    bool opened, failed, whole; /* whole: it ended before OUT_MAX */
    bool packed;
};

/* Reads a file in pieces of 1 to `most` bytes. */
static struct text read_file(const char *path, size_t most)
{
    struct text text = {.bytes = malloc(OUT_MAX)};
    struct weir_reason reason = {{0}};
    struct replay_input *input = replay_input_open(path, &reason);
    REQUIRE(text.bytes != NULL);
    text.opened = input;
    text.failed = !input;
    text.packed = input && replay_input_packing(input)[0] != '\0';
    for (size_t turn = 1; input && text.size < OUT_MAX && !text.whole && !text.failed; turn++) {
        size_t left = OUT_MAX - text.size, wanted = 1 + turn * 7919 % most;
        size_t size = wanted < left ? wanted : left;
        char *piece = malloc(size); /* of exactly its size */
        REQUIRE(piece != NULL);
        ssize_t got = replay_input_read(input, piece, size, &reason);
        REQUIRE(got <= (ssize_t)size);
        text.failed = got < 0;
        text.whole = got == 0;
        if (got > 0) {
            memcpy(text.bytes + text.size, piece, (size_t)got);
            text.size += (size_t)got;
        }
        free(piece);
    }
    REQUIRE(!text.failed || reason.text[0] != '\0');
    replay_input_close(input);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_file file;
    trace_file_open(&file, data, size);
    struct text one = read_file(file.path, 1000), other = read_file(file.path, OUT_MAX);
    REQUIRE(one.opened == other.opened && one.packed == other.packed);
    if (one.opened && !one.packed)
        REQUIRE(one.whole && one.size == size && (size == 0 || !memcmp(one.bytes, data, size)));
    if (one.whole && other.whole)
        REQUIRE(one.size == other.size);
    size_t both = one.size < other.size ? one.size : other.size;
    REQUIRE(both == 0 || memcmp(one.bytes, other.bytes, both) == 0);
    REQUIRE(!one.whole || !other.failed);
    REQUIRE(!other.whole || !one.failed);
    free(one.bytes);
    free(other.bytes);
    trace_file_close(&file);
    return 0;
}
