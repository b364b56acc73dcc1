/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a rules file for a command, and prints what is wrong with it. */
#ifndef WEIR_CLI_RULES_FILE_H
#define WEIR_CLI_RULES_FILE_H

#include "rules/rules.h"

/* Prints every problem on stderr as "file:line:column: message" ("weir: file: message" where it
 * could not be read). */
void cli_print_problems(const char *path, const struct weir_problems *problems);

/* Loads `path`, and prints every problem. On success the caller owns *rules, and the problems were
 * what is deprecated. Otherwise *rules is NULL, and the result is negative (enum weir_err). */
int cli_load_rules(struct weir_rules **rules, const char *path) __attribute__((warn_unused_result));

#endif
