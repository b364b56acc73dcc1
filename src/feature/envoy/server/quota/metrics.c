/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/envoy/server/quota/metrics.h"

#include <inttypes.h>

#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/quota/service.h"
#include "server/daemon/addresses.h"
#include "server/daemon/daemon.h"
#include "server/grpc/front.h"

void weir_metrics_of_quotas(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    struct weir_quota_service *service = weir_daemon_quota(daemon);
    if (!weir_daemon_listens(daemon, &weir_grpc_front) || !service)
        return;
    pthread_mutex_lock(&service->lock);
    uint32_t streams = weir_quota_streams(service->quota);
    uint32_t buckets = weir_quota_buckets(service->quota);
    pthread_mutex_unlock(&service->lock);
    weir_metrics_number(metrics, "weir_quota_streams", "gauge", "Streams of Envoy's quota service.",
                        streams);
    weir_metrics_number(metrics, "weir_quota_buckets", "gauge", "Buckets of these streams.",
                        buckets);
    weir_metrics_number(metrics, "weir_quota_charged_total", "counter",
                        "Cost charged for assignments, over all limits.",
                        weir_counted(&service->charged));
    weir_metrics_head(metrics, "weir_quota_assignments_total", "counter",
                      "What buckets of the quota service were given.");
    for (unsigned i = 0; i < WEIR_QUOTA_COUNTS; i++)
        weir_metrics_put(metrics, "weir_quota_assignments_total{kind=\"%s\"} %" PRIu64 "\n",
                         weir_quota_count_names[i], weir_counted(&service->counts[i]));
}
