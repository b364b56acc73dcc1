/* SPDX-License-Identifier: Apache-2.0 */
/* see reserve.h */
#include "feature/reserve/server/reserve.h"

#include <stdio.h>

#include "core/text/siphash.h"
#include "engine/http/check_request.h"
#include "server/net/front.h"
#include "table/table.h"

/* Releases of one tick (250 ms) of one worker: 16,384 that end together take some seconds at most,
 * and no turn is long. */
#define RELEASES_PER_TICK 512

/* No place: nothing can be charged, or nothing was. */
#define NO_PLACE UINT32_MAX

/* The address that asks; an IPv6 one by its /64, as one host may have all of that. */
static uint64_t hash_peer(const struct weir_connection *connection)
{
    const struct weir_address *peer = &connection->peer;
    uint64_t hash[2];
    size_t size = peer->family == 4 ? 4 : peer->family == 6 ? 8 : 0;
    weir_siphash128(weir_table_secret(connection->worker->table), peer->bytes, size, hash);
    return hash[0];
}

/* Whose the place of a decision is; see reserve.h. `connection` NULL: it has gone; all whose limits
 * have no key are then one caller, until they are released. False: it can charge nothing. */
static bool caller_of(const struct weir_connection *connection,
                      const struct weir_decision *decision, uint64_t *caller)
{
    bool any = weir_engine_looks(decision);
    uint32_t fewest = UINT32_MAX;
    *caller = connection ? hash_peer(connection) : 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        if (!weir_reservation_covers(decision, i))
            continue;
        struct weir_rule_info info;
        weir_rules_info(weir_decision_rules(decision), check->rule, &info);
        any = true;
        if (info.key_count > 0 && info.key_count < fewest) {
            fewest = info.key_count;
            *caller = check->hash[0];
        }
    }
    return any;
}

/* Claims a place for it, where it needs one. Errors: WEIR_ERR_FULL. */
static int claim_place(const struct weir_connection *connection, struct weir_reserve *reserve,
                       struct weir_reason *reason)
{
    struct weir_reservations *list = connection->worker->reservations;
    uint64_t caller;
    reserve->place = NO_PLACE;
    if (weir_worker_settings(connection->worker)->sticky.by) {
        snprintf(reason->text, sizeof reason->text, "reservations do not work with `sticky`");
        return WEIR_ERR_FULL;
    }
    if (!caller_of(connection, reserve->decision, &caller))
        return 0;
    enum weir_reservations_claim claim =
        list ? weir_reservations_claim(list, caller, &reserve->place) : WEIR_RESERVATIONS_FULL;
    if (claim == WEIR_RESERVATIONS_CLAIMED)
        return 0;
    snprintf(reason->text, sizeof reason->text, "%s; nothing was charged",
             claim == WEIR_RESERVATIONS_FULL ? "too many reservations are open on this node"
                                             : "this caller has as many reservations open as there "
                                               "are places left on this node");
    return WEIR_ERR_FULL;
}

int weir_reserve_begin(struct weir_connection *connection, struct weir_reserve *reserve,
                       struct weir_reason *reason)
{
    int err = weir_engine_apply_reservation(connection->worker->engine, reserve->decision,
                                            reserve->estimate, reserve->life_ns, reason);
    return err < 0 ? err : claim_place(connection, reserve, reason);
}

static void give_place(const struct weir_worker *worker, uint32_t place)
{
    if (place != NO_PLACE)
        weir_reservations_unclaim(worker->reservations, place);
}

void weir_reserve_cancel(struct weir_worker *worker, const struct weir_reserve *reserve)
{
    give_place(worker, reserve->place);
    weir_worker_give(worker, reserve->decision);
}

struct kept {
    struct weir_worker *worker;
    const struct weir_connection *connection; /* NULL: it has gone */
    struct weir_decision *decision;
    uint32_t place;
};

/* Writes the token of one that was allowed, and has it released when its life ends, or `at_once`.
 * Returns its size. */
