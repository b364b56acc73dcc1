/* SPDX-License-Identifier: Apache-2.0 */
/* Names of attributes in requests that are neither built in nor declared (known_names.h).
 *
 * Every door comes here with such a name (source.h), once for each value. Threads: any.
 */
#ifndef WEIR_RULES_UNKNOWN_NAMES_H
#define WEIR_RULES_UNKNOWN_NAMES_H

#include <stddef.h>

struct weir_rules;

/* Takes notice of a name. Returns 0: it is ignored; or an error, which is the request's. */
int rules_unknown_name(const struct weir_rules *rules, const char *name, size_t size);

#endif
