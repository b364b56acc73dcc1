/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a match that look like patterns of other programs: regular expressions, alternatives of
 * shells and of nginx.
 *
 * In weir only `*` is special, so that "~*(bot)", "GET|POST" or "*.{php,asp}" would be compared
 * byte for byte, match nothing, and switch a limit off in silence. What people write in globs and
 * literals on purpose stays as it is: "Mozilla/5.0 (X11*", "a|b" outside of `method`, "[" without
 * "]". A backslash before a byte says that it is meant.
 */
#ifndef WEIR_RULES_FOREIGN_H
#define WEIR_RULES_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

struct rules_foreign {
    size_t at;        /* the byte that a backslash would make a literal */
    const char *what; /* static: as the message names it */
};

/* Finds the first such thing in a value of `attribute` (enum weir_attribute, or another number). */
bool rules_find_foreign(struct weir_bytes text, uint16_t attribute, struct rules_foreign *found);

/* The same in a pattern of paths, beyond what the pattern itself refuses: `/users/<id>`, `/login$`.
 * In paths these bytes are meant where they are encoded. */
bool rules_find_foreign_path(struct weir_bytes text, struct rules_foreign *found);

#endif
