/* SPDX-License-Identifier: Apache-2.0 */
/* weir standing list|show|set|clear|history; weir ban, unban, allow: what a running server holds
 * for or against callers. */
#ifndef WEIR_FEATURE_STANDING_CLI_STANDING_H
#define WEIR_FEATURE_STANDING_CLI_STANDING_H

int weir_command_standing(int argc, char **argv);
int weir_command_ban(int argc, char **argv);
int weir_command_unban(int argc, char **argv);
int weir_command_allow(int argc, char **argv);

#endif