static size_t keep(const struct kept *kept, bool at_once, char token[WEIR_RESERVATION_TEXT_MAX],
                   uint64_t *life_ns)
{
    struct weir_worker *worker = kept->worker;
    uint64_t id, caller;
    size_t size = weir_engine_reservation(worker->engine, kept->decision, worker->now_ns, life_ns,
                                          &id, token);
    uint64_t ends_at_ns = worker->now_ns + (at_once ? 0 : *life_ns);
    if (weir_engine_reserved(kept->decision) &&
        caller_of(kept->connection, kept->decision, &caller))
        weir_reservations_add(worker->reservations, kept->place, caller, id, ends_at_ns,
                              (struct weir_bytes){token, size});
    else
        give_place(worker, kept->place);
    return size;
}

static struct kept kept_of(const struct weir_slot *slot)
{
    return (struct kept){slot->connection->worker, slot->connection, slot->decision, slot->place};
}

size_t weir_reserve_finish(const struct weir_slot *slot, char token[WEIR_RESERVATION_TEXT_MAX],
                           uint64_t *life_ns)
{
    const struct kept kept = kept_of(slot);
    if (slot->decision->verdict == WEIR_ALLOWED)
        return keep(&kept, false, token, life_ns);
    give_place(kept.worker, kept.place);
    *life_ns = 0;
    return 0;
}

/* Nobody has the token: what was charged is released at the next tick. */
static void release_unheard(const struct kept *kept)
{
    char token[WEIR_RESERVATION_TEXT_MAX];
    uint64_t life_ns;
    if (kept->decision->verdict == WEIR_DENIED)
        give_place(kept->worker, kept->place);
    else
        keep(kept, true, token, &life_ns);
}

/* Its connection has gone before the answer. */
static void reserve_drop(struct weir_slot *slot)
{
    const struct kept kept = kept_of(slot);
    if (!slot->waiting) {
        release_unheard(&kept);
    } else if (weir_engine_looks(slot->decision)) {
        give_place(kept.worker, kept.place); /* cancelled with its slot, before it is charged */
    } else {
        /* A store may have charged it, and only its answer says what there is to give back. */
        slot->decision->owner = weir_reserve_owner(slot->place);
        slot->decision = NULL;
    }
}

void weir_reserve_wait(struct weir_slot *slot, const struct weir_reserve *reserve)
{
    slot->decision = reserve->decision;
    slot->place = reserve->place;
    slot->drop = reserve_drop;
    weir_slot_wait(slot, reserve->decision);
}

bool weir_settle_add(const struct weir_worker *worker, struct weir_settle *settle,
                     struct weir_true_cost costs[WEIR_TRUE_COSTS_MAX], struct weir_bytes name,
                     uint64_t amount, struct weir_reason *reason)
{
    uint64_t seen[WEIR_ATTRIBUTE_WORDS] = {0};
    for (uint16_t i = 0; i < settle->true_count; i++)
        seen[costs[i].attribute / 64] |= UINT64_C(1) << costs[i].attribute % 64;
    int attribute = weir_cost_find(weir_engine_rules(worker->engine), name, seen, reason);
    settle->true_costs = costs;
    if (attribute >= 0)
        costs[settle->true_count++] = (struct weir_true_cost){(uint16_t)attribute, amount};
    return attribute >= 0;
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
    /* What was to be charged before a refund may have been dropped whole. */
    bool debited = settled->charged[tightest] > 0 || settled->dropped[tightest] > 0;
    limit->charged = decision->op != WEIR_OP_REFUND || debited;
    limit->amount = decision->op == WEIR_OP_REFUND && debited ? settled->charged[tightest]
                                                              : decision->checks[tightest].cost;
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

void weir_reserve_alone(struct weir_worker *worker, struct weir_decision *decision)
{
    struct weir_settled settled;
    if (decision->owner) {
        const struct kept kept = {worker, NULL, decision, weir_reserve_place(decision->owner)};
        release_unheard(&kept);
        weir_worker_cancel(worker, decision);
        weir_worker_run_engine(worker); /* leases may have to end */
        return;
    }
    weir_settle_finish(worker, decision, &settled); /* where the store failed it is tried again */
    weir_worker_give(worker, decision);
}

/* Queues a settlement that has no slot: weir_reserve_alone is called at its end. */
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
    weir_worker_queue(worker, decision);
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
