/* SPDX-License-Identifier: Apache-2.0 */
/* `weir top`: shows the limits of a running server, the keys that are denied most, and the limits
 * whose keys find no room. */
#ifndef WEIR_FEATURE_USE_CLI_TOP_H
#define WEIR_FEATURE_USE_CLI_TOP_H

/* Runs the command. Returns the exit status. */
int weir_command_top(int argc, char **argv);

#endif
