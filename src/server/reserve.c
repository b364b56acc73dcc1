/* see reserve.h */
#include "server/reserve.h"

#include <stdio.h>

#include "server/front.h"

/* Releases of one tick (250 ms) of one worker: 16,384 that end together take some seconds at most,
 * and no turn is long. */
#define RELEASES_PER_TICK 512

int weir_reserve_begin(struct weir_worker *worker, struct weir_decision *decision,
                       uint64_t estimate, uint64_t life_ns, struct weir_reason *reason)
{
    int err = weir_engine_apply_reservation(worker->engine, decision, estimate, life_ns, reason);
    if (err < 0)
        return err;
    if (worker->reservations && weir_reservations_claim(worker->reservations))
        return 0;
    snprintf(reason->text, sizeof reason->text,
             "too many reservations are open on this node; nothing was charged");
    return WEIR_ERR_FULL;
}

size_t weir_reserve_finish(struct weir_worker *worker, const struct weir_decision *decision,
                           char token[WEIR_RESERVATION_TEXT_MAX], uint64_t *life_ns)
{
    uint64_t id, ends_at_ns;
    if (decision->verdict == WEIR_DENIED) {
        *life_ns = 0;
        weir_reservations_unclaim(worker->reservations);
        return 0;
    }
    size_t size =
        weir_engine_reservation(worker->engine, decision, worker->now_ns, life_ns, &id, token);
    ends_at_ns = worker->now_ns + *life_ns;
    weir_reservations_add(worker->reservations, id, ends_at_ns, (struct weir_bytes){token, size});
    return size;
}

void weir_reserve_drop(struct weir_slot *slot)
{
    struct weir_worker *worker = slot->connection->worker;
    char token[WEIR_RESERVATION_TEXT_MAX];
    uint64_t life_ns, id;
    /* One that is still at the store is forgotten there; what it may charge stays charged. */
    if (slot->waiting || slot->decision->verdict == WEIR_DENIED) {
        weir_reservations_unclaim(worker->reservations);
        return;
    }
    size_t size = weir_engine_reservation(worker->engine, slot->decision, worker->now_ns, &life_ns,
                                          &id, token);
    weir_reservations_add(worker->reservations, id, worker->now_ns,
                          (struct weir_bytes){token, size});
}

int weir_settle_begin(struct weir_worker *worker, struct weir_decision *decision,
                      struct weir_bytes token, const struct weir_settle *settle)
{
    return weir_engine_apply_settle(worker->engine, decision, token, settle,
                                    weir_worker_time(worker));
}

void weir_settle_finish(struct weir_worker *worker, const struct weir_decision *decision,
                        struct weir_settled *settled)
{
    weir_engine_settled(decision, settled);
    if (!settled->failed && worker->reservations)
        weir_reservations_remove(worker->reservations, settled->id);
}

uint16_t weir_settled_limit(const struct weir_decision *decision,
                            const struct weir_settled *settled, uint16_t i,
                            struct weir_settled_limit *limit)
{
    uint16_t end = weir_decision_limit_end(decision, i);
    uint16_t tightest = weir_decision_tightest(decision, i, end, &limit->report);
    struct weir_rule_info info;
    weir_rules_info(weir_decision_rules(decision), decision->checks[i].rule, &info);
    limit->name = info.name;
    limit->amount = decision->checks[tightest].cost;
    limit->dropped = settled->dropped[tightest];
    return end;
}

uint16_t weir_settled_count(const struct weir_decision *decision,
                            const struct weir_settled *settled)
{
    uint16_t count = 0;
    for (uint16_t i = 0; i < settled->count; i = weir_decision_limit_end(decision, i))
        count++;
    return count;
}

void weir_reserve_released(struct weir_worker *worker, struct weir_decision *decision)
{
    struct weir_settled settled;
    weir_settle_finish(worker, decision, &settled); /* where the store failed it is tried again */
    weir_worker_give(worker, decision);
}

/* Queues a settlement that has no slot: weir_reserve_released is told of its end. */
static void release(struct weir_worker *worker, uint64_t id, struct weir_bytes token)
{
    static const struct weir_settle settle = {.how = WEIR_SETTLE_RELEASE};
    struct weir_decision *decision = weir_worker_take(worker);
    if (!decision)
        return; /* not after weir_worker_has_room */
    if (weir_engine_apply_settle(worker->engine, decision, token, &settle, worker->now_ns) < 0) {
        weir_reservations_remove(worker->reservations, id);
        weir_worker_give(worker, decision);
        return;
    }
    worker->queued++;
    weir_engine_queue(worker->engine, decision);
}

void weir_reserve_tick(struct weir_worker *worker)
{
    char token[WEIR_RESERVATION_TEXT_MAX];
    uint64_t now_ns = weir_worker_time(worker), id;
    for (int i = 0; i < RELEASES_PER_TICK && weir_worker_has_room(worker); i++) {
        size_t size = weir_reservations_due(worker->reservations, now_ns, &id, token);
        if (size == 0)
            return;
        release(worker, id, (struct weir_bytes){token, size});
    }
}
