/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/challenge/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/challenge/server/front.h"
#include "server/daemon/addresses.h"
#include "server/http/front.h"
#include "server/http/http.h"

struct numbers {
    uint64_t served, solved, refused[WEIR_CHALLENGE_REFUSALS];
};
#define AT(member) .at = offsetof(struct numbers, member)

static void add(struct numbers *numbers, const struct weir_challenge_work *work)
{
    numbers->served += weir_counted(&work->served);
    numbers->solved += weir_counted(&work->solved);
    for (unsigned i = 0; i < WEIR_CHALLENGE_REFUSALS; i++)
        numbers->refused[i] += weir_counted(&work->refused[i]);
}

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    if (!weir_daemon_listens(daemon, &weir_challenge_front))
        return false;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++)
            if (listener->kind == WEIR_LISTENER_CHALLENGE)
                add(read, ((const struct weir_http *)listener->workspace)->challenge);
    }
    return true;
}

static void put_refused(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    for (unsigned i = WEIR_CHALLENGE_GOOD + 1; i < WEIR_CHALLENGE_REFUSALS; i++)
        weir_metrics_value(metrics, metric, ((const struct numbers *)numbers)->refused[i],
                           weir_challenge_refusal_name(i));
}

static const struct weir_metric rows[] = {
    {"weir_challenges_served_total", "counter", NULL, "Puzzles handed out.", AT(served)},
    {"weir_challenges_solved_total", "counter", NULL, "Solutions taken, each for a token.",
     AT(solved)},
    {"weir_challenges_refused_total", "counter", "reason", "Solutions refused, by reason.",
     .put = put_refused},
    {.name = NULL},
};
const struct weir_metric_table weir_challenge_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
