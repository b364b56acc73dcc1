/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics of the server. Each is written by the module that owns its number, by way of
 * exposition.h; this one has those of the process and its workers.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_ADMIN_METRICS_H
#define WEIR_SERVER_ADMIN_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_server_metrics[];

/* Appends all metrics in Prometheus' text format 0.0.4 to `text`, a buffer of the admin worker's.
 * Returns the buffer to use from now on; NULL (and the buffer is given back): no memory. */
struct weir_buffer *weir_metrics_write(struct weir_daemon *daemon, struct weir_buffer *text);

#endif
