/* see engine.h */
#include "engine/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/failure.h"
#include "engine/generation.h"
#include "engine/pool.h"
#include "engine/ticket.h"

#define DECISIONS_DEFAULT 4096                 /* a full turn of 1,000 connections, four deep */
#define DEADLINE_DEFAULT_NS UINT64_C(20000000) /* design: 20 ms */
#define ROUNDS_MAX 16 /* of decisions queued by `done` in one run: then the loop gets its turn */

struct weir_engine {
    struct weir_pool pool;
    struct weir_store *store, *local;
    const uint64_t *secret;
    weir_engine_done done;
    void *done_context;
    struct weir_generation *generation; /* NULL: no rules */
    uint64_t deadline_ns, now_ns;
    uint64_t lease_state;

    /* What waits for a run. A run takes the list and leaves the other one for what `done` queues.
     */
    struct weir_decision **queue, **batch;
    uint32_t queued;

    struct weir_entry *first_pending, *last_pending; /* earliest deadline first */
    uint32_t pending;

    struct weir_offenders *offenders;
    struct weir_failure failure;
    struct weir_engine_failures failures;
    struct weir_tallies tallies;
    pthread_mutex_t readers; /* generation against weir_engine_find_counters, never on a decision */
};

/* The one writer's increment: no locked instruction. */
static void count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* --- Opening, rules ----------------------------------------------------------------------------
 */

static void store_answered(void *context, struct weir_decision *decision, int error);

static int open_parts(struct weir_engine *engine, const struct weir_engine_options *options,
                      uint32_t decisions)
{
    int err = weir_offenders_open(&engine->offenders);
    if (err < 0)
        return err;
    err = weir_pool_open(&engine->pool, decisions);
    if (err < 0)
        return err;
    engine->queue = calloc(decisions, sizeof *engine->queue);
    engine->batch = calloc(decisions, sizeof *engine->batch);
    if (engine->queue == NULL || engine->batch == NULL)
        return WEIR_ERR_MEMORY;
    if (options->rules == NULL)
        return 0;
    return weir_generation_open(&engine->generation, options->rules, NULL, &engine->tallies);
}

static void close_parts(struct weir_engine *engine)
{
    if (engine->generation != NULL)
        weir_generation_unpin(engine->generation, &engine->tallies);
    weir_tallies_close(&engine->tallies);
    free(engine->batch);
    free(engine->queue);
    weir_pool_close(&engine->pool);
    weir_offenders_close(engine->offenders);
    pthread_mutex_destroy(&engine->readers);
    free(engine);
}

int weir_engine_open(struct weir_engine **engine, const struct weir_engine_options *options)
{
    uint32_t decisions = options->decisions != 0 ? options->decisions : DECISIONS_DEFAULT;
    if (decisions > WEIR_ENGINE_DECISIONS_MAX)
        return WEIR_ERR_RANGE;
    struct weir_engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return WEIR_ERR_MEMORY;
    e->store = options->store;
    e->local = options->local;
    e->secret = options->secret;
    e->done = options->done;
    e->done_context = options->done_context;
    e->deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : DEADLINE_DEFAULT_NS;
    e->lease_state = options->lease_seed;
    pthread_mutex_init(&e->readers, NULL);
    int err = open_parts(e, options, decisions);
    if (err < 0) {
        close_parts(e);
        return err;
    }
    e->store->done = store_answered;
    e->store->done_context = e;
    *engine = e;
    return 0;
}

static void unpin(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->generation != NULL)
        weir_generation_unpin(entry->generation, &engine->tallies);
    entry->generation = NULL;
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

void weir_engine_close(struct weir_engine *engine)
{
    while (engine->first_pending != NULL) {
        struct weir_entry *entry = engine->first_pending;
        engine->store->ops->cancel(engine->store, &entry->decision);
        unlink_pending(engine, entry);
    }
    for (uint32_t i = 0; i < engine->pool.touched; i++)
        unpin(engine, weir_pool_at(&engine->pool, i)); /* also of those still handed out */
    engine->store->done = NULL;
    engine->store->done_context = NULL;
    close_parts(engine);
}

int weir_engine_set_rules(struct weir_engine *engine, struct weir_rules *rules)
{
    struct weir_generation *before = engine->generation, *after;
    pthread_mutex_lock(&engine->readers);
    int err = weir_generation_open(&after, rules, before, &engine->tallies);
    if (err == 0)
        engine->generation = after;
    if (err == 0 && before != NULL)
        weir_generation_unpin(before, &engine->tallies);
    pthread_mutex_unlock(&engine->readers);
    return err;
}

struct weir_rules *weir_engine_rules(const struct weir_engine *engine)
{
    return engine->generation != NULL ? engine->generation->rules : NULL;
}

