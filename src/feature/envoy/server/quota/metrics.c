/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/envoy/server/quota/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/quota/service.h"
#include "server/daemon/addresses.h"
#include "server/daemon/daemon.h"
#include "server/grpc/front.h"

#define AT(member) .at = offsetof(struct weir_quota_numbers, member)

bool weir_quota_numbers_read(struct weir_daemon *daemon, void *read)
{
    struct weir_quota_service *service = weir_daemon_quota(daemon);
    struct weir_quota_numbers *numbers = read;
    if (!weir_daemon_listens(daemon, &weir_grpc_front) || !service)
        return false;
    pthread_mutex_lock(&service->lock);
    numbers->streams = weir_quota_streams(service->quota);
    numbers->buckets = weir_quota_buckets(service->quota);
    pthread_mutex_unlock(&service->lock);
    numbers->charged = weir_counted(&service->charged);
    for (unsigned i = 0; i < WEIR_QUOTA_COUNTS; i++)
        numbers->counts[i] = weir_counted(&service->counts[i]);
    return true;
}

static void put_assignments(struct weir_metrics *metrics, const struct weir_metric *metric,
                            const void *numbers)
{
    for (unsigned i = 0; i < WEIR_QUOTA_COUNTS; i++)
        weir_metrics_value(metrics, metric, ((const struct weir_quota_numbers *)numbers)->counts[i],
                           weir_quota_count_names[i]);
}

const struct weir_metric weir_quota_rows[] = {
    {"weir_quota_streams", "gauge", NULL, "Streams of Envoy's quota service.", AT(streams)},
    {"weir_quota_buckets", "gauge", NULL, "Buckets of these streams.", AT(buckets)},
    {"weir_quota_charged_total", "counter", NULL, "Cost charged for assignments, over all limits.",
     AT(charged)},
    {"weir_quota_assignments_total", "counter", "kind",
     "What buckets of the quota service were given.", .put = put_assignments},
    {.name = NULL},
};
