/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of envoyproxy/ratelimit, as a rules file.
 *
 * `weir envoy` takes the variables that the original takes, with its defaults; each becomes a key
 * of the rules file, so that nothing is configured in two ways. docs/envoy.md has the table. What
 * cannot be honoured is named: no variable is ignored in silence.
 *
 * Threads: pure functions of what they are given.
 */
#ifndef WEIR_FEATURE_ENVOY_CLI_ENVIRONMENT_H
#define WEIR_FEATURE_ENVOY_CLI_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

/* The value of a variable, NULL: it is not set. */
typedef const char *(*cli_environment)(void *context, const char *name);

struct cli_envoy {
    char *rules; /* the text of a rules file; freed with free() */
    bool json_log;
    uint8_t log_level; /* enum weir_log_level: LOG_LEVEL */
};

/* Reads the environment. Variables that have no effect are named on `notes`, a line each. Errors:
 * WEIR_ERR_RANGE (an invalid value, or a setting that weir does not have and cannot
 * do without; `reason` names it), WEIR_ERR_MEMORY. */
int cli_envoy_read(struct cli_envoy *envoy, cli_environment environment, void *context, FILE *notes,
                   struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
