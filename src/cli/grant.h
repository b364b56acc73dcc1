/* SPDX-License-Identifier: Apache-2.0 */
/* `weir grant`: gives units back to one key of a running server's limit. */
#ifndef WEIR_CLI_GRANT_H
#define WEIR_CLI_GRANT_H

/* Runs the command. Returns the exit status. */
int weir_command_grant(int argc, char **argv);

#endif
