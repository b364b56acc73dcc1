/* SPDX-License-Identifier: Apache-2.0 */
/* see generation.h */
#include "engine/generation.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "feature/priority/rules/priority.h"
#include "feature/region/rules/region.h"
#include "feature/standing/rules/match.h"
#include "feature/use/distinct.h"
#include "rules/actions/steps.h"
#include "rules/charge/candidate.h"
#include "rules/charge/top_up.h"
#include "rules/follow.h"
#include "wire/http/ratelimit_headers.h"

struct weir_tally_block {
    struct weir_tally_block *next;
    struct weir_tally tallies[];
};

void weir_tallies_close(struct weir_tallies *tallies)
{
    while (tallies->blocks) {
        struct weir_tally_block *block = tallies->blocks;
        tallies->blocks = block->next;
        free(block);
    }
}

/* Makes sure that `count` tallies are free. */
static int tallies_reserve(struct weir_tallies *tallies, uint32_t count)
{
    uint32_t have = 0;
    for (const struct weir_tally *t = tallies->free; t && have < count; t = t->next_free)
        have++;
    if (have >= count)
        return 0;
    struct weir_tally_block *block =
        calloc(1, sizeof *block + (count - have) * sizeof *block->tallies);
    if (!block)
        return WEIR_ERR_MEMORY;
    block->next = tallies->blocks;
    tallies->blocks = block;
    for (uint32_t i = 0; i < count - have; i++) {
        block->tallies[i].next_free = tallies->free;
        tallies->free = &block->tallies[i];
    }
    return 0;
}

static void reset_classes(struct weir_tally *tally)
{
    for (int i = 0; i < RULES_CLASSES_MAX; i++)
        atomic_store_explicit(&tally->counters.class_denied[i], 0, memory_order_relaxed);
}

static void reset_warnings(struct weir_tally *tally)
{
    for (int i = 0; i < WEIR_WARN_MAX; i++)
        atomic_store_explicit(&tally->counters.warnings[i], 0, memory_order_relaxed);
}

static struct weir_tally *tally_take(struct weir_tallies *tallies)
{
    struct weir_tally *tally = tallies->free;
    tallies->free = tally->next_free;
    atomic_store_explicit(&tally->counters.counts.allowed, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.counts.denied, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.counts.shadow_denied, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.counts.cost, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.counts.delayed, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.counts.keys_below, WEIR_DISTINCT_NONE,
                          memory_order_relaxed);
    atomic_store_explicit(&tally->counters.floor_denied, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.lent, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.borrowed, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->counters.bought, 0, memory_order_relaxed);
    for (int i = 0; i < WEIR_TRIAL_OUTCOMES; i++)
        atomic_store_explicit(&tally->counters.trials[i], 0, memory_order_relaxed);
    for (int i = 0; i < WEIR_ACTIONS; i++)
        atomic_store_explicit(&tally->counters.actions[i], 0, memory_order_relaxed);
    reset_warnings(tally);
    reset_classes(tally);
    return tally;
}

