/* SPDX-License-Identifier: Apache-2.0 */
/* Names of attributes: what of the request that was given `weir explain` leaves out, and why; and
 * all that are built in. */
#ifndef WEIR_CLI_EXPLAIN_GIVEN_H
#define WEIR_CLI_EXPLAIN_GIVEN_H

#include "rules/rules.h"
#include "wire/json/check.h"

/* Prints a line for each header field and attribute that no rule reads, or that no request can say.
 */
void cli_explain_given(const struct weir_rules *rules, const struct weir_check_json *check);

/* Prints the table of attributes: their names, who may set them, where their values come from. */
void cli_explain_names(void);

#endif
