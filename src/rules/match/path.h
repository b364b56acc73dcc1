/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of requests in normal form (RFC 3986 6.2.2, and what servers do before they choose a
 * handler), so that no spelling of a path slips past a limit:
 *   - query and fragment are cut off; of an absolute-form target, scheme and authority too;
 *   - percent-encoded unreserved characters (letters, digits, - . _ ~) are decoded; every other
 *     encoding stays and gets upper-case digits (%2f becomes %2F, which is not a separator);
 *   - bytes that a path may not contain (space, controls, quotes, non-ASCII, …) are encoded;
 *   - path parameters (RFC 3986 3.3) are cut off: in each segment, everything from its first ";" or
 *     "%3B" (some servers decode first). "/a;x/b;y=1" is "/a/b", "/a/;x" is "/a/";
 *   - runs of slashes merge, then dot segments are removed (RFC 3986 5.2.4), never above the root;
 *   - case and a trailing slash are kept.
 * An empty path is "/"; "*" (OPTIONS) stays. Refused are %zz, a NUL (raw or %00: the next program
 * may stop reading there), and a path that begins neither with "/" nor with a scheme. Where
 * parameters are cut off, "/..;x" and "/;x/a" are refused too: servers disagree on which path that
 * is.
 *
 * A rules file may choose otherwise (enum weir_path_options): keep parameters, fold the case of
 * ASCII letters, drop a trailing slash. Its paths and its patterns take the same options.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_MATCH_PATH_H
#define WEIR_RULES_MATCH_PATH_H

#include <stddef.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_PATH_MAX                                                                              \
    7168 /* bytes of a normalised path: scratch less 8 KiB of key texts, 1 spare */

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

#endif
