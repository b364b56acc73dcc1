/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and hosts of requests in one form, and patterns of paths.
 *
 * Normal form of a path (RFC 3986 6.2.2, and what servers do before they choose a handler), so that
 * no spelling of a path slips past a limit:
 *   - query and fragment are cut off; of an absolute-form target, scheme and authority too;
 *   - percent-encoded unreserved characters (letters, digits, - . _ ~) are decoded; every other
 *     encoding stays and gets upper-case digits (%2f becomes %2F and is no separator);
 *   - bytes that may not stand in a path (space, controls, quotes, non-ASCII, …) are encoded;
 *   - path parameters (RFC 3986 3.3) are cut off: of each segment, what follows its first ";" or
 *     "%3B", which some servers decode first. "/a;x/b;y=1" is "/a/b", "/a/;x" is "/a/";
 *   - runs of slashes merge, then dot segments are removed (RFC 3986 5.2.4); above the root is the
 *     root; case and a trailing slash are kept.
 * An empty path is "/"; "*" (OPTIONS) stays. Refused are %zz, a NUL (raw or %00: the next program
 * may stop reading there), and what begins neither with "/" nor with a scheme. Where parameters
 * are cut off, "/..;x" and "/;x/a" are refused too: servers disagree on which path that is.
 *
 * A rules file may choose otherwise (enum weir_path_options): keep parameters, fold the case of
 * ASCII letters, drop a trailing slash. Its paths and its patterns take the same options.
 *
 * Normal form of a host: lower case, without port and final dot; an IPv6 literal in brackets, in
 * RFC 5952's form.
 *
 * Patterns: segments between slashes; ":name" takes one segment and names it, "*" takes one segment
 * (neither takes an empty one), a final "**" takes all segments that are left, also none: "/a" and
 * "/a/" and "/a/b" are in "/a/" "**". Literal segments are brought to the normal form first.
 */
#ifndef WEIR_RULES_MATCH_PATH_H
#define WEIR_RULES_MATCH_PATH_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_PATH_MAX                                                                              \
    7168                  /* bytes of a normalised path: scratch less 8 KiB of key texts, 1 spare */
#define WEIR_HOST_MAX 255 /* RFC 1035 2.3.4 */
#define WEIR_PATTERN_SEGMENTS_MAX 32 /* segments of a pattern */

/* What a rules file may change of the normal form: a set. 0 is the default. */
enum weir_path_options {
    WEIR_PATH_KEEP_PARAMETERS = 1, /* ";" is a character as any other */
    WEIR_PATH_FOLD_CASE = 2,       /* "/Login" is "/login"; an encoding keeps its upper case */
    WEIR_PATH_DROP_SLASH = 4,      /* "/login/" is "/login" */
};

/* Brings a path to its normal form. *path points into `raw` where that is normal already (the
 * common case), else into `out` (room bytes). Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE (longer
 * than `room` or WEIR_PATH_MAX), with `reason` (may be NULL) beginning "path: ". */
int weir_path_normalise(struct weir_bytes *path, struct weir_bytes raw, unsigned options, char *out,
                        size_t room, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The same for a host; reasons begin "host: ". `out` has WEIR_HOST_MAX bytes. */
int weir_host_normalise(struct weir_bytes *host, struct weir_bytes raw, char *out,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

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

/* Whether a normalised path is in the pattern; the slow, obvious way (the index has its own). */
bool weir_path_pattern_match(const struct weir_path_pattern *pattern, struct weir_bytes path);

/* Whether `text` is in a glob: "*" is any run of bytes, "\*" and "\\" are themselves. */
bool weir_glob_match(struct weir_bytes glob, struct weir_bytes text);

#endif
