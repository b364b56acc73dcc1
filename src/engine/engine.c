/* SPDX-License-Identifier: Apache-2.0 */
/* see engine.h */
#include <stdlib.h>

#include "engine/effect/warning.h"
#include "engine/hook.h"
#include "engine/request.h"
#include "engine/state.h"
#include "feature/penalties/engine/strike.h"
#include "feature/use/engine/observe.h"
#include "feature/use/engine/top_denied.h"

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
    err = weir_hooks_open(engine, options->rules);
    if (err < 0)
        return err;
    err = weir_generation_open(&engine->generation, options->rules, NULL, &engine->tallies,
                               &engine->counts_place);
    if (err == 0)
        engine->generation->hooks = weir_hooks_wanted(options->rules);
    return err;
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
    e->struck.without_map = options->strikes_without_map;
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
        weir_entry_unpin(engine, weir_pool_at(pool, i));
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
    int err = weir_hooks_open(engine, rules);
    if (err == 0)
        err = weir_generation_open(&after, rules, before, &engine->tallies, &engine->counts_place);
    if (err == 0) {
        after->hooks = weir_hooks_wanted(rules);
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

struct weir_directory *weir_engine_directory(const struct weir_engine *engine)
{
    return engine->directory;
}

void weir_engine_miss_standing(struct weir_engine *engine, bool missing)
{
    engine->standing_missing = missing;
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
