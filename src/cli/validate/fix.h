/* SPDX-License-Identifier: Apache-2.0 */
/* `weir validate --fix`: changes a rules file so that it says what it means.
 *
 * Two changes are known (enum weir_fix): a name is added to `attributes`, and a backslash is put
 * before what looks like an expression of another program. Both leave what weir does as it is. A
 * file is written only if weir then accepts it and less of it is deprecated; comments and layout
 * stay. The new file replaces the old one at once, with its permissions.
 *
 * Threads: the main thread only.
 */
#ifndef WEIR_CLI_FIX_H
#define WEIR_CLI_FIX_H

#include "rules/rules.h"

/* Fixes `path`, and prints what it did. Returns 0, also where nothing could be fixed, or a negative
 * enum weir_err where the file could not be written, which is printed. A file with errors is left
 * to cli_load_rules. */
int cli_fix_rules(const char *path) __attribute__((warn_unused_result));

/* Changes a text: all fixes of `problems` in it, once. Returns the new text (the caller's to free),
 * or NULL: no memory, or no fix that can be done. */
char *cli_fix_text(const char *text, size_t size, const struct weir_problems *problems,
                   size_t *fixed_size);

#endif
