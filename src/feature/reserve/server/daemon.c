/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/reserve/server/daemon.h"

#include "server/admin/exposition.h"
#include "server/daemon/daemon.h"

static int reservations_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_reservations *reservations = NULL;
    int err = weir_reservations_open(&reservations, WEIR_RESERVATIONS_MAX);
    weir_own_set(daemon, WEIR_OWN_RESERVATIONS, reservations);
    return err;
}

static int reservations_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                                   struct weir_reason *reason)
{
    if (options->index < WEIR_WORKERS_MAX)
        options->reservations = weir_daemon_reservations(daemon);
    return 0;
}

static void reservations_metrics(struct weir_metrics *metrics)
{
    const struct weir_reservations *list = weir_daemon_reservations(metrics->daemon);
    static const char refused[] = "weir_reservations_refused_total";
    weir_metrics_number(metrics, "weir_reservations", "gauge",
                        "Reservations that are open or being decided.",
                        weir_reservations_count(list));
    weir_metrics_number(metrics, "weir_reservations_max", "gauge", "Reservations that may be open.",
                        WEIR_RESERVATIONS_MAX);
    weir_metrics_head(metrics, refused, "counter", "Reservations that found no place.");
    weir_metrics_put(metrics, "%s{reason=\"full\"} %" PRIu64 "\n", refused,
                     weir_reservations_refused(list, WEIR_RESERVATIONS_FULL));
    weir_metrics_put(metrics, "%s{reason=\"caller\"} %" PRIu64 "\n", refused,
                     weir_reservations_refused(list, WEIR_RESERVATIONS_SHARE));
}

static void reservations_close(struct weir_daemon *daemon)
{
    weir_reservations_close(weir_daemon_reservations(daemon));
    weir_own_set(daemon, WEIR_OWN_RESERVATIONS, NULL);
}

const struct weir_service weir_service_reservations = {
    .name = "reservations",
    .open = reservations_open,
    .for_worker = reservations_for_worker,
    .metrics = reservations_metrics,
    .close = reservations_close,
};
