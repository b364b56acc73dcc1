/* SPDX-License-Identifier: Apache-2.0 */
/* see outcomes.h */
#include "cli/replay/outcomes.h"

#include <stdlib.h>
#include <string.h>

#include "cli/replay/due_queue.h"

struct outcome {
    struct due_time time;
    uint32_t status, size;
    char *token;
};

struct replay_outcomes {
    struct weir_engine *engine;
    struct due_queue queue;
    bool expected; /* of the decision at hand */
};

struct replay_outcomes *replay_outcomes_open(struct weir_engine *engine)
{
    struct replay_outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (outcomes) {
        outcomes->engine = engine;
        outcomes->queue.item_size = sizeof(struct outcome);
    }
    return outcomes;
}

void replay_outcomes_close(struct replay_outcomes *outcomes)
{
    if (!outcomes)
        return;
    while (outcomes->queue.count > 0) {
        struct outcome outcome;
        due_queue_pop(&outcomes->queue, &outcome);
        free(outcome.token);
    }
    due_queue_free(&outcomes->queue);
    free(outcomes);
}

void replay_outcomes_expect(struct replay_outcomes *outcomes, struct weir_decision *decision,
                            uint64_t cost, uint64_t status)
{
    const struct weir_rules *rules = weir_decision_rules(decision);
    outcomes->expected = false;
    uint16_t limits =
        cost > 0 && decision->op == WEIR_OP_DECIDE ? weir_decision_limits(decision) : 0;
    for (uint16_t i = 0; i < limits; i++)
        if (weir_rules_gives_back(rules, decision->checks[i].rule, (uint32_t)status))
            outcomes->expected = true;
    /* What cannot be reserved, with 32 limits, stays charged: as on a server. */
    outcomes->expected = outcomes->expected &&
                         weir_engine_apply_reservation(outcomes->engine, decision, cost,
                                                       WEIR_RESERVATION_LIFE_MAX_NS, NULL) == 0;
}

int replay_outcomes_add(struct replay_outcomes *outcomes, const struct weir_decision *decision,
                        uint64_t now_ns, uint64_t latency_ns, uint64_t status)
{
    char text[WEIR_RESERVATION_TEXT_MAX];
    uint64_t life_ns, id;
    if (!outcomes->expected || decision->verdict != WEIR_ALLOWED)
        return 0;
    outcomes->expected = false;
    size_t size = weir_engine_reservation(outcomes->engine, decision, now_ns, &life_ns, &id, text);
    uint64_t wait_ns = latency_ns < REPLAY_LATENCY_MAX_NS ? latency_ns : REPLAY_LATENCY_MAX_NS;
    struct outcome outcome = {.time.due_ns = now_ns + wait_ns,
                              .status = (uint32_t)status,
                              .size = (uint32_t)size,
                              .token = malloc(size)};
    if (!outcome.token)
        return WEIR_ERR_MEMORY;
    memcpy(outcome.token, text, size);
    int error = due_queue_push(&outcomes->queue, &outcome);
    if (error < 0)
        free(outcome.token);
    return error;
}

bool replay_outcomes_wait(const struct replay_outcomes *outcomes)
{
    return outcomes->queue.count > 0;
}

struct weir_decision *replay_outcomes_due(struct replay_outcomes *outcomes, uint64_t now_ns,
                                          uint64_t *due_ns)
{
    struct due_queue *queue = &outcomes->queue;
    if (queue->count == 0 ||
        (due_queue_first_ns(queue) > now_ns && queue->count < REPLAY_OUTCOMES_MAX))
        return NULL;
    struct weir_decision *decision = weir_engine_take(outcomes->engine);
    if (!decision)
        return NULL; /* never: one decision at a time is in use */
    struct outcome outcome;
    due_queue_pop(queue, &outcome);
    const struct weir_settle settle = {
        .how = WEIR_SETTLE_STATUS, .status = outcome.status, .no_strikes = true};
    *due_ns = outcome.time.due_ns < now_ns ? outcome.time.due_ns : now_ns;
    int error = weir_engine_apply_settle(outcomes->engine, decision,
                                         (struct weir_bytes){outcome.token, outcome.size}, &settle,
                                         *due_ns);
    free(outcome.token);
    if (error == 0)
        return decision;
    weir_engine_release(outcomes->engine, decision);
    return replay_outcomes_due(outcomes, now_ns, due_ns);
}
