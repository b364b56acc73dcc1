/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/grpc/daemon.h"

#include <stdio.h>

#include "server/admin/exposition.h"
#include "server/daemon/addresses.h"
#include "server/grpc/front.h"

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    return weir_daemon_listens(daemon, &weir_grpc_front);
}

/* By method (the last: none) and status, over all workers. */
static uint64_t calls_of(const struct weir_daemon *daemon, unsigned method, unsigned status)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++)
            if (listener->kind == WEIR_LISTENER_GRPC)
                calls += weir_counted(
                    &((const struct weir_grpc *)listener->workspace)->calls[method][status]);
    }
    return calls;
}

/* Series that are zero are left out. */
static void put_calls(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    char code[4];
    for (unsigned m = 0; m <= WEIR_GRPC_METHODS_MAX; m++) {
        const char *method = m < weir_grpc_method_count ? weir_grpc_methods[m].name : "none";
        for (unsigned s = 0; s < WEIR_GRPC_STATUSES; s++) {
            uint64_t calls = calls_of(metrics->daemon, m, s);
            snprintf(code, sizeof code, "%u", s % 100);
            if (calls > 0)
                weir_metrics_value(metrics, metric, calls, method, code);
        }
    }
}

static const struct weir_metric rows[] = {
    {"weir_grpc_calls_total", "counter", "method,code", "gRPC calls answered.", .put = put_calls},
    {.name = NULL},
};
static const struct weir_metric_table grpc_metrics[] = {
    {rows, read_numbers, 0},
    {.rows = NULL},
};

static const struct weir_front *const grpc_fronts[] = {&weir_grpc_front, NULL};

const struct weir_service weir_service_grpc = {
    .name = "grpc",
    .fronts = grpc_fronts,
    .metrics = grpc_metrics,
};
