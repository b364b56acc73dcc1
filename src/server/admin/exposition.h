/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text exposition format 0.0.4, line by line, into a buffer of the admin worker.
 * The module that owns a number has a table of its metrics (server/service.h), which is written
 * here. The same rows write the totals of a limit in the JSON of the admin API.
 *
 * Labels come from the configuration and from weir itself, so that the number of series is known
 * before the first request. Only weir_denied_key_total and weir_top have keys of requests, at most
 * `series` and `top` of `denials`, and Envoy's statistics as many as stats.h allows.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_ADMIN_EXPOSITION_H
#define WEIR_SERVER_ADMIN_EXPOSITION_H

#include <jansson.h>

#include "server/daemon/daemon.h"

struct weir_metrics {
    struct weir_daemon *daemon;
    struct weir_buffer *text; /* NULL: no memory was left; nothing is written any more */
    json_t *json;             /* not NULL: values become members of this object instead of lines */
};

/* A metric: what docs/metrics.md says of it, which a test compares, and where its numbers are. */
struct weir_metric {
    const char *name, *type;
    const char *labels; /* "limit,result"; NULL: none */
    const char *help;
    size_t at; /* its number: a uint64_t in the numbers of the table */
    /* Where a value is in the JSON of what the metric is about: "borrowed"; "actions.*": in an
     * object there, by the value's last label; "*": by that label. NULL: nowhere. */
    const char *json;
    /* Or writes its series itself, by weir_metrics_value. */
    void (*put)(struct weir_metrics *metrics, const struct weir_metric *metric,
                const void *numbers);
    /* Whether it is shown; NULL: always. */
    bool (*there)(const struct weir_metric *metric, const void *numbers);
};

/* The metrics of one owner, in their order, which read their numbers together. */
struct weir_metric_table {
    const struct weir_metric *rows; /* a name of NULL behind the last. NULL: the end of tables */
    /* Reads them, which are 0 before, into `numbers` of `size` bytes. False: by these rules none of
     * the metrics is there. NULL: there are none to read. */
    bool (*read)(struct weir_daemon *daemon, void *numbers);
    size_t size; /* up to WEIR_METRIC_NUMBERS_MAX */
};

#define WEIR_METRIC_NUMBERS_MAX 8192

/* Writes a table. */
void weir_metrics_table(struct weir_metrics *metrics, const struct weir_metric_table *table);

/* One series: the value, and the texts (const char *) of as many labels as the metric has. */
void weir_metrics_value(struct weir_metrics *metrics, const struct weir_metric *metric,
                        uint64_t value, ...);

/* The same without the value: `suffix` ends the name ("_sum"), and a blank follows. */
void weir_metrics_series(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const char *suffix, ...);

/* One series of seconds. */
void weir_metrics_seconds(struct weir_metrics *metrics, const struct weir_metric *metric,
                          int64_t ns);

void weir_metrics_put(struct weir_metrics *metrics, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Lines that were made before. */
void weir_metrics_text(struct weir_metrics *metrics, const char *text, size_t size);

#endif
