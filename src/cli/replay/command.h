/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `weir replay`. */
#ifndef WEIR_CLI_REPLAY_COMMAND_H
#define WEIR_CLI_REPLAY_COMMAND_H

/* Runs the command. Returns the exit status. */
int weir_command_replay(int argc, char **argv);

#endif
