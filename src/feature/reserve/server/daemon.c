/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/reserve/server/daemon.h"

#include "feature/reserve/server/reservations.h"
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

static bool reservations_read(struct weir_daemon *daemon, void *read)
{
    uint64_t *numbers = read;
    if (!weir_daemon_reservations(daemon))
        return false;
    numbers[0] = weir_reservations_count(weir_daemon_reservations(daemon));
    numbers[1] = WEIR_RESERVATIONS_MAX;
    return true;
}

static void put_refused(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_reservations *list = weir_daemon_reservations(metrics->daemon);
    weir_metrics_value(metrics, metric, weir_reservations_refused(list, WEIR_RESERVATIONS_FULL),
                       "full");
    weir_metrics_value(metrics, metric, weir_reservations_refused(list, WEIR_RESERVATIONS_SHARE),
                       "caller");
}

static const struct weir_metric reservations_rows[] = {
    {"weir_reservations", "gauge", NULL, "Reservations that are open or being decided.", .at = 0},
    {"weir_reservations_max", "gauge", NULL, "Reservations that may be open.",
     .at = sizeof(uint64_t)},
    {"weir_reservations_refused_total", "counter", "reason", "Reservations that found no place.",
     .put = put_refused},
    {.name = NULL},
};
static const struct weir_metric_table reservations_metrics[] = {
    {reservations_rows, reservations_read, 2 * sizeof(uint64_t)},
    {.rows = NULL},
};

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
