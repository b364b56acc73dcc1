/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a folder of Envoy's configuration, as the original's ratelimit_config_check does. */
#ifndef WEIR_FEATURE_ENVOY_CLI_CHECK_H
#define WEIR_FEATURE_ENVOY_CLI_CHECK_H

#include <stdbool.h>

/* Loads a folder and says on stdout how that went, in the original's lines (`quiet`: only what is
 * wrong, on stderr). Returns the exit status. */
int cli_envoy_check(const char *folder, bool merge_domains, bool quiet);

/* Whether a file that is no rules file looks like one of that configuration: it has `domain:` and
 * `descriptors:` at the begin of lines. False also where it cannot be read. */
bool cli_envoy_is_config(const char *path);

/* The program `ratelimit_config_check -config_dir DIR [-merge_domain_configs]`. */
int weir_command_config_check(int argc, char **argv);

#endif
