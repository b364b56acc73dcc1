/* SPDX-License-Identifier: Apache-2.0 */
/* see outcomes.h: a heap, the earliest first; of those due at one time the first that came
 */
#include "cli/replay/outcomes.h"

#include <stdlib.h>
#include <string.h>

struct outcome {
    uint64_t due_ns, number;
    uint32_t status, size;
    char *token;
};

struct replay_outcomes {
    struct weir_engine *engine;
    struct outcome *heap;
    size_t count, room;
    uint64_t number;
    bool expected; /* of the decision at hand */
};

struct replay_outcomes *replay_outcomes_open(struct weir_engine *engine)
{
    struct replay_outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (outcomes)
        outcomes->engine = engine;
    return outcomes;
}

void replay_outcomes_close(struct replay_outcomes *outcomes)
{
    if (!outcomes)
        return;
    for (size_t i = 0; i < outcomes->count; i++)
        free(outcomes->heap[i].token);
    free(outcomes->heap);
    free(outcomes);
}

void replay_outcomes_expect(struct replay_outcomes *outcomes, struct weir_decision *decision,
                            uint64_t cost, uint64_t status)
{
    const struct weir_rules *rules = weir_decision_rules(decision);
    outcomes->expected = false;
    for (uint16_t i = 0; i < decision->count && cost > 0 && decision->op == WEIR_OP_DECIDE; i++)
        if (decision->checks[i].rule < weir_rules_count(rules) &&
            weir_rules_gives_back(rules, decision->checks[i].rule, (uint32_t)status))
            outcomes->expected = true;
    /* What cannot be reserved, with 32 limits, stays charged: as on a server. */
    outcomes->expected = outcomes->expected &&
                         weir_engine_apply_reservation(outcomes->engine, decision, cost,
                                                       WEIR_RESERVATION_LIFE_MAX_NS, NULL) == 0;
}

static bool is_before(const struct outcome *a, const struct outcome *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static int push(struct replay_outcomes *outcomes, struct outcome outcome)
{
    if (outcomes->count == outcomes->room) {
        size_t room = outcomes->room != 0 ? outcomes->room * 2 : 64;
        struct outcome *heap = realloc(outcomes->heap, room * sizeof *heap);
        if (!heap)
            return WEIR_ERR_MEMORY;
        outcomes->heap = heap;
        outcomes->room = room;
    }
    size_t at = outcomes->count++;
    while (at > 0 && is_before(&outcome, &outcomes->heap[(at - 1) / 2])) {
        outcomes->heap[at] = outcomes->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    outcomes->heap[at] = outcome;
    return 0;
}

static struct outcome pop(struct replay_outcomes *outcomes)
{
    struct outcome *heap = outcomes->heap, first = heap[0];
    struct outcome last = heap[--outcomes->count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < outcomes->count) {
        if (child + 1 < outcomes->count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    heap[outcomes->count].token = NULL; /* it has moved, or is the caller's */
    return first;
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
    struct outcome outcome = {.due_ns = now_ns + wait_ns,
                              .number = outcomes->number++,
                              .status = (uint32_t)status,
                              .size = (uint32_t)size,
                              .token = malloc(size)};
    if (!outcome.token)
        return WEIR_ERR_MEMORY;
    memcpy(outcome.token, text, size);
    int error = push(outcomes, outcome);
    if (error < 0)
        free(outcome.token);
    return error;
}

struct weir_decision *replay_outcomes_due(struct replay_outcomes *outcomes, uint64_t now_ns,
                                          uint64_t *due_ns)
{
    if (outcomes->count == 0 ||
        (outcomes->heap[0].due_ns > now_ns && outcomes->count < REPLAY_OUTCOMES_MAX))
        return NULL;
    struct weir_decision *decision = weir_engine_take(outcomes->engine);
    if (!decision)
        return NULL; /* never: one decision at a time is in use */
    struct outcome outcome = pop(outcomes);
    const struct weir_settle settle = {.how = WEIR_SETTLE_STATUS, .status = outcome.status};
    *due_ns = outcome.due_ns < now_ns ? outcome.due_ns : now_ns;
    int error = weir_engine_apply_settle(outcomes->engine, decision,
                                         (struct weir_bytes){outcome.token, outcome.size}, &settle,
                                         *due_ns);
    free(outcome.token);
    if (error == 0)
        return decision;
    weir_engine_release(outcomes->engine, decision);
    return replay_outcomes_due(outcomes, now_ns, due_ns);
}
