/* SPDX-License-Identifier: Apache-2.0 */
/* A service: what a feature has in the daemon for as long as a run lasts. Its folder has a file
 * `daemon.c` with one of these, and services/list.c lists them all. The daemon opens, reloads and
 * closes them by the list; some of its files (listening.c, watch.c, readiness.c) also use what a
 * service keeps, by its own getter (own.h).
 *
 *   open ─▶ workers are opened (for_worker) ─▶ start ─▶ it serves ─▶ stop ─▶ workers are closed
 *        ─▶ close                                    tick, ready, metrics
 *                                                    a reload: check, accept, apply, applied
 *
 * Services are opened and started in the order of the list, and stopped and closed in the reverse
 * one. One whose open fails is stopped and closed as well, and so is each before it. Every function
 * may be NULL, and each does nothing where the rules ask for nothing of the service.
 *
 * Threads: the main thread's, except for `check`.
 */
#ifndef WEIR_SERVER_SERVICE_H
#define WEIR_SERVER_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_daemon;
struct weir_front;
struct weir_http_route;
struct weir_metric_table;
struct weir_metrics;
struct weir_reason;
struct weir_rules;
struct weir_worker_options;

struct weir_service {
    const char *name;  /* in errors, and in `feature` of keywords of the rules file */
    const char *needs; /* the service of another feature without which this one is left out, too;
                          NULL: none */
    /* Its endpoints of the admin listener: tables (http/route.h), NULL behind the last. */
    const struct weir_http_route *const *routes;
    /* Its metrics: tables (admin/exposition.h), one without rows behind the last. */
    const struct weir_metric_table *metrics;
    /* Its listeners (net/front.h), NULL behind the last. */
    const struct weir_front *const *fronts;

    /* daemon->rules are there, and no worker. Errors: any; without a text in *reason the error's
     * own text and the name are shown. */
    int (*open)(struct weir_daemon *daemon, struct weir_reason *reason);
    /* All workers are open, the admin's too, and no loop runs. Errors: as open. */
    int (*start)(struct weir_daemon *daemon, struct weir_reason *reason);
    /* What it gives a worker that is about to be opened: options->index, WEIR_WORKERS_MAX for the
     * admin worker, which decides nothing for clients. Errors: as open. */
    int (*for_worker)(struct weir_daemon *daemon, struct weir_worker_options *options,
                      struct weir_reason *reason);

    /* Rules that a reload has read: reads what they name into *read (NULL: nothing), which apply
     * gets, or refuses them. On the background thread, while the service works by the old ones. */
    int (*check)(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                 struct weir_reason *reason);
    /* On the main thread, when nothing else can refuse the rules any more: the same for what has to
     * be taken over to know that it can be. */
    int (*accept)(struct weir_daemon *daemon, const struct weir_rules *rules);
    /* Takes new rules over, before the workers do; daemon->rules are still the old ones. It owns
     * `read` now, and cannot fail: what cannot be taken over stays as it is, and is logged. */
    void (*apply)(struct weir_daemon *daemon, struct weir_rules *rules, void *read);
    /* The workers have the new rules, and daemon->rules are these. */
    void (*applied)(struct weir_daemon *daemon);
    /* Frees what check has read and apply did not get. */
    void (*drop)(void *read);

    /* Once a second. */
    void (*tick)(struct weir_daemon *daemon, uint64_t now_ns);
    /* SIGHUP: opens again what another program may have moved away. */
    void (*reopen)(struct weir_daemon *daemon);
    /* Adds to the text of /readyz what is wrong, though decisions are made. */
    void (*ready)(const struct weir_daemon *daemon, char *text, size_t room);
    /* Reads what its metrics show, before any of them is written. */
    void (*scrape)(struct weir_daemon *daemon);
    /* Writes metrics of which it knows no names beforehand, behind its tables. */
    void (*metrics_text)(struct weir_metrics *metrics);

    /* The daemon begins to stop: requests that are open are finished, and nothing new begins. */
    void (*drain)(struct weir_daemon *daemon);
    /* No worker decides any more: writes and sends what is queued, in a bounded time, and ends its
     * threads. */
    void (*stop)(struct weir_daemon *daemon);
    /* The workers are closed. */
    void (*close)(struct weir_daemon *daemon);
};

#endif
