/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment in the values that differ between machines: addresses, URLs, names
 * of files.
 *
 *   ${NAME}             the variable; that it is not set, or empty, is a problem
 *   ${NAME:-default}    its value, or the default where it is not set, or empty
 *   $${                 the two characters ${
 *
 * A name is a letter or `_`, then letters, digits and `_`. A default ends at the first `}`. Every
 * other `$` stands for itself. What a variable holds is not expanded again, and no problem quotes
 * it: it may be a URL with a password.
 *
 * Threads: those of the loader; the environment must not change meanwhile.
 */
#ifndef WEIR_RULES_LOAD_ENVIRONMENT_H
#define WEIR_RULES_LOAD_ENVIRONMENT_H

#include "rules/load/fields.h"

#define RULES_PLACE_MAX 4096 /* PATH_MAX; bytes, expanded */

/* Reads a text as rules_read_text does, and expands it. *text is NUL-terminated, and belongs to the
 * tree or to the loader's scratch memory. False after a problem. */
bool rules_read_place(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes *text) __attribute__((warn_unused_result));

#endif
