/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a rules file: from its text to struct weir_rules.
 *
 * load.c reads the top level and calls one module for each part of the file:
 *
 *   load ─▶ settings, callers, envoy, jwt, limits ─▶ match, key, rate, cost, sharing
 *        all of them ─▶ attributes, fields ─▶ document, problems, quantity, file
 */
#ifndef WEIR_RULES_LOAD_LOAD_H
#define WEIR_RULES_LOAD_LOAD_H

#include "rules/compiled.h"

/* Fills `rules`, which are all zero except their references. `name` is the file's name in
 * messages; relative paths start at `folder`. Errors: WEIR_ERR_RULES (`problems` says why),
 * WEIR_ERR_MEMORY. */
int rules_load_text(struct weir_rules *rules, const char *name, const char *folder,
                    const char *text, size_t size, struct weir_problems *problems)
    __attribute__((warn_unused_result));

#endif
