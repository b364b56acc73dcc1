/* SPDX-License-Identifier: Apache-2.0 */
/* see engine.h */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/reason.h"
#include "engine/lease.h"
#include "engine/region/lend.h"
#include "engine/region/reach.h"
#include "engine/request.h"
#include "engine/state.h"
#include "engine/token/caller.h"
#include "rules/charge/priority.h"
#include "rules/charge/top_up.h"
#include "rules/counted.h"
#include "rules/match/standing.h"

#define DECISIONS_DEFAULT 4096                 /* a full turn of 1,000 connections, four deep */
#define DEADLINE_DEFAULT_NS UINT64_C(20000000) /* design: 20 ms */

/* --- Opening, rules --------------------------------------------------------------------------- */

/* The memory of tokens, for the first rules that read any. */
static int open_tokens(struct weir_engine *engine, const struct weir_rules *rules)
{
    return engine->tokens || !rules || !weir_rules_reads_tokens(rules)
               ? 0
               : weir_tokens_open(&engine->tokens, &engine->token_counters);
}

/* The pools of the engine's own decisions, as far as these rules need them. */
static int open_pools(struct weir_engine *engine, const struct weir_rules *rules)
{
    int err = weir_warnings_open(engine, rules);
    if (err == 0)
        err = weir_candidates_open(engine, rules);
    if (err == 0)
        err = weir_strikes_open(engine, rules);
    return err < 0 ? err : weir_questions_open(engine, rules);
}

static int open_parts(struct weir_engine *engine, const struct weir_engine_options *options,
                      uint32_t decisions)
{
    int err = weir_top_denied_open(&engine->top_denied);
    if (err == 0)
        err = open_tokens(engine, options->rules);
    if (err < 0)
        return err;
    err = weir_pool_open(&engine->pool, decisions, &weir_request_purpose);
    if (err < 0)
        return err;
    size_t most = (size_t)decisions + WEIR_WARNINGS_MAX + WEIR_TRIALS_MAX + WEIR_STRIKES_AT_WORK +
                  WEIR_QUESTIONS_MAX;
    engine->queue = calloc(most, sizeof *engine->queue);
    engine->batch = calloc(most, sizeof *engine->batch);
    if (!engine->queue || !engine->batch)
        return WEIR_ERR_MEMORY;
    if (!options->rules)
        return 0;
    err = open_pools(engine, options->rules);
    if (err < 0)
        return err;
    return weir_generation_open(&engine->generation, options->rules, NULL, &engine->tallies,
                                &engine->counts_place);
}

static void close_parts(struct weir_engine *engine)
{
    if (engine->generation)
        weir_generation_unpin(engine->generation, &engine->tallies);
    weir_tallies_close(&engine->tallies);
    weir_warnings_close(engine);
    weir_pool_drop(&engine->trials);
    weir_pool_drop(&engine->strikes);
    weir_pool_drop(&engine->questions);
    free(engine->batch);
    free(engine->queue);
    weir_pool_close(&engine->pool);
    weir_top_denied_close(engine->top_denied);
    weir_tokens_close(engine->tokens);
    pthread_mutex_destroy(&engine->readers);
    free(engine);
}

static void listen(struct weir_engine *engine, struct weir_store *store)
{
    if (!store)
        return;
    store->done = weir_turn_answered;
    store->done_context = engine;
}

static void listen_no_more(struct weir_store *store)
{
    if (!store)
        return;
    store->done = NULL;
    store->done_context = NULL;
}

