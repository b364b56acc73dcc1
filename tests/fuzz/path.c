/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, hosts, patterns and globs: normal forms are normal, and the trie finds what a scan finds.
 * An input is a path, a newline, and patterns, each in a line; it is read under every option. */
#include "fuzz.h"

#include <string.h>

#include "path_pattern.h"
#include "rules/match/host.h"
#include "rules/match/path.h"
#include "rules/match/path_trie.h"

#define PATTERNS_MAX 32

static char path_room[2][WEIR_PATH_MAX];
static char pattern_rooms[PATTERNS_MAX][WEIR_PATH_MAX];
static struct weir_path_pattern patterns[PATTERNS_MAX];

/* Whether a path continues with "." or "..", up to a slash or its end. */
static bool is_dot_segment(const char *rest, size_t size)
{
    size_t dots = 0;
    while (dots < size && rest[dots] == '.')
        dots++;
    return (dots == 1 || dots == 2) && (dots == size || rest[dots] == '/');
}

/* A normal path has one slash between segments, no dot segment, and normalises to itself. */
static void check_path(struct weir_bytes path, unsigned options)
{
    struct weir_bytes again;
    REQUIRE(weir_path_normalise(&again, path, options, path_room[1], WEIR_PATH_MAX, NULL) == 0);
    REQUIRE(again.size == path.size && memcmp(again.data, path.data, path.size) == 0);
    REQUIRE(path.size > 0 && path.size <= WEIR_PATH_MAX);
    if (path.size == 1 && path.data[0] == '*')
        return;
    REQUIRE(path.data[0] == '/');
    for (size_t i = 0; i < path.size; i++) {
        unsigned char byte = (unsigned char)path.data[i];
        REQUIRE(byte > ' ' && byte < 0x7F && byte != '?' && byte != '#');
        REQUIRE(i == 0 || byte != '/' || path.data[i - 1] != '/');
        REQUIRE(byte != '/' || !is_dot_segment(path.data + i + 1, path.size - i - 1));
        REQUIRE(byte != ';' || (options & WEIR_PATH_KEEP_PARAMETERS) != 0);
        bool encoding = (i > 0 && path.data[i - 1] == '%') || (i > 1 && path.data[i - 2] == '%');
        bool upper = byte >= 'A' && byte <= 'Z' && !encoding;
        REQUIRE(!upper || (options & WEIR_PATH_FOLD_CASE) == 0);
    }
    bool slash = path.size > 1 && path.data[path.size - 1] == '/';
    REQUIRE(!slash || (options & WEIR_PATH_DROP_SLASH) == 0);
}

static void check_host(struct weir_bytes raw)
{
    char out[2][WEIR_HOST_MAX];
    struct weir_bytes host, again;
    if (weir_host_normalise(&host, raw, out[0], NULL) == 0) {
        REQUIRE(host.size <= WEIR_HOST_MAX);
        /* "a.." loses one dot a time, so only what ends without one is normal. */
        bool normal = host.size == 0 || host.data[host.size - 1] != '.';
        if (normal) {
            REQUIRE(weir_host_normalise(&again, host, out[1], NULL) == 0);
            REQUIRE(again.size == host.size && memcmp(again.data, host.data, host.size) == 0);
        }
    }
}

static void check_patterns(struct weir_bytes path, unsigned options, const char *text, size_t size)
{
    struct rules_path_trie trie = {0};
    uint32_t atoms = 0, numbers[PATTERNS_MAX], found[PATTERNS_MAX], count = 0;
    while (size > 0 && count < PATTERNS_MAX) {
        const char *end = memchr(text, '\n', size);
        struct weir_bytes line = {text, end != NULL ? (size_t)(end - text) : size};
        size_t used;
        if (weir_path_pattern_compile(&patterns[count], line, options, pattern_rooms[count], &used,
                                      NULL) == 0) {
            REQUIRE(used <= WEIR_PATH_MAX);
            numbers[count] = rules_path_trie_add(&trie, &patterns[count], &atoms);
            REQUIRE(numbers[count] < atoms);
            count++;
        }
        weir_glob_match(line, path);
        size -= line.size < size ? line.size + 1 : size;
        text += line.size + (end != NULL);
    }
    struct rules_path_segments segments;
    rules_path_trie_cut(&trie, path, &segments);
    uint32_t matches = rules_path_trie_find(&trie, &segments, found, PATTERNS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        bool in = false;
        for (uint32_t m = 0; m < matches; m++)
            in = in || found[m] == numbers[i];
        REQUIRE(in == path_pattern_match(&patterns[i], path));
    }
    rules_path_trie_free(&trie);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    const char *end = memchr(text, '\n', size);
    struct weir_bytes raw = {text, end != NULL ? (size_t)(end - text) : size}, path;
    struct weir_reason reason = {{0}};
    for (unsigned options = 0; options < 8; options++) {
        int err = weir_path_normalise(&path, raw, options, path_room[0], WEIR_PATH_MAX, &reason);
        REQUIRE(err == 0 || memcmp(reason.text, "path: ", 6) == 0);
        if (err == 0) {
            check_path(path, options);
            if (end != NULL)
                check_patterns(path, options, end + 1, size - raw.size - 1);
        }
    }
    check_host(raw);
    free(text);
    return 0;
}
