/* SPDX-License-Identifier: Apache-2.0 */
/* `weir serve`: the command line of the daemon; the work is in server/. */
#ifndef WEIR_CLI_SERVE_H
#define WEIR_CLI_SERVE_H

/* Runs the command. Returns the exit status. */
int weir_command_serve(int argc, char **argv);

#endif
