/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format 0.0.4, written into a buffer of the admin worker. Those of
 * limits are in limit_metrics.c, those of the webhook in webhook/metrics.c.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_ADMIN_METRICS_H
#define WEIR_SERVER_ADMIN_METRICS_H

#include "server/daemon/daemon.h"

struct weir_metrics {
    struct weir_daemon *daemon;
    struct weir_buffer *text; /* NULL: no memory was left; nothing is written any more */
};

void weir_metrics_put(struct weir_metrics *metrics, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The two lines before the values of a metric. */
void weir_metrics_head(struct weir_metrics *metrics, const char *name, const char *type,
                       const char *help);

/* A metric of one value. */
void weir_metrics_number(struct weir_metrics *metrics, const char *name, const char *type,
                         const char *help, uint64_t value);

/* Appends all metrics in Prometheus' text format 0.0.4 to `text`, a buffer of the admin worker's.
 * Returns the buffer to use from now on; NULL (and the buffer is given back): no memory. */
struct weir_buffer *weir_metrics_write(struct weir_daemon *daemon, struct weir_buffer *text);

#endif