/* Whether both rules have the same classes. */
static bool same_classes(const struct weir_rules *before, const struct weir_rules *after)
{
    const struct rules_priority *a = weir_rules_priority(before), *b = weir_rules_priority(after);
    if (!a || !b || a->class_count != b->class_count)
        return !a && !b;
    for (uint8_t i = 0; i < a->class_count; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return true;
}

/* Warnings are counted by threshold: other thresholds begin anew. */
static void compare_thresholds(struct weir_tally *tally, const struct weir_warn_at *before,
                               const struct weir_warn_at *after)
{
    if (before->count != after->count || memcmp(before->percent, after->percent, after->count) != 0)
        reset_warnings(tally);
}

/* The limit that rule `i`, of that name, continues; -1: none. `follows`: its list, or NULL. */
static int limit_before(const struct weir_generation *before, const uint32_t *follows, uint32_t i,
                        struct weir_bytes name)
{
    if (follows)
        return follows[i] == RULES_NONE ? -1 : (int)follows[i];
    return before ? weir_rules_find(before->rules, name.data, name.size) : -1;
}

/* How many of `count` limits continue none, as far as that is known without a look-up. */
static uint32_t count_new(const uint32_t *follows, uint32_t count)
{
    uint32_t fresh = 0;
    for (uint32_t i = 0; follows && i < count; i++)
        fresh += follows[i] == RULES_NONE;
    return follows ? fresh : count;
}

/* The fields of a limit that has one rate for all callers. */
static void view_tell(struct weir_rule_view *view, const struct weir_rules *rules, uint32_t i)
{
    view->told = weir_rules_only_limit(rules, i);
    if (view->told)
        weir_ratelimit_texts_make(&view->texts, view->name, view->told);
    if (view->told && view->texts.policy_size == 0)
        view->told = NULL;
}

int weir_generation_open(struct weir_generation **generation, struct weir_rules *rules,
                         const struct weir_generation *before, struct weir_tallies *tallies,
                         const struct weir_counts_place *place)
{
    uint32_t count = weir_rules_count(rules);
    const uint32_t *follows = before ? weir_rules_followed(rules, before->rules) : NULL;
    struct weir_generation *g = malloc(sizeof *g + count * sizeof *g->views);
    if (!g)
        return WEIR_ERR_MEMORY;
    if (tallies_reserve(tallies, count_new(follows, count)) < 0) {
        free(g);
        return WEIR_ERR_MEMORY;
    }
    g->rules = weir_rules_ref(rules);
    g->pins = 1;
    g->count = count;
    g->hooks = 0;
    g->timed = weir_rules_timed(rules);
    uint32_t adaptive;
    (void)weir_rules_adaptive_limits(rules, &adaptive);
    g->warns = weir_rules_warns(rules);
    g->adapts = adaptive > 0;
    g->sells = weir_rules_any_top_up(rules);
    g->acts = weir_rules_acts(rules);
    g->strikes = weir_rules_penalty_count(rules) > 0;
    g->scores = weir_rules_score(rules);
    g->denies_unknown = weir_rules_denies_unknown(rules);
    g->looks_at_caller = g->adapts || g->denies_unknown;
    bool keeps_classes = before && same_classes(before->rules, rules);
    bool thresholds = g->warns || (before && before->warns);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = weir_rules_name(rules, i);
        g->views[i].name = (struct weir_bytes){name, strlen(name)};
        view_tell(&g->views[i], rules, i);
        int old = limit_before(before, follows, i, g->views[i].name);
        g->views[i].tally = old >= 0 ? before->views[old].tally : tally_take(tallies);
        g->views[i].tally->generations++;
        if (old >= 0 && !keeps_classes)
            reset_classes(g->views[i].tally);
        if (old >= 0 && thresholds)
            compare_thresholds(g->views[i].tally, weir_rules_warn_at(before->rules, (uint32_t)old),
                               weir_rules_warn_at(rules, i));
    }
    weir_generation_place(g, place);
    *generation = g;
    return 0;
}

/* Units that were bought: the cost of what the name of their states has admitted. */
static void place_bought(struct weir_generation *generation, uint32_t rule,
                         const struct weir_counts_place *place)
{
    struct weir_tally *tally = generation->views[rule].tally;
    const char *name = weir_rules_top_up_name(generation->rules, rule);
    struct weir_counts *counts = NULL;
    if (name && place->find)
        counts = place->find(place->context, (struct weir_bytes){name, strlen(name)});
    tally->bought = counts ? &counts->cost : &tally->counters.bought;
}

void weir_generation_place(struct weir_generation *generation,
                           const struct weir_counts_place *place)
{
    for (uint32_t i = 0; i < generation->count; i++) {
        struct weir_rule_view *view = &generation->views[i];
        place_bought(generation, i, place);
        view->counts = place->find ? place->find(place->context, view->name) : NULL;
        if (!view->counts)
            view->counts = &view->tally->counters.counts;
    }
}

void weir_generation_unpin(struct weir_generation *generation, struct weir_tallies *tallies)
{
    if (--generation->pins > 0)
        return;
    for (uint32_t i = 0; i < generation->count; i++) {
        struct weir_tally *tally = generation->views[i].tally;
        if (--tally->generations == 0) {
            tally->next_free = tallies->free;
            tallies->free = tally;
        }
    }
    weir_rules_unref(generation->rules);
    free(generation);
}
