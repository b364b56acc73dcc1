/* SPDX-License-Identifier: Apache-2.0 */
/* Where a client goes after its challenge: a path of the same origin, and nothing else.
 *
 * A browser resolves the Location of a redirect as the URL standard says
 * (https://url.spec.whatwg.org/#url-parsing): "//host" and "/\host" name another host, a backslash
 * counts as a slash, and tabs and line ends are dropped before anything is read ("/<tab>/host").
 * So a path begins with one slash, neither slash nor backslash follows, and it consists of
 * printable ASCII without backslashes.
 *
 * Threads: pure. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_RETURN_PATH_H
#define WEIR_FEATURE_CHALLENGE_RETURN_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/bytes.h>

#define WEIR_RETURN_PATH_MAX 2048 /* bytes; longer ones do not fit in all browsers and proxies */

/* Whether a redirect to it stays on the same origin. */
bool weir_return_path_is_valid(struct weir_bytes path);

/* The value of `to=` in a query: all behind it, since a reverse proxy inserts a path with a query
 * of its own as it is. So `to` comes last. data == NULL: the query has none. */
struct weir_bytes weir_return_path_find(struct weir_bytes query);

#endif