int weir_engine_open(struct weir_engine **engine, const struct weir_engine_options *options)
{
    uint32_t decisions = options->decisions != 0 ? options->decisions : DECISIONS_DEFAULT;
    if (decisions > WEIR_ENGINE_DECISIONS_MAX)
        return WEIR_ERR_RANGE;
    struct weir_engine *e = calloc(1, sizeof *e);
    if (!e)
        return WEIR_ERR_MEMORY;
    e->store = options->store;
    e->local = options->local;
    e->secret = options->secret;
    e->done = options->done;
    e->done_context = options->done_context;
    e->deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : DEADLINE_DEFAULT_NS;
    e->lease_state = options->lease_seed;
    e->lease_owner = options->lease_owner;
    e->directory = options->directory;
    e->warn = options->warn;
    e->warn_context = options->warn_context;
    e->tried = options->tried;
    e->tried_context = options->tried_context;
    e->strike = options->strike;
    e->strike_context = options->strike_context;
    e->observe = options->observe;
    e->observe_context = options->observe_context;
    e->observe_wait = 1;
    e->distinct = options->distinct;
    e->counts_place =
        (struct weir_counts_place){.find = options->counts, .context = options->counts_context};
    e->clock = options->clock;
    e->clock_context = options->clock_context;
    e->keep_tuples = !options->text_keys && !options->store->ops->name_of;
    e->standing = options->standing;
    e->regions = options->regions;
    pthread_mutex_init(&e->readers, NULL);
    int err = open_parts(e, options, decisions);
    if (err < 0) {
        close_parts(e);
        return err;
    }
    listen(e, e->store);
    for (uint32_t i = 0; e->regions && i < RULES_REGIONS_MAX; i++)
        listen(e, e->regions[i]);
    *engine = e;
    return 0;
}

static void unpin(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->generation)
        weir_generation_unpin(entry->generation, &engine->tallies);
    entry->generation = NULL;
}

void weir_engine_end(struct weir_engine *engine)
{
    if (!engine->store)
        return;
    for (uint32_t i = 0; i < engine->pool.touched; i++) {
        struct weir_entry *entry = weir_pool_at(&engine->pool, i);
        if (entry->state != WEIR_ENTRY_FREE && entry->lookup)
            weir_lookup_end(engine, entry);
    }
    engine->directory = NULL;
    weir_turn_end(engine);
    listen_no_more(engine->store);
    for (uint32_t i = 0; engine->regions && i < RULES_REGIONS_MAX; i++)
        listen_no_more(engine->regions[i]);
    engine->store = engine->local = NULL;
    engine->regions = NULL;
}

static void unpin_all(struct weir_engine *engine, struct weir_pool *pool)
{
    for (uint32_t i = 0; i < pool->touched; i++)
        unpin(engine, weir_pool_at(pool, i));
}

void weir_engine_close(struct weir_engine *engine)
{
    weir_engine_end(engine);
    unpin_all(engine, &engine->pool); /* also of those still handed out */
    if (engine->warnings)
        unpin_all(engine, weir_warnings_pool(engine));
    if (engine->trials)
        unpin_all(engine, engine->trials);
    if (engine->strikes)
        unpin_all(engine, engine->strikes);
    if (engine->questions)
        unpin_all(engine, engine->questions);
    close_parts(engine);
}

int weir_engine_set_rules(struct weir_engine *engine, struct weir_rules *rules)
{
    struct weir_generation *before = engine->generation, *after;
    if (open_tokens(engine, rules) < 0)
        return WEIR_ERR_MEMORY;
    pthread_mutex_lock(&engine->readers);
    int err = open_pools(engine, rules);
    if (err == 0)
        err = weir_generation_open(&after, rules, before, &engine->tallies, &engine->counts_place);
    if (err == 0) {
        engine->generation = after;
        engine->moment.until_ns = 0;
    }
    if (err == 0 && before)
        weir_generation_unpin(before, &engine->tallies);
    pthread_mutex_unlock(&engine->readers);
    return err;
}

void weir_engine_set_standing(struct weir_engine *engine, const struct weir_standing *standing)
{
    engine->standing = standing;
}

void weir_engine_miss_standing(struct weir_engine *engine, bool missing)
{
    engine->standing_missing = missing;
}

struct weir_rules *weir_engine_rules(const struct weir_engine *engine)
{
    return engine->generation ? engine->generation->rules : NULL;
}

