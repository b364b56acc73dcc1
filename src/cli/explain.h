/* SPDX-License-Identifier: Apache-2.0 */
/* `weir explain`: which limits a request meets, why the others do not apply, and what they would
 * decide. */
#ifndef WEIR_CLI_EXPLAIN_H
#define WEIR_CLI_EXPLAIN_H

/* Runs the command. Returns the exit status. */
int weir_command_explain(int argc, char **argv);

#endif
