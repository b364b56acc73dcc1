/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the stream to a control plane. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_XDS_METRICS_H
#define WEIR_FEATURE_ENVOY_SERVER_XDS_METRICS_H

#include "feature/envoy/server/xds/stream.h"
#include "server/admin/exposition.h"

extern const struct weir_metric weir_xds_rows[];

struct weir_xds_numbers {
    struct weir_xds_counts counts;
    uint64_t connected;
};

/* Reads a struct weir_xds_numbers. False: there is no control plane. */
bool weir_xds_numbers_read(struct weir_daemon *daemon, void *read);

#endif
