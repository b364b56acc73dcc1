/* SPDX-License-Identifier: Apache-2.0 */
/* `weir validate`: reports everything that is wrong with rules files. */
#ifndef WEIR_CLI_VALIDATE_H
#define WEIR_CLI_VALIDATE_H

/* Runs the command. Returns the exit status. */
int weir_command_validate(int argc, char **argv);

#endif
