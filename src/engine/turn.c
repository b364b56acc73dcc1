/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's turns: what is queued becomes a batch, what a store leaves pending gets a deadline;
 * see engine.h.
 *
 * Some go alone, after the batch: ends of leases of the local store, and what nobody waits for any
 * more but is to be done all the same (`dropped`): ends of leases whose holder is gone, and
 * operations whose asker is. */
#include <assert.h>

#include "engine/lease_token.h"
#include "engine/state.h"

#define ROUNDS_MAX 16 /* of decisions queued by `done` in one run: then the loop gets its turn */

/* --- Finishing -------------------------------------------------------------------------------- */

/* Whether a denied decision goes through the store again, on what its limits may borrow. */
static bool goes_again(struct weir_engine *engine, struct weir_entry *entry)
{
    return __builtin_expect(entry->borrow != NULL, 0) && weir_borrow_again(engine, entry);
}

static void account_borrowed(const struct weir_entry *entry)
{
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    uint16_t count = weir_engine_borrowed(&entry->decision, borrowed);
    for (uint16_t i = 0; i < count; i++)
        weir_count(&entry->generation->views[borrowed[i].check->rule].tally->counters.borrowed, 1);
}

/* The books of each limit, whose checks stand together (weir_decision_limit_end): its counters, and
 * who was denied most. A limit of a command has no name to ask for, and a flood of its denials must
 * not push the keys of named limits out of the sketch. */
static void account(struct weir_engine *engine, const struct weir_entry *entry)
{
    const struct weir_generation *generation = entry->generation;
    uint16_t count = generation != NULL ? entry->decision.count : 0;
    for (uint16_t i = 0, end; i < count; i = end) {
        const struct weir_check *check = &entry->checks[i];
        bool denied = entry->outcomes[i].verdict == WEIR_DENIED;
        end = i + 1;
        if (check->rule >= generation->count)
            continue;
        for (; end < count && entry->checks[end].rule == check->rule; end++)
            denied |= entry->outcomes[end].verdict == WEIR_DENIED;
        const struct weir_rule_view *view = &generation->views[check->rule];
        struct weir_engine_counters *c = &view->tally->counters;
        bool shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
        weir_count(!denied ? &c->allowed : shadow ? &c->shadow_denied : &c->denied, 1);
        if (denied)
            weir_top_denied_record(engine->offenders, check->hash, view->name, check->key);
    }
    if (__builtin_expect(entry->borrow != NULL, 0))
        account_borrowed(entry);
}

/* What the store leaves to the engine: whom to blame, and the books. */
static void conclude(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *d = &entry->decision;
    d->denied_by = UINT16_MAX;
    if (__builtin_expect(entry->borrow != NULL, 0))
        weir_borrow_decided(entry);
    if (d->op == WEIR_OP_DECIDE)
        account(engine, entry);
    if (entry->generation != NULL && __builtin_expect(entry->generation->tries, 0))
        weir_candidates_follow(engine, entry);
    if (__builtin_expect(entry->borrow != NULL, 0))
        weir_borrow_choose(entry);
    if (d->verdict == WEIR_DENIED) {
        uint64_t retry_after_ns;
        d->denied_by = weir_decision_blame(d, &retry_after_ns);
    }
    if (entry->generation != NULL && __builtin_expect(entry->generation->warns, 0))
        weir_warnings_look(engine, entry);
}

static bool is_operation(const struct weir_decision *decision)
{
    return decision->op >= WEIR_OP_RELEASE;
}

/* An operation on states that no store has done. */
static void refuse_operation(struct weir_engine *engine, struct weir_decision *decision, int error)
{
    for (uint16_t i = 0; i < decision->count; i++)
        decision->outcomes[i] =
            (struct weir_outcome){.report = {0, 0, 0, 0}, .verdict = WEIR_DENIED, .reported = true};
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_CLOSED;
    decision->now_ns = engine->now_ns;
    decision->error = (int8_t)error;
}

static void settle_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    struct weir_engine_failures *f = &engine->failures;
    struct weir_decision *d = &entry->decision;
    if (is_operation(d)) {
        weir_count(error == WEIR_ERR_DEADLINE ? &f->late : &f->failed, 1);
        refuse_operation(engine, d, error);
        return;
    }
    weir_count(error == WEIR_ERR_DEADLINE ? &f->late : &f->failed, 1);
    if (weir_borrow_failed(entry)) {
        conclude(engine, entry);
        return;
    }
    weir_failure_settle(&engine->failure, engine->local, engine->now_ns, d, error);
    weir_count(d->source == WEIR_SOURCE_CLOSED  ? &f->closed
               : d->source == WEIR_SOURCE_LOCAL ? &f->local
                                                : &f->open,
               1);
    conclude(engine, entry);
}

