/* SPDX-License-Identifier: Apache-2.0 */
/* `weir xdp`: the filter for packets in the kernel. */
#ifndef WEIR_FEATURE_XDP_CLI_XDP_H
#define WEIR_FEATURE_XDP_CLI_XDP_H

/* Runs the command. Returns the exit status. */
int weir_command_xdp(int argc, char **argv);

#endif
