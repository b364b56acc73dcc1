/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/score/server/metrics.h"

#include <inttypes.h>

void weir_score_requests(const struct weir_daemon *daemon, uint64_t requests[WEIR_CLASSES])
{
    for (unsigned class = 0; class < WEIR_CLASSES; class ++) {
        requests[class] = 0;
        for (unsigned i = 0; i < daemon->worker_count; i++)
            requests[class] +=
                weir_counted(&weir_engine_scores(daemon->workers[i]->engine)->requests[class]);
    }
}

void weir_metrics_of_score(struct weir_metrics *metrics)
{
    const struct weir_daemon *daemon = metrics->daemon;
    const struct weir_score_info *info = weir_rules_score(daemon->rules);
    uint64_t requests[WEIR_CLASSES];
    if (!info)
        return;
    weir_metrics_head(metrics, "weir_requests_by_class_total", "counter",
                      "Requests by the class of their client's score; those whose standing denies "
                      "have none.");
    weir_score_requests(daemon, requests);
    for (unsigned class = 0; class < WEIR_CLASSES; class ++)
        weir_metrics_put(metrics, "weir_requests_by_class_total{class=\"%s\"} %" PRIu64 "\n",
                         weir_class_name((uint8_t) class), requests[class]);
    if (!info->behaviour)
        return;
    weir_metrics_number(metrics, "weir_score_clients_max", "gauge",
                        "Clients that the table of behaviour has room for.",
                        weir_behaviour_room(info->behaviour));
    weir_metrics_number(metrics, "weir_score_evicted_total", "counter",
                        "Clients whose behaviour was forgotten to make room for another's.",
                        weir_behaviour_evicted(info->behaviour));
}
