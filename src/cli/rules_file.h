/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a rules file for a command, and prints what is wrong with it. */
#ifndef WEIR_CLI_RULES_FILE_H
#define WEIR_CLI_RULES_FILE_H

#include "rules/rules.h"

/* Loads `path`; on success the caller owns *rules. Otherwise every problem is printed on stderr as
 * "file:line:column: message" ("weir: file: message" when it could not be read), *rules is NULL,
 * and the result is negative (enum weir_err). */
int cli_load_rules(struct weir_rules **rules, const char *path) __attribute__((warn_unused_result));

#endif
