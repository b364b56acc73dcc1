/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a rules file as people may see it, line by line: what is secret is replaced, and
 * lines stay where they are.
 *
 * Replaced are, by "(hidden)":
 *   - values of `token`, `secret` and other names that say so (is_secret_name), and of attributes
 * that logs must not show (rules_is_secret), wherever they stand, with all that is below them, also
 *     what an alias (`*name`) brings there
 *   - of a URL its user and password, its query, and of a webhook its path
 *   - comments that have such a name, because what was once a value often stays in one
 * Hidden as a whole are URLs in escaped text, and ones with an @ behind their host.
 *
 * What is no YAML is not shown at all.
 *
 * Memory: bounded by the text. Threads: pure.
 */
#ifndef WEIR_FEATURE_DASHBOARD_RULES_SHOWN_RULES_H
#define WEIR_FEATURE_DASHBOARD_RULES_SHOWN_RULES_H

#include <stddef.h>

struct weir_rules;

#define WEIR_SHOWN_RULES_MAX ((size_t)512 << 10) /* bytes of a file that is shown */

/* The text, with a NUL, which the caller frees. NULL: it is no YAML or no UTF-8, is too large, or
 * memory was out. `rules` say which attributes are secret. */
char *weir_shown_rules(const struct weir_rules *rules, const char *text, size_t size);

#endif
