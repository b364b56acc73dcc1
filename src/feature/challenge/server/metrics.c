/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/challenge/server/metrics.h"

#include <inttypes.h>

#include "feature/challenge/server/front.h"
#include "server/daemon/addresses.h"
#include "server/http/front.h"
#include "server/http/http.h"

struct totals {
    uint64_t served, solved, refused[WEIR_CHALLENGE_REFUSALS];
};

static void add(struct totals *totals, const struct weir_challenge_work *work)
{
    totals->served += weir_counted(&work->served);
    totals->solved += weir_counted(&work->solved);
    for (unsigned i = 0; i < WEIR_CHALLENGE_REFUSALS; i++)
        totals->refused[i] += weir_counted(&work->refused[i]);
}

void weir_metrics_of_challenge(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    struct totals totals = {0};
    if (!weir_daemon_listens(daemon, &weir_challenge_front))
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++)
            if (listener->kind == WEIR_LISTENER_CHALLENGE)
                add(&totals, ((const struct weir_http *)listener->workspace)->challenge);
    }
    weir_metrics_number(metrics, "weir_challenges_served_total", "counter", "Puzzles handed out.",
                        totals.served);
    weir_metrics_number(metrics, "weir_challenges_solved_total", "counter",
                        "Solutions taken, each for a token.", totals.solved);
    weir_metrics_head(metrics, "weir_challenges_refused_total", "counter",
                      "Solutions refused, by reason.");
    for (unsigned i = WEIR_CHALLENGE_GOOD + 1; i < WEIR_CHALLENGE_REFUSALS; i++)
        weir_metrics_put(metrics, "weir_challenges_refused_total{reason=\"%s\"} %" PRIu64 "\n",
                         weir_challenge_refusal_name(i), totals.refused[i]);
}
