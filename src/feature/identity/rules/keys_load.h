/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a keys file: line by line, which is fast, as long as every line has the usual form and no
 * problem; else as YAML, which reports what is wrong and where. See keys.h.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_KEYS_LOAD_H
#define WEIR_FEATURE_IDENTITY_RULES_KEYS_LOAD_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_keys; /* a whole keys file */

/* Reads the file `path` into the keys of the rules, whose limits are loaded already. `compile`: the
 * limits are sound, so overrides are compiled; else they are only checked. Returns 0,
 * WEIR_ERR_RULES with problems added, the error of weir_file_open (`reason` says why), or
 * WEIR_ERR_MEMORY. */
int rules_keys_load(struct weir_rules *rules, const char *path, bool compile,
                    struct weir_problems *problems, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
