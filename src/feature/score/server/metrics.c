/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/score/server/metrics.h"

#include "engine/counters.h"

#include <inttypes.h>
#include <stddef.h>

void weir_score_requests(const struct weir_daemon *daemon, uint64_t requests[WEIR_CLASSES])
{
    for (unsigned class = 0; class < WEIR_CLASSES; class ++) {
        requests[class] = 0;
        for (unsigned i = 0; i < daemon->worker_count; i++)
            requests[class] +=
                weir_counted(&weir_engine_scores(daemon->workers[i]->engine)->requests[class]);
    }
}

struct numbers {
    uint64_t requests[WEIR_CLASSES], clients_max, evicted;
    bool behaviour;
};
#define AT(member) .at = offsetof(struct numbers, member)

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    const struct weir_score_info *info = weir_rules_score(daemon->rules);
    struct numbers *numbers = read;
    if (!info)
        return false;
    weir_score_requests(daemon, numbers->requests);
    numbers->behaviour = info->behaviour;
    if (info->behaviour) {
        numbers->clients_max = weir_behaviour_room(info->behaviour);
        numbers->evicted = weir_behaviour_evicted(info->behaviour);
    }
    return true;
}

static void put_classes(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    for (unsigned class = 0; class < WEIR_CLASSES; class ++)
        weir_metrics_value(metrics, metric, ((const struct numbers *)numbers)->requests[class],
                           weir_class_name((uint8_t) class));
}

static bool has_behaviour(const struct weir_metric *metric, const void *numbers)
{
    return ((const struct numbers *)numbers)->behaviour;
}

static const struct weir_metric rows[] = {
    {"weir_requests_by_class_total", "counter", "class",
     "Requests by the class of their client's score; those whose standing denies have none.",
     .put = put_classes},
    {"weir_score_clients_max", "gauge", NULL, "Clients that the table of behaviour has room for.",
     AT(clients_max), .there = has_behaviour},
    {"weir_score_evicted_total", "counter", NULL,
     "Clients whose behaviour was forgotten to make room for another's.", AT(evicted),
     .there = has_behaviour},
    {.name = NULL},
};
const struct weir_metric_table weir_score_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
