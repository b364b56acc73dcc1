/* SPDX-License-Identifier: Apache-2.0 */
/* see turn.h */
#include "engine/turn.h"

#include <assert.h>

#include "engine/lease.h"
#include "engine/lookup.h"
#include "engine/state.h"

#define ROUNDS_MAX 16 /* of decisions queued by `done` in one run: then the loop gets its turn */

/* --- Finishing -------------------------------------------------------------------------------- */

void weir_turn_refuse(struct weir_engine *engine, struct weir_decision *decision, int error)
{
    for (uint16_t i = 0; i < decision->count; i++)
        decision->outcomes[i] =
            (struct weir_outcome){.report = {0, 0, 0, 0}, .verdict = WEIR_DENIED, .reported = true};
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_CLOSED;
    decision->now_ns = engine->now_ns;
    decision->error = (int8_t)error;
}

bool weir_unattended_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    (void)engine;
    (void)entry;
    return true;
}

bool weir_unattended_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    (void)engine;
    entry->decision.error = (int8_t)error;
    return true;
}

const struct weir_purpose weir_unattended_purpose = {
    .decided = weir_unattended_decided,
    .failed = weir_unattended_failed,
    .finish = weir_engine_give_back,
    .alone = true,
};

/* Takes in what the store has said of a decision: `error` 0 if it decided. Returns whether the
 * decision is to be finished. */
static bool settle(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    const struct weir_purpose *purpose = entry->purpose;
    return error == 0 ? purpose->decided(engine, entry) : purpose->failed(engine, entry, error);
}

static void settle_and_finish(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    if (settle(engine, entry, error))
        entry->purpose->finish(engine, entry);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static struct weir_store *store_of(const struct weir_engine *engine, const struct weir_entry *entry)
{
    return entry->far ? entry->far : entry->local ? engine->local : engine->store;
}

static struct weir_deadlines *deadlines_of(struct weir_engine *engine,
                                           const struct weir_entry *entry)
{
    return entry->far || entry->state == WEIR_ENTRY_ASKING ? &engine->far : &engine->near;
}

/* The list is in the order of deadlines; with one deadline for all, the new one is the last. */
static void link_waiting(struct weir_engine *engine, struct weir_entry *entry,
                         enum weir_entry_state state)
{
    entry->state = (uint8_t)state;
    struct weir_deadlines *list = deadlines_of(engine, entry);
    struct weir_entry *before = list->last;
    while (before && before->decision.deadline_ns > entry->decision.deadline_ns)
        before = before->previous;
    entry->previous = before;
    entry->next = before ? before->next : list->first;
    if (entry->next)
        entry->next->previous = entry;
    else
        list->last = entry;
    if (before)
        before->next = entry;
    else
        list->first = entry;
    engine->pending += !entry->far;
}

static void unlink_waiting(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_deadlines *list = deadlines_of(engine, entry);
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        list->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    else
        list->last = entry->previous;
    engine->pending -= !entry->far;
}

void weir_turn_wait(struct weir_engine *engine, struct weir_entry *entry)
{
    link_waiting(engine, entry, WEIR_ENTRY_ASKING);
}

void weir_turn_resume(struct weir_engine *engine, struct weir_entry *entry)
{
    assert(entry->state == WEIR_ENTRY_ASKING);
    unlink_waiting(engine, entry);
    entry->state = WEIR_ENTRY_TAKEN;
}

void weir_turn_settle(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    settle_and_finish(engine, entry, error);
}

static void cancel_all(struct weir_engine *engine, struct weir_deadlines *list)
{
    for (struct weir_entry *entry = list->first; entry; entry = entry->next)
        if (entry->state == WEIR_ENTRY_PENDING) {
            struct weir_store *store = store_of(engine, entry);
            store->ops->cancel(store, &entry->decision);
        }
    list->first = list->last = NULL;
}

void weir_turn_end(struct weir_engine *engine)
{
    cancel_all(engine, &engine->near);
    cancel_all(engine, &engine->far);
    engine->pending = 0;
}

void weir_turn_answered(void *context, struct weir_decision *decision, int error)
{
    struct weir_engine *engine = context;
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_PENDING);
    unlink_waiting(engine, entry);
    if (error == 0)
        decision->source = WEIR_SOURCE_STORE;
    settle_and_finish(engine, entry, error);
}

/* --- Running ---------------------------------------------------------------------------------- */