/* --- The pool --------------------------------------------------------------------------------- */

struct weir_decision *weir_engine_take(struct weir_engine *engine)
{
    struct weir_entry *entry = weir_pool_take(&engine->pool);
    if (!entry) {
        weir_count(&engine->failures.exhausted, 1);
        return NULL;
    }
    return &entry->decision;
}

void weir_engine_give_back(struct weir_engine *engine, struct weir_entry *entry)
{
    if (__builtin_expect(entry->lookup != NULL, 0))
        weir_lookup_end(engine, entry);
    if (__builtin_expect(entry->lending != NULL, 0))
        weir_lend_drop(engine, entry);
    if (__builtin_expect(entry->homes, 0))
        weir_reach_drop(engine, entry);
    unpin(engine, entry);
    weir_pool_give(entry);
}

void weir_engine_release(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN || entry->state == WEIR_ENTRY_FINISHED);
    weir_engine_give_back(engine, entry);
}

/* --- Checks ----------------------------------------------------------------------------------- */

/* Ties the checks of a decision to the rules that they were made from. */
void weir_engine_pin(struct weir_engine *engine, struct weir_entry *entry, int checks)
{
    entry->decision.count = (uint16_t)checks;
    engine->generation->pins++;
    unpin(engine, entry);
    entry->generation = engine->generation;
}

/* Sets the time of a query, and which schedules are at rest then. */
static void set_time(struct weir_engine *engine, struct weir_rules_query *query)
{
    struct weir_moment *moment = &engine->moment;
    uint64_t now_ns = engine->clock ? engine->clock(engine->clock_context) : engine->now_ns;
    if (now_ns < moment->from_ns || now_ns >= moment->until_ns)
        weir_rules_moment(engine->generation->rules, now_ns, moment);
    query->now_ns = now_ns;
    query->resting = moment->resting;
}

struct weir_bytes weir_engine_key_text(const struct weir_engine *engine,
                                       const struct weir_entry *entry,
                                       const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX])
{
    return check->key_is_tuple ? weir_rules_key_text(entry->generation->rules, check, room)
                               : check->key;
}

static struct weir_bytes keep_name(struct weir_decision *decision, struct weir_bytes name)
{
    bool kept = name.data && name.size <= WEIR_IDENTITY_MAX;
    return kept ? weir_decision_keep(decision, name) : (struct weir_bytes){NULL, 0};
}

/* Keeps the caller: what a limit had to find out, else what the request says. */
static __attribute__((noinline)) void keep_caller(struct weir_entry *entry,
                                                  const struct weir_request *request, bool plan)
{
    struct weir_identity *identity = &entry->identity;
    entry->client = request->client;
    if (!identity->user.data && request->count > WEIR_ATTR_USER)
        identity->user = request->values[WEIR_ATTR_USER];
    if (!identity->org.data && request->count > WEIR_ATTR_ORG)
        identity->org = request->values[WEIR_ATTR_ORG];
    if (identity->user.data)
        identity->user = keep_name(&entry->decision, identity->user);
    if (identity->org.data)
        identity->org = keep_name(&entry->decision, identity->org);
    if (plan && identity->plan.data)
        identity->plan = keep_name(&entry->decision, identity->plan);
}

void weir_engine_keep_identity(struct weir_entry *entry, const struct weir_identity *identity)
{
    entry->identity.user = keep_name(&entry->decision, identity->user);
    entry->identity.org = keep_name(&entry->decision, identity->org);
    entry->identity.plan = keep_name(&entry->decision, identity->plan);
}

/* Numbers the caller, for limits that follow health: as keep_caller, before that. */
static __attribute__((noinline)) void number_caller(const struct weir_engine *engine,
                                                    struct weir_entry *entry,
                                                    const struct weir_request *request)
{
    struct weir_bytes user = entry->identity.user;
    if (!user.data && request->count > WEIR_ATTR_USER)
        user = request->values[WEIR_ATTR_USER];
    entry->caller = weir_caller_number(engine->secret, user, &request->client);
}

