/* SPDX-License-Identifier: Apache-2.0 */
/* weir reload: a running server reads its rules again. */
#ifndef WEIR_CLI_RELOAD_RELOAD_H
#define WEIR_CLI_RELOAD_RELOAD_H

int weir_command_reload(int argc, char **argv);

#endif
