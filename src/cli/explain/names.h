/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that are built in, for `weir explain --names`. */
#ifndef WEIR_CLI_EXPLAIN_NAMES_H
#define WEIR_CLI_EXPLAIN_NAMES_H

/* Prints the table of attributes: their names, who may set them, where their values come from. */
void cli_explain_names(void);

#endif
