/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/reserve/daemon.h"

#include "server/daemon/daemon.h"

static int reservations_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    (void)reason;
    return weir_reservations_open(&daemon->reservations, WEIR_RESERVATIONS_MAX);
}

static int reservations_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                                   struct weir_reason *reason)
{
    (void)reason;
    if (options->index < WEIR_WORKERS_MAX)
        options->reservations = daemon->reservations;
    return 0;
}

static void reservations_close(struct weir_daemon *daemon)
{
    weir_reservations_close(daemon->reservations);
    daemon->reservations = NULL;
}

const struct weir_service weir_service_reservations = {
    .name = "reservations",
    .open = reservations_open,
    .for_worker = reservations_for_worker,
    .close = reservations_close,
};
