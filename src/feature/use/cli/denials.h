/* SPDX-License-Identifier: Apache-2.0 */
/* `weir denials`: why somebody was denied. See docs/use.md. */
#ifndef WEIR_FEATURE_USE_CLI_DENIALS_H
#define WEIR_FEATURE_USE_CLI_DENIALS_H

int weir_command_denials(int argc, char **argv);

#endif
