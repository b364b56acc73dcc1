/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text exposition format 0.0.4, line by line, into a buffer of the admin worker.
 * The module that owns a number writes it by these; admin/metrics.h calls them all.
 *
 * Labels come from the configuration and from weir itself, so that the number of series is known
 * before the first request. Only weir_denied_key_total has keys of requests, at most `series` of
 * `denials`, and Envoy's statistics as many as stats.h allows.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_ADMIN_EXPOSITION_H
#define WEIR_SERVER_ADMIN_EXPOSITION_H

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

/* Lines that were made before. */
void weir_metrics_text(struct weir_metrics *metrics, const char *text, size_t size);

#endif