/* What few rules want to know of a caller: one test on the path of all others. */
static __attribute__((noinline)) void look_at_caller(const struct weir_engine *engine,
                                                     const struct weir_generation *generation,
                                                     struct weir_entry *entry,
                                                     const struct weir_request *request)
{
    if (generation->denies_unknown && entry->standing.unknown)
        entry->stands = true;
    if (generation->adapts)
        number_caller(engine, entry, request);
}

uint64_t weir_decision_caller(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->generation && entry->generation->adapts ? entry->caller : 0;
}

void weir_engine_unaided(struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    entry->unaided = true;
    entry->borrow = NULL;
    for (uint16_t i = 0; i < decision->count; i++)
        decision->checks[i].flags &= (uint8_t)~WEIR_CHECK_LEASED;
}

/* Only requests are a part of how clients behave. */
static uint8_t behaves(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_DECIDE ? RULES_BEHAVES_COUNT
           : decision->op == WEIR_OP_PEEK ? RULES_BEHAVES_LOOK
                                          : RULES_BEHAVES_RECALL;
}

int weir_engine_evaluate(struct weir_engine *engine, struct weir_entry *entry,
                         struct weir_rules_query *query)
{
    struct weir_generation *generation = entry->lookup ? entry->generation : engine->generation;
    struct weir_address inside;
    entry->decision.count = 0;
    entry->decision.network = weir_address_network(
        weir_rules_counted_by(generation->rules, &query->request->client, &inside));
    entry->scratch.used = 0;
    entry->keeps = true;
    entry->borrow = NULL;
    entry->lending = NULL;
    entry->unaided = false;
    entry->strike_count = 0;
    entry->stands = false;
    entry->class = 0;
    if (__builtin_expect(generation->scores, 0)) {
        query->score = &entry->score;
        entry->score.found = false;
        query->behaves = behaves(&entry->decision);
    }
    query->map = engine->standing;
    query->missing = engine->standing_missing;
    query->standing = &entry->standing;
    query->strikes = engine->strikes && generation->strikes ? &engine->struck : NULL;
    query->refuses = entry->decision.op == WEIR_OP_DECIDE || entry->decision.op == WEIR_OP_PEEK;
    query->rules = generation->rules;
    query->secret = engine->secret;
    query->scratch = &entry->scratch;
    query->directory = engine->directory;
    query->tokens = engine->tokens;
    query->identity = &entry->identity;
    query->loans = &engine->loans;
    query->keep_tuples = engine->keep_tuples;
    query->class = &entry->class;
    query->place = engine->observe ? &entry->place : NULL;
    int checks = weir_rules_checks(query, entry->checks);
    if (checks == WEIR_ERR_STORE)
        reason_text(query->reason, "who is calling cannot be looked up now");
    if (checks < 0)
        return checks;
    if (__builtin_expect(query->map != NULL || query->missing, 0))
        entry->stands = entry->standing.entry.level != WEIR_STANDING_GOOD;
    if (__builtin_expect(generation->looks_at_caller, 0))
        look_at_caller(engine, generation, entry, query->request);
    if (engine->observe)
        keep_caller(entry, query->request, generation->warns);
    else if (__builtin_expect(generation->warns, 0))
        weir_engine_keep_identity(entry, &entry->identity);
    if (entry->lookup) /* which has pinned them */
        entry->decision.count = (uint16_t)checks;
    else
        weir_engine_pin(engine, entry, checks);
    if (__builtin_expect(query->strikes != NULL, 0) && engine->struck.count > 0) {
        int err = weir_strikes_keep(entry, &engine->struck, query->reason);
        if (err < 0)
            return err;
    }
    return __builtin_expect(engine->loans.count > 0, 0)
               ? weir_borrow_offer(entry, &engine->loans, query->reason)
               : 0;
}