void weir_engine_queue(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN);
    if (__builtin_expect(weir_lookup_waits(entry), 0)) {
        entry->state = WEIR_ENTRY_LOOKING;
        return;
    }
    entry->state = entry->local || entry->purpose->alone ? WEIR_ENTRY_ALONE : WEIR_ENTRY_QUEUED;
    weir_lease_prepare(engine, entry);
    decision->verdict = WEIR_PENDING;
    decision->error = 0;
    decision->delay_ns = 0;
    if (!entry->generation) /* the rules have done it when they knew the keys */
        weir_engine_prefetch(engine, decision);
    engine->queue[engine->queued++] = decision; /* has room: the pool is no larger */
}

/* Puts a decision on the list of those that go alone. */
static void set_aside(struct weir_engine *engine, struct weir_entry *entry)
{
    entry->state = WEIR_ENTRY_ALONE;
    entry->next = engine->alone;
    engine->alone = entry;
}

/* Gives back a decision whose answer no client will get. Its leases end first: else they would keep
 * others out for their whole life. */
static void drop(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!weir_lease_abandon(engine, &entry->decision)) {
        weir_engine_give_back(engine, entry);
        return;
    }
    entry->purpose = &weir_unattended_purpose;
    set_aside(engine, entry);
}

static void expire(struct weir_engine *engine, struct weir_deadlines *list)
{
    while (list->first && list->first->decision.deadline_ns <= engine->now_ns) {
        struct weir_entry *entry = list->first;
        struct weir_store *store = store_of(engine, entry);
        if (entry->state == WEIR_ENTRY_PENDING)
            store->ops->cancel(store, &entry->decision);
        unlink_waiting(engine, entry);
        settle_and_finish(engine, entry, WEIR_ERR_DEADLINE);
    }
}

/* Takes the queue as this round's batch, without what was cancelled. Returns its size. */
static uint32_t take_batch(struct weir_engine *engine, uint64_t deadline_ns)
{
    struct weir_decision **batch = engine->queue;
    uint32_t queued = engine->queued, size = 0;
    engine->queue = engine->batch;
    engine->batch = batch;
    engine->queued = 0;
    for (uint32_t i = 0; i < queued; i++) {
        struct weir_entry *entry = weir_entry_of(batch[i]);
        if (entry->state != WEIR_ENTRY_QUEUED) {
            if (entry->state == WEIR_ENTRY_ALONE)
                set_aside(engine, entry);
            else
                weir_engine_give_back(engine, entry);
            continue;
        }
        if (batch[i]->deadline_ns == 0)
            batch[i]->deadline_ns = deadline_ns;
        else
            entry->hurries = true;
        batch[size++] = batch[i];
    }
    return size;
}

/* Keeps in the batch what the store decided, or failed to decide, at once; the rest is pending.
 * `finish` is called only after this, when every decision of the batch is in its place and may be
 * cancelled. */
static uint32_t sort_batch(struct weir_engine *engine, uint32_t size)
{
    uint32_t decided = 0;
    for (uint32_t i = 0; i < size; i++) {
        struct weir_entry *entry = weir_entry_of(engine->batch[i]);
        bool undecided = entry->decision.verdict == WEIR_PENDING;
        if (undecided && entry->decision.error == 0) {
            link_waiting(engine, entry, WEIR_ENTRY_PENDING);
        } else if (settle(engine, entry, undecided ? entry->decision.error : 0)) {
            entry->state = WEIR_ENTRY_DECIDED;
            engine->batch[decided++] = &entry->decision;
        }
    }
    return decided;
}

/* Decides one decision without a batch. */
static void run_alone(struct weir_engine *engine, struct weir_entry *entry, uint64_t deadline_ns)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_store *store = store_of(engine, entry);
    decision->verdict = WEIR_PENDING;
    decision->error = 0;
    engine->flushes_far |= entry->far != NULL;
    if (!store)
        weir_turn_refuse(engine, decision, 0); /* no such store here: no such lease */
    else
        store->ops->submit(store, engine->now_ns, &decision, 1);
    bool undecided = decision->verdict == WEIR_PENDING;
    if (undecided && decision->error == 0) { /* a local store answers at once */
        if (!entry->far)
            decision->deadline_ns = deadline_ns;
        link_waiting(engine, entry, WEIR_ENTRY_PENDING);
    } else {
        settle_and_finish(engine, entry, undecided ? decision->error : 0);
    }
}

static void run_all_alone(struct weir_engine *engine, uint64_t deadline_ns)
{
    while (engine->alone) {
        struct weir_entry *entry = engine->alone;
        engine->alone = entry->next;
        if (entry->state == WEIR_ENTRY_CANCELLED)
            weir_engine_give_back(engine, entry);
        else
            run_alone(engine, entry, deadline_ns);
    }
}