/* --- The pool ----------------------------------------------------------------------------------
 */

struct weir_decision *weir_engine_take(struct weir_engine *engine)
{
    struct weir_entry *entry = weir_pool_take(&engine->pool);
    if (entry == NULL) {
        count(&engine->failures.exhausted);
        return NULL;
    }
    return &entry->decision;
}

static void give_back(struct weir_engine *engine, struct weir_entry *entry)
{
    unpin(engine, entry);
    weir_pool_give(&engine->pool, entry);
}

void weir_engine_release(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN || entry->state == WEIR_ENTRY_FINISHED);
    give_back(engine, entry);
}

void weir_engine_cancel(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    switch (entry->state) {
    case WEIR_ENTRY_QUEUED:
    case WEIR_ENTRY_DECIDED:
        entry->state = WEIR_ENTRY_CANCELLED; /* a list still points here: the run gives it back */
        break;
    case WEIR_ENTRY_PENDING:
        engine->store->ops->cancel(engine->store, decision);
        unlink_pending(engine, entry);
        give_back(engine, entry);
        break;
    default:
        weir_engine_release(engine, decision);
        break;
    }
}

/* --- Checks ------------------------------------------------------------------------------------
 */

int weir_engine_apply_rules(struct weir_engine *engine, struct weir_decision *decision,
                            const struct weir_request *request, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_generation *generation = engine->generation;
    entry->scratch.used = 0;
    int checks = weir_rules_checks(generation->rules, request, engine->secret, &entry->scratch,
                                   entry->checks, &entry->identity, reason);
    decision->count = 0;
    if (checks < 0)
        return checks;
    decision->count = (uint16_t)checks;
    generation->pins++;
    unpin(engine, entry);
    entry->generation = generation;
    return 0;
}

/* --- Finishing ---------------------------------------------------------------------------------
 */

/* The books of one check: its limit's counters, and who was denied most. */
static void account(struct weir_engine *engine, const struct weir_entry *entry, uint16_t i)
{
    const struct weir_generation *generation = entry->generation;
    const struct weir_check *check = &entry->checks[i];
    bool denied = entry->outcomes[i].verdict == WEIR_DENIED;
    struct weir_bytes name = {"", 0};
    if (generation != NULL && check->rule < generation->count) {
        const struct weir_rule_view *view = &generation->views[check->rule];
        struct weir_engine_counters *c = &view->tally->counters;
        bool shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
        count(!denied ? &c->allowed : shadow ? &c->shadow_denied : &c->denied);
        name = view->name;
    }
    if (denied)
        weir_offenders_record(engine->offenders, check->hash, name, check->key);
}

/* What the store leaves to the engine: whom to blame, and the books. */
static void conclude(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *d = &entry->decision;
    d->denied_by = UINT16_MAX;
    for (uint16_t i = 0; d->op == WEIR_OP_DECIDE && i < d->count; i++)
        account(engine, entry, i);
    if (d->verdict == WEIR_DENIED) {
        uint64_t retry_after_ns;
        d->denied_by = weir_decision_blame(d, &retry_after_ns);
    }
}

static void settle_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    struct weir_engine_failures *f = &engine->failures;
    struct weir_decision *d = &entry->decision;
    weir_failure_settle(&engine->failure, engine->local, engine->now_ns, d, error);
    count(error == WEIR_ERR_DEADLINE ? &f->late : &f->failed);
    count(d->source == WEIR_SOURCE_CLOSED  ? &f->closed
          : d->source == WEIR_SOURCE_LOCAL ? &f->local
                                           : &f->open);
    conclude(engine, entry);
}

static void report(struct weir_engine *engine, struct weir_entry *entry)
{
    entry->state = WEIR_ENTRY_FINISHED;
    engine->done(engine->done_context, &entry->decision);
}

static void store_answered(void *context, struct weir_decision *decision, int error)
{
    struct weir_engine *engine = context;
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_PENDING);
    unlink_pending(engine, entry);
    if (error != 0) {
        settle_failed(engine, entry, error);
    } else {
        decision->source = WEIR_SOURCE_STORE;
        conclude(engine, entry);
    }
    report(engine, entry);
}

/* --- Running -----------------------------------------------------------------------------------
 */

void weir_engine_queue(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN);
    if (decision->lease.id == 0)
        decision->lease.id = weir_lease_draw(&engine->lease_state);
    decision->verdict = WEIR_PENDING;
    decision->delay_ns = 0;
    entry->state = WEIR_ENTRY_QUEUED;
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