int weir_engine_apply_rules(struct weir_engine *engine, struct weir_decision *decision,
                            const struct weir_request *request, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_rules_query query = {.request = request, .reason = reason};
    if (engine->generation->timed)
        set_time(engine, &query);
    if (__builtin_expect(entry->lookup != NULL, 0))
        weir_lookup_end(engine, entry);
    entry->score.found = entry->score.counted = false;
    int err = weir_engine_evaluate(engine, entry, &query);
    if (__builtin_expect(err == WEIR_ERR_PENDING, 0))
        err = weir_lookup_begin(engine, entry, &query);
    return err;
}

static bool any_state(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* A floor that is nothing denies without a look at a state (rules/region/region.h). With a record
 * beside it the store is asked, since it may have recorded that the home has admitted the request.
 */
static void ask_floors(struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (decision->checks[i].limit)
            decision->checks[i].flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY;
}

int weir_engine_apply_idempotency(struct weir_engine *engine, struct weir_decision *decision,
                                  struct weir_bytes key, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    uint64_t lease_id;
    assert(decision->policy == WEIR_POLICY_ALL && key.size > 0 &&
           key.size <= WEIR_IDEMPOTENCY_KEY_MAX);
    if (weir_lookup_waits(entry)) {
        memcpy(entry->lookup->key, key.data, key.size);
        entry->lookup->idempotency_key = (struct weir_bytes){entry->lookup->key, key.size};
        return 0;
    }
    ask_floors(decision);
    if (!any_state(decision))
        return 0;
    int err = WEIR_ERR_TOO_LARGE;
    if (decision->count < WEIR_CHECKS_MAX)
        err = weir_rules_idempotency(entry->generation->rules, entry->checks, decision->count, key,
                                     engine->secret, &entry->scratch,
                                     &entry->checks[decision->count], &lease_id);
    if (err < 0) {
        reason_text(reason,
                    "too many limits, or too long keys, for an idempotency key beside them");
        return err;
    }
    if (weir_lease_wanted(decision))
        decision->lease.id = lease_id;
    decision->count++;
    return 0;
}

int weir_engine_apply_key(struct weir_engine *engine, struct weir_decision *decision, uint32_t rule,
                          const struct weir_key_values *values, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    decision->count = 0;
    entry->scratch.used = 0;
    entry->keeps = true;
    int checks = weir_rules_key_check(engine->generation->rules, rule, values, engine->secret,
                                      &entry->scratch, entry->checks, reason);
    if (checks < 0)
        return checks;
    weir_engine_pin(engine, entry, checks);
    return 0;
}

bool weir_engine_apply_top_up(struct weir_decision *decision)
{
    struct weir_check check;
    if (!weir_rules_top_up(weir_decision_rules(decision), &decision->checks[0], &check))
        return false;
    decision->checks[0] = check;
    decision->count = 1;
    return true;
}

void weir_engine_apply_solution(struct weir_engine *engine, struct weir_decision *decision,
                                const unsigned char nonce[WEIR_CHALLENGE_NONCE])
{
    struct weir_entry *entry = weir_entry_of(decision);
    entry->keeps = true;
    weir_rules_solution(engine->generation->rules, nonce, engine->secret, &entry->scratch,
                        entry->checks);
    weir_engine_pin(engine, entry, 1);
}

/* --- One decision ------------------------------------------------------------------------------
 */

const struct weir_rules *weir_decision_rules(const struct weir_decision *decision)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    return generation ? generation->rules : NULL;
}

const char *weir_decision_class(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct rules_priority *priority =
        entry->class != 0 ? weir_rules_priority(weir_decision_rules(decision)) : NULL;
    return priority ? priority->names[entry->class - 1] : NULL;
}

const struct weir_caller_standing *weir_decision_standing(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->stands ? &entry->standing : NULL;
}

const struct weir_caller_score *weir_decision_score(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->score.found ? &entry->score : NULL;
}