static void run_batch(struct weir_engine *engine, uint32_t size)
{
    engine->store->ops->submit(engine->store, engine->now_ns, engine->batch, size);
    uint32_t decided = sort_batch(engine, size);
    for (uint32_t i = 0; i < decided; i++) {
        struct weir_entry *entry = weir_entry_of(engine->batch[i]);
        if (entry->state == WEIR_ENTRY_CANCELLED)
            drop(engine, entry);
        else
            entry->purpose->finish(engine, entry);
    }
}

/* Of what goes to the store now. */
static uint64_t deadline_of(const struct weir_engine *engine)
{
    uint64_t deadline_ns;
    if (__builtin_add_overflow(engine->now_ns, engine->deadline_ns, &deadline_ns))
        deadline_ns = WEIR_NEVER;
    return deadline_ns;
}

void weir_turn_decide_now(struct weir_engine *engine, struct weir_entry *entry)
{
    run_alone(engine, entry, deadline_of(engine));
}

static void run_round(struct weir_engine *engine)
{
    uint64_t deadline_ns = deadline_of(engine);
    uint32_t size = take_batch(engine, deadline_ns);
    if (size > 0)
        run_batch(engine, size);
    if (engine->alone)
        run_all_alone(engine, deadline_ns);
}

static void flush(struct weir_store *store)
{
    if (store && store->ops->flush)
        store->ops->flush(store);
}

static void flush_far(struct weir_engine *engine)
{
    engine->flushes_far = false;
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++)
        flush(engine->regions[i]);
}

static uint64_t due_of(const struct weir_deadlines *list)
{
    return list->first ? list->first->decision.deadline_ns : WEIR_NEVER;
}

uint64_t weir_engine_run(struct weir_engine *engine, uint64_t now_ns)
{
    engine->now_ns = now_ns;
    expire(engine, &engine->near);
    expire(engine, &engine->far);
    for (int round = 0; round < ROUNDS_MAX && (engine->queued > 0 || engine->alone); round++)
        run_round(engine);
    flush(engine->store);
    if (__builtin_expect(engine->flushes_far, 0))
        flush_far(engine);
    if (engine->queued > 0)
        return now_ns;
    uint64_t near_ns = due_of(&engine->near), far_ns = due_of(&engine->far);
    return near_ns < far_ns ? near_ns : far_ns;
}

void weir_engine_decide(struct weir_engine *engine, struct weir_decision *decision, uint64_t now_ns)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN);
    if (__builtin_expect(weir_lookup_waits(entry), 0)) {
        entry->state = WEIR_ENTRY_LOOKING;
        weir_engine_run(engine, now_ns);
        return;
    }
    engine->now_ns = now_ns;
    weir_lease_prepare(engine, entry);
    decision->delay_ns = 0;
    run_alone(engine, entry, deadline_of(engine));
    while (__builtin_expect(engine->queued > 0 || engine->alone != NULL, 0))
        weir_engine_run(engine, now_ns);
}

/* What becomes of a decision whose asker has gone. NULL: it is cancelled. */
static const struct weir_purpose *unattended(const struct weir_entry *entry)
{
    if (entry->purpose->unattended)
        return entry->purpose->unattended;
    if (entry->decision.op == WEIR_OP_EDIT) /* its edit is the asker's */
        return NULL;
    return weir_turn_is_operation(&entry->decision) ? &weir_unattended_purpose : NULL;
}

void weir_engine_cancel(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_purpose *purpose = unattended(entry);
    switch (entry->state) {
    case WEIR_ENTRY_LOOKING:
        if (purpose && !entry->lookup->held)
            entry->purpose = purpose;
        else
            weir_engine_give_back(engine, entry);
        break;
    case WEIR_ENTRY_QUEUED:
    case WEIR_ENTRY_ALONE: /* a list still points here: the run gives it back */
        entry->state = purpose ? WEIR_ENTRY_ALONE : WEIR_ENTRY_CANCELLED;
        if (purpose)
            entry->purpose = purpose;
        break;
    case WEIR_ENTRY_DECIDED:
        entry->state = WEIR_ENTRY_CANCELLED; /* likewise */
        break;
    case WEIR_ENTRY_PENDING:
        if (purpose) {
            entry->purpose = purpose;
            break;
        }
        engine->store->ops->cancel(engine->store, decision);
        unlink_waiting(engine, entry);
        weir_engine_give_back(engine, entry);
        break;
    case WEIR_ENTRY_ASKING:
        unlink_waiting(engine, entry);
        weir_engine_give_back(engine, entry);
        break;
    case WEIR_ENTRY_FINISHED:
        drop(engine, entry);
        break;
    default:
        weir_engine_release(engine, decision);
        break;
    }
}
