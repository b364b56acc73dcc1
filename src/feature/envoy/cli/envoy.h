/* SPDX-License-Identifier: Apache-2.0 */
/* `weir envoy`: the server, configured as envoyproxy/ratelimit is; also the program called
 * `ratelimit`. */
#ifndef WEIR_FEATURE_ENVOY_CLI_ENVOY_H
#define WEIR_FEATURE_ENVOY_CLI_ENVOY_H

/* Runs the command. Returns the exit status. */
int weir_command_envoy(int argc, char **argv);

#endif