static void report(struct weir_engine *engine, struct weir_entry *entry)
{
    if (__builtin_expect(entry->settles, 0) && weir_settle_goes_on(engine, entry))
        return;
    if (__builtin_expect(entry->warns, 0)) {
        weir_warnings_answered(engine, entry);
        return;
    }
    entry->state = WEIR_ENTRY_FINISHED;
    engine->done(engine->done_context, &entry->decision);
}

/* Nobody waits for this one, but a settlement has its steps. */
static void give_back_dropped(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!entry->settles || !weir_settle_goes_on(engine, entry))
        weir_engine_give_back(engine, entry);
}

static void unlink_pending(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->previous != NULL)
        entry->previous->next = entry->next;
    else
        engine->first_pending = entry->next;
    if (entry->next != NULL)
        entry->next->previous = entry->previous;
    else
        engine->last_pending = entry->previous;
    engine->pending--;
}

void weir_engine_store_answered(void *context, struct weir_decision *decision, int error)
{
    struct weir_engine *engine = context;
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_PENDING);
    unlink_pending(engine, entry);
    if (entry->dropped) {
        decision->error = (int8_t)error;
        give_back_dropped(engine, entry);
        return;
    }
    if (__builtin_expect(entry->trial != WEIR_TRIAL_NONE, 0)) {
        weir_candidate_decided(engine, entry, error);
        return;
    }
    if (error != 0) {
        settle_failed(engine, entry, error);
    } else {
        decision->source = WEIR_SOURCE_STORE;
        if (goes_again(engine, entry))
            return;
        conclude(engine, entry);
    }
    report(engine, entry);
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
    entry->state = entry->local ? WEIR_ENTRY_ALONE : WEIR_ENTRY_QUEUED;
    if (decision->lease.id != 0 || weir_lease_wanted(decision)) {
        if (decision->lease.id == 0)
            decision->lease.id = weir_lease_draw(engine->secret, &engine->lease_state);
        entry->lender = engine->store;
    }
    decision->verdict = WEIR_PENDING;
    decision->error = 0;
    decision->delay_ns = 0;
    engine->queue[engine->queued++] = decision; /* has room: the pool is no larger */
}

/* The list is in the order of deadlines; with one deadline for all, the new one is the last. */
static void link_pending(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_entry *before = engine->last_pending;
    while (before != NULL && before->decision.deadline_ns > entry->decision.deadline_ns)
        before = before->previous;
    entry->previous = before;
    entry->next = before != NULL ? before->next : engine->first_pending;
    if (entry->next != NULL)
        entry->next->previous = entry;
    else
        engine->last_pending = entry;
    if (before != NULL)
        before->next = entry;
    else
        engine->first_pending = entry;
    engine->pending++;
    entry->state = WEIR_ENTRY_PENDING;
}

/* Puts a decision on the list of those that go alone. */
static void set_aside(struct weir_engine *engine, struct weir_entry *entry)
{
    entry->state = WEIR_ENTRY_ALONE;
    entry->next = engine->alone;
    engine->alone = entry;
}

/* Nobody will see this decision. Its leases end, else they would keep others out for their whole
 * life. */
static void drop(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!weir_lease_abandon(engine, &entry->decision)) {
        weir_engine_give_back(engine, entry);
        return;
    }
    entry->borrow = NULL; /* its memory has gone to the names of leases */
    entry->dropped = true;
    set_aside(engine, entry);
}

static void expire(struct weir_engine *engine)
{
    while (engine->first_pending != NULL &&
           engine->first_pending->decision.deadline_ns <= engine->now_ns) {
        struct weir_entry *entry = engine->first_pending;
        engine->store->ops->cancel(engine->store, &entry->decision);
        unlink_pending(engine, entry);
        if (entry->dropped) {
            weir_engine_give_back(engine, entry);
            continue;
        }
        if (entry->trial != WEIR_TRIAL_NONE) {
            weir_candidate_decided(engine, entry, WEIR_ERR_DEADLINE);
            continue;
        }
        settle_failed(engine, entry, WEIR_ERR_DEADLINE);
        report(engine, entry);
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
        batch[size++] = batch[i];
    }
    return size;
}

/* Settles what the store has failed to decide; false: nobody is to hear of it. */
static bool failed_at_once(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->trial != WEIR_TRIAL_NONE) {
        weir_candidate_decided(engine, entry, entry->decision.error);
        return false;
    }
    entry->state = WEIR_ENTRY_DECIDED;
    settle_failed(engine, entry, entry->decision.error);
    return true;
}

