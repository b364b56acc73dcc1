/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, and globs.
 *
 * A pattern has segments between slashes. ":name" takes one segment and names it, "*" takes one
 * segment (neither takes an empty one), and a final "**" takes all remaining segments, also none:
 * "/a", "/a/" and "/a/b" are in "/a/" "**". Literal segments are brought to the normal form of
 * paths first (path.h).
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_MATCH_PATTERN_H
#define WEIR_RULES_MATCH_PATTERN_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_PATTERN_SEGMENTS_MAX 32

enum weir_segment_kind { WEIR_SEGMENT_LITERAL, WEIR_SEGMENT_ANY, WEIR_SEGMENT_REST };

/* A compiled pattern; texts point into its `room`. */
struct weir_path_pattern {
    uint8_t count;
    struct weir_path_segment {
        uint8_t kind;
        struct weir_bytes text; /* LITERAL: the segment; ANY: its name, or data == NULL */
    } segments[WEIR_PATTERN_SEGMENTS_MAX];
};

/* Compiles `text`. `room` (WEIR_PATH_MAX bytes of the caller's, living as long as the pattern)
 * takes its literals and names; *used bytes of it are used. Errors: WEIR_ERR_SYNTAX, `reason`
 * quotes the pattern and says what is wrong. */
int weir_path_pattern_compile(struct weir_path_pattern *pattern, struct weir_bytes text,
                              unsigned options, char *room, size_t *used,
                              struct weir_reason *reason) __attribute__((warn_unused_result));

/* The most bytes between two stars of a glob. */
#define WEIR_GLOB_PIECE_MAX 255

/* Whether `text` is in a glob: "*" is any run of bytes; a byte behind a backslash is itself, and so
 * is a backslash at the end. It takes time linear in glob and text, if weir_glob_fits. */
bool weir_glob_match(struct weir_bytes glob, struct weir_bytes text);

/* The same for a glob in lower case, with the letters A to Z of the text taken as a to z. */
bool weir_glob_match_folded(struct weir_bytes glob, struct weir_bytes text);

/* Whether no piece between two stars of a glob has more than WEIR_GLOB_PIECE_MAX bytes. */
bool weir_glob_fits(struct weir_bytes glob);

#endif
