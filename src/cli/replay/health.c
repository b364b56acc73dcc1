/* SPDX-License-Identifier: Apache-2.0 */
/* see health.h */
#include "cli/replay/health.h"

#include <stdlib.h>

#include "cli/replay/due_queue.h"
#include "cli/replay/report.h"
#include "cli/times.h"
#include "feature/adaptive/server/controllers.h"
#include "server/text/durations.h"

#define S UINT64_C(1000000000)
/* After so many seconds without a result nothing changes but by hysteresis. */
#define QUIET_SECONDS 20
#define QUIET_STEPS 4 /* ticks in what follows: the scale rises at most twice */

struct ending {
    struct due_time time;
    uint64_t latency_ns;
    uint32_t status, count;
    uint32_t rules[WEIR_CHECKS_MAX];
    uint64_t callers[WEIR_CHECKS_MAX];
};

/* What the report says of one limit. */
struct lowest {
    char name[72];
    uint8_t percent; /* 0: not looked at yet */
    uint64_t at_ns, below_ns;
};

struct replay_health {
    struct weir_rules *rules;
    struct weir_controllers *controllers;
    struct due_queue endings; /* requests that have not ended */
    uint64_t ticked_ns;       /* 0: not begun */
    struct lowest *lowest;
    uint32_t limit_count, visited;
    uint64_t step_ns; /* of the tick at hand */
};

int replay_health_open(struct replay_health **health, struct weir_rules *rules)
{
    uint32_t count;

    static const uint64_t secret[2] = {0, 0}; /* a trace has the same result each time */

    *health = NULL;
    weir_rules_adaptive_limits(rules, &count);
    if (count == 0)
        return 0;

    struct replay_health *new = calloc(1, sizeof *new);

    if (!new)
        return WEIR_ERR_MEMORY;
    new->rules = rules;
    new->endings.item_size = sizeof(struct ending);
    new->limit_count = count;
    new->lowest = calloc(count, sizeof *new->lowest);

    int error =
        new->lowest ? weir_controllers_open(&new->controllers, NULL, secret) : WEIR_ERR_MEMORY;

    if (error == 0)
        error = weir_controllers_set_rules(new->controllers, rules, 0);
    if (error < 0)
        replay_health_close(new);
    else
        *health = new;
    return error;
}

void replay_health_close(struct replay_health *health)
{
    if (!health)
        return;
    weir_controllers_close(health->controllers);
    free(health->lowest);
    due_queue_free(&health->endings);
    free(health);
}

/* --- Requests that have not ended ------------------------------------------------------------- */

int replay_health_add(struct replay_health *health, const struct weir_decision *decision,
                      uint64_t now_ns, uint64_t latency_ns, uint64_t status)
{
    struct ending ending = {.latency_ns = latency_ns, .status = (uint32_t)status};
    uint64_t caller = weir_decision_caller(decision);

    if (decision->verdict != WEIR_ALLOWED || (status == 0 && latency_ns == 0))
        return 0;
    for (uint16_t i = 0; i < weir_decision_limits(decision);
         i = weir_decision_limit_end(decision, i))
        if (weir_rules_scale_of(health->rules, decision->checks[i].rule) >= 0) {
            ending.callers[ending.count] = caller != 0 ? caller : decision->checks[i].hash[0];
            ending.rules[ending.count++] = decision->checks[i].rule;
        }
    if (ending.count == 0)
        return 0;
    if (__builtin_add_overflow(now_ns, latency_ns, &ending.time.due_ns))
        ending.time.due_ns = UINT64_MAX;
    return due_queue_push(&health->endings, &ending);
}

/* --- Virtual time ----------------------------------------------------------------------------- */

static void note_scale(void *context, const struct weir_follower_view *view)
{
    struct replay_health *health = context;
    struct lowest *lowest = &health->lowest[health->visited++];

    if (lowest->percent == 0) {
        snprintf(lowest->name, sizeof lowest->name, "%s", view->limit);
        lowest->percent = 100;
    }
    if (view->percent < lowest->percent) {
        lowest->percent = view->percent;
        lowest->at_ns = health->ticked_ns;
    }
    if (view->percent < 100)
        lowest->below_ns += health->step_ns;
}

static void tick(struct replay_health *health, uint64_t now_ns)
{
    const struct weir_controllers_visitor visitor = {NULL, note_scale, health};

    health->step_ns = health->ticked_ns != 0 ? now_ns - health->ticked_ns : 0;
    health->ticked_ns = now_ns;
    weir_controllers_tick(health->controllers, now_ns);
    health->visited = 0;
    weir_controllers_visit(health->controllers, &visitor);
}

/* The ticks up to `now_ns`; of a long pause only some. */
static void tick_until(struct replay_health *health, uint64_t now_ns)
{
    if (health->ticked_ns == 0)
        tick(health, now_ns);
    for (int i = 0; i < QUIET_SECONDS && now_ns - health->ticked_ns >= S; i++)
        tick(health, health->ticked_ns + S);

    uint64_t step_ns = (now_ns - health->ticked_ns) / QUIET_STEPS;

    for (int i = 0; i < QUIET_STEPS && step_ns >= S; i++)
        tick(health, health->ticked_ns + step_ns);
}

void replay_health_move(struct replay_health *health, uint64_t now_ns)
{
    struct ending ending;

    if (health->ticked_ns == 0)
        tick(health, now_ns);
    while (health->endings.count > 0 && (due_queue_first_ns(&health->endings) <= now_ns ||
                                         health->endings.count >= REPLAY_ENDINGS_MAX)) {
        due_queue_pop(&health->endings, &ending);

        uint64_t due_ns = ending.time.due_ns;

        if (due_ns > health->ticked_ns && due_ns <= now_ns)
            tick_until(health, due_ns);

        struct weir_ended ended = {
            .now_ns = due_ns,
            .latency_ns = ending.latency_ns,
            .has_latency = ending.latency_ns != 0,
            .status = ending.status,
            .in_flight = WEIR_IN_FLIGHT_UNKNOWN,
        };

        for (uint32_t i = 0; i < ending.count; i++) {
            ended.caller = ending.callers[i];
            weir_controllers_ended(health->controllers, health->rules, ending.rules[i], &ended);
        }
    }
    if (now_ns > health->ticked_ns)
        tick_until(health, now_ns);
}

void replay_health_print(struct replay_health *health, FILE *out)
{
    fprintf(out, "\n%-*s %10s %25s %14s\n", REPLAY_NAME_WIDTH, "LIMITS BY HEALTH", "LOWEST",
            "FIRST", "BELOW 100 %");
    for (uint32_t i = 0; i < health->limit_count; i++) {
        const struct lowest *lowest = &health->lowest[i];
        char time[WEIR_MOMENT_MAX], below[WEIR_DURATION_MAX];

        if (lowest->percent == 0)
            continue;
        fprintf(out, "%-*s %8u %% %25s %14s\n", REPLAY_NAME_WIDTH, lowest->name, lowest->percent,
                lowest->percent < 100 ? cli_time_text(time, lowest->at_ns) : "-",
                weir_duration_ns(below, lowest->below_ns));
    }
}
