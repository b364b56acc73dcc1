/* SPDX-License-Identifier: Apache-2.0 */
/* `weir capacity`: for how many keys of each limit a state has room, and how large a state must be
 * for a number of keys. */
#ifndef WEIR_CLI_CAPACITY_H
#define WEIR_CLI_CAPACITY_H

int weir_command_capacity(int argc, char **argv);

#endif