static void expire(struct weir_engine *engine)
{
    while (engine->first_pending != NULL &&
           engine->first_pending->decision.deadline_ns <= engine->now_ns) {
        struct weir_entry *entry = engine->first_pending;
        engine->store->ops->cancel(engine->store, &entry->decision);
        unlink_pending(engine, entry);
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
        if (entry->state == WEIR_ENTRY_CANCELLED) {
            give_back(engine, entry);
            continue;
        }
        if (batch[i]->deadline_ns == 0)
            batch[i]->deadline_ns = deadline_ns;
        batch[size++] = batch[i];
    }
    return size;
}

/* Concludes what the store decided at once and keeps it in the batch; the rest is pending. `done`
 * is called only after this, when every decision of the batch is in its place and may be cancelled.
 */
static uint32_t sort_batch(struct weir_engine *engine, uint32_t size)
{
    uint32_t decided = 0;
    for (uint32_t i = 0; i < size; i++) {
        struct weir_entry *entry = weir_entry_of(engine->batch[i]);
        if (entry->decision.verdict == WEIR_PENDING) {
            link_pending(engine, entry);
            continue;
        }
        entry->state = WEIR_ENTRY_DECIDED;
        conclude(engine, entry);
        engine->batch[decided++] = &entry->decision;
    }
    return decided;
}

/* Drops a decision that was made but whose answer nobody will see: its leases end here, else they
 * would keep others out for their whole life. */
static void drop_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *d = &entry->decision;
    for (uint16_t i = 0; i < d->count; i++)
        if (d->outcomes[i].charged && d->checks[i].limit->spec.algorithm == WEIR_CONCURRENCY)
            engine->store->ops->release(engine->store, engine->now_ns, d->checks[i].hash,
                                        d->lease.id);
    give_back(engine, entry);
}

static void run_round(struct weir_engine *engine)
{
    uint64_t deadline_ns;
    if (__builtin_add_overflow(engine->now_ns, engine->deadline_ns, &deadline_ns))
        deadline_ns = WEIR_NEVER;
    uint32_t size = take_batch(engine, deadline_ns);
    if (size == 0)
        return;
    engine->store->ops->submit(engine->store, engine->now_ns, engine->batch, size);
    uint32_t decided = sort_batch(engine, size);
    for (uint32_t i = 0; i < decided; i++) {
        struct weir_entry *entry = weir_entry_of(engine->batch[i]);
        if (entry->state == WEIR_ENTRY_CANCELLED)
            drop_decided(engine, entry);
        else
            report(engine, entry);
    }
}

uint64_t weir_engine_run(struct weir_engine *engine, uint64_t now_ns)
{
    engine->now_ns = now_ns;
    expire(engine);
    for (int round = 0; round < ROUNDS_MAX && engine->queued > 0; round++)
        run_round(engine);
    if (engine->store->ops->flush != NULL)
        engine->store->ops->flush(engine->store);
    if (engine->queued > 0)
        return now_ns;
    return engine->first_pending != NULL ? engine->first_pending->decision.deadline_ns : WEIR_NEVER;
}

/* --- Leases, books -----------------------------------------------------------------------------
 */

int weir_engine_release_lease(struct weir_engine *engine, uint64_t now_ns, struct weir_bytes token)
{
    struct weir_ticket lease;
    int err = weir_ticket_read(&lease, token);
    if (err < 0)
        return err;
    struct weir_store *store = lease.local ? engine->local : engine->store;
    if (store == NULL)
        return WEIR_ERR_NOT_FOUND;
    int result = WEIR_ERR_NOT_FOUND;
    for (uint16_t i = 0; i < lease.count; i++) {
        err = store->ops->release(store, now_ns, lease.hash[i], lease.id);
        if (err == 0)
            result = 0; /* of several limits, those that still had it have ended */
        else if (err != WEIR_ERR_NOT_FOUND)
            return err;
    }
    return result;
}

uint32_t weir_engine_pending(const struct weir_engine *engine)
{
    return engine->pending;
}

const struct weir_engine_counters *weir_engine_counters(const struct weir_engine *engine,
                                                        uint32_t rule)
{
    const struct weir_generation *generation = engine->generation;
    if (generation == NULL || rule >= generation->count)
        return NULL;
    return &generation->views[rule].tally->counters;
}

const struct weir_engine_counters *weir_engine_find_counters(struct weir_engine *engine,
                                                             const char *name, size_t size)
{
    const struct weir_engine_counters *counters = NULL;
    pthread_mutex_lock(&engine->readers);
    const struct weir_generation *generation = engine->generation;
    int rule = generation != NULL ? weir_rules_find(generation->rules, name, size) : -1;
    if (rule >= 0)
        counters = &generation->views[rule].tally->counters;
    pthread_mutex_unlock(&engine->readers);
    return counters;
}

const struct weir_engine_failures *weir_engine_failures(const struct weir_engine *engine)
{
    return &engine->failures;
}

struct weir_offenders *weir_engine_offenders(const struct weir_engine *engine)
{
    return engine->offenders;
}
