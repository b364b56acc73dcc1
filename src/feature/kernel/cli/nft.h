/* SPDX-License-Identifier: Apache-2.0 */
/* `weir nft`: the limits of the kernel as rules for nft. */
#ifndef WEIR_FEATURE_KERNEL_CLI_NFT_H
#define WEIR_FEATURE_KERNEL_CLI_NFT_H

/* Runs the command. Returns the exit status. */
int weir_command_nft(int argc, char **argv);

#endif