/* Concludes what the store decided, or failed to, at once and keeps it in the batch; the rest is
 * pending. `done` is called only after this, when every decision of the batch is in its place and
 * may be cancelled. */
static uint32_t sort_batch(struct weir_engine *engine, uint32_t size)
{
    uint32_t decided = 0;
    for (uint32_t i = 0; i < size; i++) {
        struct weir_entry *entry = weir_entry_of(engine->batch[i]);
        if (entry->decision.verdict == WEIR_PENDING) {
            if (entry->decision.error == 0)
                link_pending(engine, entry);
            else if (failed_at_once(engine, entry))
                engine->batch[decided++] = &entry->decision;
            continue;
        }
        if (__builtin_expect(entry->trial != WEIR_TRIAL_NONE, 0)) {
            weir_candidate_decided(engine, entry, 0);
            continue;
        }
        if (goes_again(engine, entry))
            continue;
        entry->state = WEIR_ENTRY_DECIDED;
        conclude(engine, entry);
        engine->batch[decided++] = &entry->decision;
    }
    return decided;
}

/* Decides one operation that goes alone. */
static void run_alone(struct weir_engine *engine, struct weir_entry *entry, uint64_t deadline_ns)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_store *store = entry->local ? engine->local : engine->store;
    decision->verdict = WEIR_PENDING;
    decision->error = 0;
    if (store == NULL)
        refuse_operation(engine, decision, 0); /* there is no such store here: no such lease */
    else
        store->ops->submit(store, engine->now_ns, &decision, 1);
    bool failed = decision->verdict == WEIR_PENDING && decision->error != 0;
    if (decision->verdict == WEIR_PENDING && !failed) { /* a local store answers at once */
        decision->deadline_ns = deadline_ns;
        link_pending(engine, entry);
    } else if (entry->dropped) {
        give_back_dropped(engine, entry);
    } else if (failed) {
        settle_failed(engine, entry, decision->error);
        report(engine, entry);
    } else {
        conclude(engine, entry);
        report(engine, entry);
    }
}

static void run_all_alone(struct weir_engine *engine, uint64_t deadline_ns)
{
    while (engine->alone != NULL) {
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
            report(engine, entry);
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

void weir_engine_decide_alone(struct weir_engine *engine, struct weir_entry *entry)
{
    run_alone(engine, entry, deadline_of(engine));
}

static void run_round(struct weir_engine *engine)
{
    uint64_t deadline_ns = deadline_of(engine);
    uint32_t size = take_batch(engine, deadline_ns);
    if (size > 0)
        run_batch(engine, size);
    if (engine->alone != NULL)
        run_all_alone(engine, deadline_ns);
}

uint64_t weir_engine_run(struct weir_engine *engine, uint64_t now_ns)
{
    engine->now_ns = now_ns;
    expire(engine);
    for (int round = 0; round < ROUNDS_MAX && (engine->queued > 0 || engine->alone != NULL);
         round++)
        run_round(engine);
    if (engine->store->ops->flush != NULL)
        engine->store->ops->flush(engine->store);
    if (engine->queued > 0)
        return now_ns;
    return engine->first_pending != NULL ? engine->first_pending->decision.deadline_ns : WEIR_NEVER;
}

/* What was asked to be ended or forgotten is, whoever waits for the answer. */
static void drop_operation(struct weir_entry *entry)
{
    entry->dropped = true;
    if (entry->state == WEIR_ENTRY_QUEUED)
        entry->state = WEIR_ENTRY_ALONE;
}

void weir_engine_cancel(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    bool operation = is_operation(decision) || entry->settles;
    switch (entry->state) {
    case WEIR_ENTRY_LOOKING:
        if (operation && !entry->lookup->held)
            entry->dropped = true;
        else
            weir_engine_give_back(engine, entry);
        break;
    case WEIR_ENTRY_QUEUED:
    case WEIR_ENTRY_ALONE:
        if (operation)
            drop_operation(entry);
        else
            entry->state =
                WEIR_ENTRY_CANCELLED; /* a list still points here: the run gives it back */
        break;
    case WEIR_ENTRY_DECIDED:
        entry->state = WEIR_ENTRY_CANCELLED; /* likewise */
        break;
    case WEIR_ENTRY_PENDING:
        if (operation) {
            drop_operation(entry);
            break;
        }
        engine->store->ops->cancel(engine->store, decision);
        unlink_pending(engine, entry);
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