struct weir_bytes weir_decision_keep(struct weir_decision *decision, struct weir_bytes bytes)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_scratch *scratch = &entry->scratch;
    if (!entry->keeps)
        scratch->used = 0;
    entry->keeps = true;
    if (bytes.size > sizeof scratch->bytes - scratch->used)
        return (struct weir_bytes){NULL, 0};
    char *kept = scratch->bytes + scratch->used;
    if (bytes.size > 0)
        memcpy(kept, bytes.data, bytes.size);
    scratch->used += (uint32_t)bytes.size;
    return (struct weir_bytes){kept, bytes.size};
}

/* --- Books ------------------------------------------------------------------------------------ */

bool weir_engine_waits(const struct weir_engine *engine)
{
    return engine->queued > 0;
}

uint32_t weir_engine_pending(const struct weir_engine *engine)
{
    return engine->pending + engine->looking;
}

const struct weir_engine_counters *weir_engine_counters(const struct weir_engine *engine,
                                                        uint32_t rule)
{
    const struct weir_generation *generation = engine->generation;
    if (!generation || rule >= generation->count)
        return NULL;
    return &generation->views[rule].tally->counters;
}

const struct weir_engine_counters *weir_engine_find_counters(struct weir_engine *engine,
                                                             const char *name, size_t size)
{
    const struct weir_engine_counters *counters = NULL;
    pthread_mutex_lock(&engine->readers);
    const struct weir_generation *generation = engine->generation;
    int rule = generation ? weir_rules_find(generation->rules, name, size) : -1;
    if (rule >= 0)
        counters = &generation->views[rule].tally->counters;
    pthread_mutex_unlock(&engine->readers);
    return counters;
}

const struct weir_engine_counters *weir_engine_counters_of(struct weir_engine *engine,
                                                           const struct weir_rules *rules,
                                                           uint32_t rule, const char *name,
                                                           size_t size)
{
    const struct weir_engine_counters *counters = NULL;
    pthread_mutex_lock(&engine->readers);
    const struct weir_generation *generation = engine->generation;
    bool same = generation && generation->rules == rules;
    if (same)
        counters = &generation->views[rule].tally->counters;
    pthread_mutex_unlock(&engine->readers);
    return same ? counters : weir_engine_find_counters(engine, name, size);
}

void weir_engine_renew_counts(struct weir_engine *engine)
{
    if (engine->generation)
        weir_generation_place(engine->generation, &engine->counts_place);
}

void weir_engine_count_keys(struct weir_engine *engine, const char *name, size_t size,
                            uint8_t number, uint16_t below)
{
    pthread_mutex_lock(&engine->readers);
    const struct weir_generation *generation = engine->generation;
    int rule = generation ? weir_rules_find(generation->rules, name, size) : -1;
    if (rule >= 0) {
        struct weir_counts *counts = generation->views[rule].counts;
        atomic_store_explicit(&counts->keys_number, number % WEIR_DISTINCT_LIMITS,
                              memory_order_relaxed);
        atomic_store_explicit(&counts->keys_below, below, memory_order_release);
    }
    pthread_mutex_unlock(&engine->readers);
}

const struct weir_engine_retries *weir_engine_retries(const struct weir_engine *engine)
{
    return &engine->retries;
}

const struct weir_engine_failures *weir_engine_failures(const struct weir_engine *engine)
{
    return &engine->failures;
}

const struct weir_token_counters *weir_engine_tokens(const struct weir_engine *engine)
{
    return &engine->token_counters;
}

const struct weir_standing_refusals *weir_engine_standing_refusals(const struct weir_engine *engine)
{
    return &engine->standing_refusals;
}

const struct weir_score_counters *weir_engine_scores(const struct weir_engine *engine)
{
    return &engine->scores;
}

struct weir_top_denied *weir_engine_top_denied(const struct weir_engine *engine)
{
    return engine->top_denied;
}
