/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a control plane (CONFIG_TYPE=GRPC_XDS_SOTW) as `xds` of the section `envoy`. */
#ifndef WEIR_FEATURE_ENVOY_CLI_XDS_H
#define WEIR_FEATURE_ENVOY_CLI_XDS_H

#include "feature/envoy/cli/values.h"

/* Whether the configuration comes from a control plane. */
bool envoy_is_xds(const struct envoy_values *values);

/* Names the variables that need one, where there is none. */
void envoy_name_without_xds(const struct envoy_values *values, FILE *notes);

/* Writes `xds`, and when the service is healthy. */
void envoy_put_xds(struct envoy_values *values, FILE *out);

#endif
