/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Go's environment variables: what github.com/kelseyhightower/envconfig would make of
 * them, and their form in YAML. The first that is wrong is kept as the reason. */
#ifndef WEIR_FEATURE_ENVOY_CLI_VALUES_H
#define WEIR_FEATURE_ENVOY_CLI_VALUES_H

#include <stdint.h>

#include "feature/envoy/cli/environment.h"

struct envoy_values {
    cli_environment environment;
    void *context;
    struct weir_reason *reason;
};

/* Keeps `what` as the reason, unless there is one. */
void envoy_wrong(struct envoy_values *values, const char *what);

/* A text; one that is set to nothing is not set. */
const char *envoy_text(const struct envoy_values *values, const char *name, const char *standard);

/* Whether a text is set to something else than `standard`, in any case of letters. */
bool envoy_is_set(const struct envoy_values *values, const char *name, const char *standard);

/* As strconv.ParseBool reads it. */
bool envoy_flag(struct envoy_values *values, const char *name, bool standard);

/* A number of 0 to `most`. */
uint64_t envoy_number(struct envoy_values *values, const char *name, uint64_t most,
                      uint64_t standard);

/* As time.ParseDuration reads it: "1h30m", "1.5s", "100ms", "0"; in nanoseconds, never negative. */
uint64_t envoy_duration(struct envoy_values *values, const char *name, uint64_t standard_ns);

/* Writes a text as a YAML scalar in single quotes. */
void envoy_put(struct envoy_values *values, FILE *out, const char *text);

/* Whether a list "k:v,k:v", whose colon is `between`, is as it should be; one that is not set is.
 */
bool envoy_check_pairs(struct envoy_values *values, const char *name, char between);

/* Writes such a list as a mapping of YAML on one line, `before` first. False: it is not set, or
 * wrong, and nothing is written. */
bool envoy_put_pairs(struct envoy_values *values, FILE *out, const char *before, const char *name,
                     char between);

#endif
