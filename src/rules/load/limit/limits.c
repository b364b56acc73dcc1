/* SPDX-License-Identifier: Apache-2.0 */
/* see limits.h */
#include "rules/load/limit/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/adaptive/rules/section.h"
#include "feature/priority/rules/section.h"
#include "feature/region/rules/section.h"
#include "feature/score/rules/section.h"
#include "feature/standing/rules/section.h"
#include "feature/sticky/rules/section.h"
#include "rules/actions/load_reject.h"
#include "rules/actions/load_steps.h"
#include "rules/load/fields.h"
#include "rules/load/limit/cost.h"
#include "rules/load/limit/key.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match.h"
#include "rules/load/limit/rate.h"
#include "rules/load/limit/when.h"
#include "rules/load/numbers.h"
#include "rules/load/server/sharing.h"

/* --- `candidate` ------------------------------------------------------------------------------ */

#define NO_LEASES "candidates do not work with concurrency: their leases would never end"

/* Puts what a mapping says over what the limit says; false after a problem. */
static bool read_parts(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_field *fields)
{
    struct rules_field said[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, &rules_section_candidate, node, said))
        return false;
    if (said[RULES_LIMIT_RATE].value) {
        rules_limit_leave_out(fields, RULES_OF_CALENDAR);
    } else if (said[RULES_LIMIT_QUOTA].value) {
        fields[RULES_LIMIT_RATE].value = fields[RULES_LIMIT_ALGORITHM].value = NULL;
        rules_limit_leave_out(fields, RULES_OF_NUMBERS);
    }
    if (said[RULES_LIMIT_ALGORITHM].value)
        rules_limit_leave_out(fields, RULES_OF_NUMBERS);
    for (uint32_t i = 0; i < rules_section_candidate.count; i++)
        if (said[i].value)
            fields[i] = said[i];
    return true;
}

/* The name of its states in a shared store: no limit's name has a '~'. */
static void name_limits(struct rules_loader *loader, const struct rules_rule *rule,
                        struct weir_limit *limits, uint8_t count)
{
    char text[RULES_NAME_MAX + 16];
    for (uint8_t i = 0; i < count; i++) {
        int size = i == 0 ? snprintf(text, sizeof(text), "%s~candidate", rule->name)
                          : snprintf(text, sizeof(text), "%s~candidate#%u", rule->name, i + 1U);
        limits[i].name = rules_keep_text(loader, text, (size_t)size);
    }
}

static void load_candidate(struct rules_loader *loader, const struct rules_field *fields,
                           struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_CANDIDATE];
    const struct rules_field *borrow = &fields[RULES_LIMIT_BORROW];
    struct rules_field tried[RULES_KEYWORDS_MAX];
    struct rules_rule candidate = *rule;
    memcpy(tried, fields, rules_section_limit.count * sizeof(*tried));
    if (borrow->value) {
        rules_problem(loader, field->key,
                      "a limit with `borrow: true` cannot have a candidate: the loans of the "
                      "candidate are unknown");
        return;
    }
    if (rule->algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, field->key, NO_LEASES);
        return;
    }
    if (field->value->kind == RULES_MAP) {
        if (!read_parts(loader, field->value, tried))
            return;
    } else {
        bool quota = fields[RULES_LIMIT_QUOTA].value;
        tried[quota ? RULES_LIMIT_QUOTA : RULES_LIMIT_RATE] = *field;
    }
    candidate.plans = NULL;
    memset(&candidate.rates, 0, sizeof(candidate.rates));
    uint32_t wrong = loader->wrong;
    rules_load_rate(loader, field->value, tried, &candidate);
    if (loader->wrong != wrong || loader->no_memory)
        return;
    if (candidate.algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, field->value, NO_LEASES);
    } else if (!candidate.rates.limits) {
        rules_problem(
            loader, field->value,
            "a candidate needs a rate of its own such as `50/min`, not `plan` or `unlimited`");
    } else {
        if (rule->global)
            rules_divide_candidate(loader, field, rule, &candidate.rates);
        name_limits(loader, rule, candidate.rates.limits, candidate.rates.count);
        if (candidate.rates.abroad)
            name_limits(loader, rule, candidate.rates.abroad, candidate.rates.count);
        rule->candidate = candidate.rates;
        loader->rules->tries = true;
    }
}

/* --- `top_up` --------------------------------------------------------------------------------- */

/* Whether the limit, or one of its plans, has several rates. */
static bool has_several(const struct rules_loader *loader, const struct rules_rule *rule)
{
    bool several = rule->rates.count > 1;
    for (uint32_t p = 0; rule->plans && p < loader->rules->plan_count; p++)
        several = several || rule->plans[p].count > 1;
    return several;
}

/* Why a limit cannot take top-ups; NULL: it can. See charge/top_up.h. */
static const char *refuses_top_up(const struct rules_loader *loader,
                                  const struct rules_field *fields, const struct rules_rule *rule)
{
    if (rule->algorithm == WEIR_CONCURRENCY)
        return "concurrency: what is in flight ends by itself, so that nothing of it can be bought";
    if (rule->algorithm == WEIR_LEAKY_QUEUE)
        return "a queue: it delays requests, and nobody buys a delay";
    if (!rule->rates.limits && !rule->plans)
        return "an unlimited limit: nothing is above it";
    if (has_several(loader, rule))
        return "several rates: give each a limit of its own, and `top_up` to the one whose units "
               "are sold";
    if (rule->flags & WEIR_CHECK_CHARGE_ON_DENY)
        return "`on_deny: charge`: a request would be charged twice";
    if (fields[RULES_LIMIT_BORROW].value || fields[RULES_LIMIT_POOL].value)
        return "`borrow` and `pool`: a request is charged in one place only";
    if (loader->rules->settings.sticky.count > 0)
        return "`sticky`: bought units would be at one node only";
    if (fields[RULES_LIMIT_GLOBAL].value)
        return "`global`: what a region denies, the limit as a whole may still admit";
    if (rule->flags & WEIR_CHECK_LEASED)
        return "`mode: leased`: what a node denies, the shares of others may still admit";
    return NULL;
}

static void load_top_up(struct rules_loader *loader, const struct rules_field *fields,
                        struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_TOP_UP];
    const char *why = refuses_top_up(loader, fields, rule);
    struct weir_limit_spec spec = {.algorithm = WEIR_PREPAID};
    char text[RULES_NAME_MAX + 16];
    if (!rules_keyword_number(loader, &rules_section_limit.keywords[RULES_LIMIT_TOP_UP],
                              field->value, &spec.window_ns))
        return;
    if (why) {
        rules_problem(loader, field->key, "`top_up` does not work with %s", why);
        return;
    }
    struct weir_limit *limit = rules_keep(loader, sizeof(*limit));
    int size = snprintf(text, sizeof(text), "%s~top_up", rule->name);
    if (!limit || weir_limit_init(limit, &spec, NULL) < 0)
        return;
    limit->name = rules_keep_text(loader, text, (size_t)size);
    if (!loader->rules->top_ups)
        loader->rules->top_ups = rules_keep(loader, loader->rules->rule_count * sizeof(limit));
    if (loader->rules->top_ups)
        loader->rules->top_ups[rule - loader->rules->rules] = limit;
}

/* --- `warn_at` -------------------------------------------------------------------------------- */

/* Puts a threshold where it belongs; false: it is there already. */
static bool insert_percent(struct weir_warn_at *at, uint8_t percent)
{
    uint8_t i = at->count;
    for (uint8_t seen = 0; seen < at->count; seen++)
        if (at->percent[seen] == percent)
            return false;
    for (; i > 0 && at->percent[i - 1] > percent; i--)
        at->percent[i] = at->percent[i - 1];
    at->percent[i] = percent;
    at->count++;
    return true;
}

/* Why a limit has no thresholds; NULL: it may have some. */
static const char *warn_refusal(const struct rules_rule *rule, const struct rules_field *fields)
{
    if (rule->algorithm == WEIR_CONCURRENCY)
        return "`warn_at` does not work with concurrency";
    if (rule->algorithm == WEIR_LEAKY_QUEUE)
        return "`warn_at` does not work with `queue`, which delays requests and uses nothing up";
    if (rules_rate_unlimited(fields))
        return "an unlimited rate never reaches a threshold: remove `warn_at`";
    return NULL;
}

static void load_warn(struct rules_loader *loader, const struct rules_field *fields,
                      struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_WARN_AT];
    struct rules_items items = rules_items_of(&field->value);
    const struct rules_keyword *row = &rules_section_limit.keywords[RULES_LIMIT_WARN_AT];
    const char *why = warn_refusal(rule, fields);
    uint64_t percent = 0;
    if (why) {
        rules_problem(loader, field->key, "%s", why);
        return;
    }
    if (field->value->kind == RULES_MAP || items.count == 0 || items.count > WEIR_WARN_MAX) {
        rules_problem(loader, field->value,
                      "`warn_at` must be a percentage of the limit, or a list of 1 to %d of them: "
                      "[80%%, 95%%]",
                      WEIR_WARN_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        if (rules_keyword_number(loader, row, items.items[i], &percent) &&
            !insert_percent(&rule->warn_at, (uint8_t)percent))
            rules_problem(loader, items.items[i], "`warn_at` has %u%% twice", (unsigned)percent);
    loader->rules->warns |= rule->warn_at.count > 0 && !(rule->flags & WEIR_CHECK_SHADOW);
}

/* --- Limits ----------------------------------------------------------------------------------- */

struct limit_nodes {
    const struct rules_node **names; /* where each limit's name stands; NULL: it has none */
    const char **texts;              /* the names, for likenesses */
    uint32_t text_count;
};

static void load_name(struct rules_loader *loader, const struct rules_node *limit,
                      const struct rules_field *field, uint32_t number, struct limit_nodes *nodes)
{
    struct weir_rules *rules = loader->rules;
    struct rules_rule *rule = &rules->rules[number];
    struct weir_bytes name;
    rule->name = "";
    if (!field->value) {
        rules_problem(loader, limit, "`name` is missing");
        return;
    }
    if (!rules_check_name(loader, field->value, "name", &name))
        return;
    int first = rules_rule_find(rules, name);
    if (first >= 0) {
        rules_problem(loader, field->value, "the name `%.*s` is given twice; first in line %u",
                      (int)name.size, name.data, nodes->names[first]->line);
        return;
    }
    if (rules->denies_unknown && weir_bytes_are(name, WEIR_ANSWER_BY_UNKNOWN)) {
        rules_problem(loader, field->value,
                      "no limit may be called `unknown` in a file with `on_unknown: deny`: answers "
                      "and metrics call those denials so");
        return;
    }
    if (loader->standing && weir_bytes_are(name, WEIR_ANSWER_BY_STANDING)) {
        rules_problem(loader, field->value,
                      "no limit may be called `standing` in a file with the section `standing:`: "
                      "answers and metrics call the refusals of that section so");
        return;
    }
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (!kept || !rules_keep_word(loader, &rules->rule_names, 0, kept, name.size, number))
        return;
    uint8_t *prefix = rules_keep(loader, RULES_PREFIX_MAX);
    if (!prefix)
        return;
    prefix[0] = (uint8_t)name.size;
    memcpy(prefix + 1, name.data, name.size);
    rule->prefix = prefix;
    rule->prefix_size = (uint8_t)(name.size + 1);
    rule->name = kept;
    rule->name_size = (uint8_t)name.size;
    nodes->names[number] = field->value;
    nodes->texts[nodes->text_count++] = kept;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void load_unless(struct rules_loader *loader, const struct rules_node *node, uint32_t number,
                        const struct limit_nodes *nodes)
{
    struct rules_rule *rule = &loader->rules->rules[number];
    struct rules_items items = rules_items_of(&node);
    uint32_t *unless = rules_keep(loader, (items.count + 1) * sizeof(*unless));
    struct rules_quote quote;
    for (uint32_t i = 0; i < items.count && unless; i++) {
        struct weir_bytes name;
        if (!rules_read_text(loader, items.items[i], "unless", &name))
            continue;
        int other = rules_rule_find(loader->rules, name);
        rules_quote(&quote, name.data, name.size);
        if (other < 0) {
            struct rules_hint room;
            const char *hint =
                rules_hint(&room, name.data, name.size, nodes->texts, nodes->text_count);
            rules_problem(loader, items.items[i], "`unless` names no limit of this file: %s%s",
                          quote.text, hint);
        } else if ((uint32_t)other >= number) {
            rules_problem(loader, items.items[i], "`unless` names earlier limits only; %s %s",
                          quote.text, (uint32_t)other == number ? "is this one" : "comes later");
        } else {
            unless[rule->unless_count++] = (uint32_t)other;
        }
    }
    if (unless)
        qsort(unless, rule->unless_count, sizeof(*unless), compare_numbers);
    rule->unless = unless;
}

/* "10%": of the keys. */
static void load_enforce(struct rules_loader *loader, const struct rules_field *field,
                         struct rules_rule *rule)
{
    const struct rules_keyword *row = &rules_section_limit.keywords[RULES_LIMIT_ENFORCE];
    struct weir_bytes text;
    struct rules_quote quote;
    uint64_t percent = 0;
    if (!rules_read_text(loader, field->value, row->name, &text))
        return;
    size_t digits = text.size > 0 && text.data[text.size - 1] == '%' ? text.size - 1 : 0;
    if (digits == 0 || weir_digits_parse(&percent, text.data, digits) != (int)digits ||
        percent < row->least || percent > row->most) {
        rules_problem(loader, field->value,
                      "`enforce` must be `%llu%%` to `%llu%%` of the keys, not %s",
                      (unsigned long long)row->least, (unsigned long long)row->most,
                      rules_quote(&quote, text.data, text.size));
    } else if (rule->flags & WEIR_CHECK_SHADOW) {
        rules_problem(loader, field->key, "a shadow limit denies nothing; remove `shadow`");
    } else if (rule->key_count == 0 && percent % 100 != 0) {
        rules_problem(loader, field->key,
                      "`key: []` is only one key, so `enforce` must be 0%% or 100%%");
    } else {
        rule->enforce = (uint8_t)percent;
    }
}

static void load_behaviour(struct rules_loader *loader, const struct rules_field *fields,
                           struct rules_rule *rule)
{
    const struct rules_field *on_deny = &fields[RULES_LIMIT_ON_DENY];
    const struct rules_node *cost = fields[RULES_LIMIT_COST].value;
    const struct rules_node *shadow = fields[RULES_LIMIT_SHADOW].value;
    bool shadowed = false;
    rule->cost = 1;
    rule->enforce = 100;
    if (cost)
        rules_load_cost(loader, cost, rule);
    if (shadow && rules_read_bool(loader, shadow, "shadow", &shadowed) && shadowed)
        rule->flags |= WEIR_CHECK_SHADOW;
    if (fields[RULES_LIMIT_ENFORCE].value)
        load_enforce(loader, &fields[RULES_LIMIT_ENFORCE], rule);
    if (on_deny->value &&
        rules_read_choice(loader, on_deny->value, "on_deny",
                          rules_section_limit.keywords[RULES_LIMIT_ON_DENY].words, 2) == 1) {
        rule->flags |= WEIR_CHECK_CHARGE_ON_DENY;
        if (rule->algorithm == WEIR_CONCURRENCY) {
            rules_problem(loader, on_deny->value,
                          "concurrency cannot charge a denied request, which is not in flight");
        }
    }
}

/* How many checks a limit makes at least. */
static uint32_t least_checks(const struct weir_rules *rules, const struct rules_rule *rule)
{
    uint32_t least = rule->rates.count;
    for (uint32_t p = 0; p < rules->plan_count && rule->plans; p++) {
        uint32_t count = rule->plans[p].count;
        least = p == 0 || count < least ? count : least;
    }
    return least > 0 ? least : 1;
}

/* Limits that no request escapes leave no room for others. */
static void count_always(struct rules_loader *loader, const struct rules_node *limit,
                         const struct rules_rule *rule)
{
    bool always = rule->part_count == 0 && rule->unless_count == 0 &&
                  (rule->key_count == 0 || rule->missing != RULES_SKIP);
    uint32_t before = loader->always;
    loader->always += always ? least_checks(loader->rules, rule) : 0;
    if (before <= WEIR_CHECKS_MAX && loader->always > WEIR_CHECKS_MAX)
        rules_problem(loader, limit, "more than %d limits apply to every request", WEIR_CHECKS_MAX);
}

/* `global`, unless another keyword says something of the limit's one state. */
static void load_global(struct rules_loader *loader, const struct rules_field *fields,
                        struct rules_rule *rule)
{
    static const char other[] = "`global`, whose states are in several regions; remove one of them";
    bool divided = loader->rules->regions && fields[RULES_LIMIT_GLOBAL].value->kind == RULES_MAP;
    if (!divided || rules_limit_refuse(loader, fields, RULES_NOT_GLOBAL, other))
        rules_load_global(loader, fields, rule); /* before the parts of nodes */
}

static void load_limit(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_field *fields, uint32_t number, const struct limit_nodes *nodes)
{
    struct rules_rule *rule = &loader->rules->rules[number];
    rules_section_defaults(&rules_section_limit, rule);
    rules_section_read(loader, &rules_section_limit, fields, rule);
    rules_load_match(loader, fields[RULES_LIMIT_MATCH].value, rule);
    if (!fields[RULES_LIMIT_KEY].value) {
        rules_problem(loader, node,
                      "`key` is missing; write `key: []` for one state that all share");
    }
    rules_load_key(loader, fields[RULES_LIMIT_KEY].value, fields[RULES_LIMIT_ON_MISSING].value,
                   rule);
    if (fields[RULES_LIMIT_UNLESS].value)
        load_unless(loader, fields[RULES_LIMIT_UNLESS].value, number, nodes);
    uint32_t wrong = loader->wrong; /* no problem is reported again for the candidate */
    rules_load_rate(loader, node, fields, rule);
    load_behaviour(loader, fields, rule);
    if (fields[RULES_LIMIT_WHEN].value)
        rules_load_when(loader, &fields[RULES_LIMIT_WHEN], rule);
    if (fields[RULES_LIMIT_GLOBAL].value)
        load_global(loader, fields, rule);
    rules_load_home(loader, fields, rules_limit_flagged(fields, RULES_NOT_STICKY), node, rule);
    rules_load_sharing(loader, fields, rules_limit_flagged(fields, RULES_SCALES), rule);
    rules_load_limit_adaptive(loader, fields, rule);
    rules_load_settle(loader, fields, rule);
    if (fields[RULES_LIMIT_CANDIDATE].value && loader->wrong == wrong)
        load_candidate(loader, fields, rule);
    if (fields[RULES_LIMIT_TOP_UP].value && loader->wrong == wrong)
        load_top_up(loader, fields, rule);
    if (fields[RULES_LIMIT_WARN_AT].value)
        load_warn(loader, fields, rule);
    if (fields[RULES_LIMIT_BY_STANDING].value)
        rules_load_by_standing(loader, fields, rule);
    if (fields[RULES_LIMIT_BY_CLASS].value)
        rules_load_by_class(loader, fields, rule);
    if (fields[RULES_LIMIT_SHED].value)
        rules_load_shed(loader, fields, rule);
    if (fields[RULES_LIMIT_STEPS].value)
        rules_load_steps(loader, fields, rule);
    if (fields[RULES_LIMIT_REJECT].value)
        rules_load_reject(loader, &fields[RULES_LIMIT_REJECT], rule);
    rule->scaled =
        rule->by_standing || rule->by_class || rule->shed || rule->adaptive != 0 || rule->steps;
    count_always(loader, node, rule);
}

/* An entry of a plan that no limit takes. */
static void report_unused(struct rules_loader *loader, const struct rules_node *name,
                          const struct limit_nodes *nodes)
{
    if (rules_rule_find(loader->rules, (struct weir_bytes){name->text, name->size}) >= 0) {
        rules_problem(loader, name, "the limit `%s` does not take its rate from the plan",
                      name->text);
        return;
    }
    struct rules_hint room;
    const char *hint = rules_hint(&room, name->text, name->size, nodes->texts, nodes->text_count);
    rules_problem(loader, name, "no limit is called `%s`%s", name->text, hint);
}

void rules_load_limits(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    if (node->kind != RULES_LIST) {
        rules_problem(loader, node, "`limits` must be a list; `[]` for none");
        return;
    }
    size_t count = node->size;
    rules->rules = rules_keep(loader, (count + 1) * sizeof(*rules->rules));
    rules_load_adaptive_room(loader, count);
    struct limit_nodes nodes = {
        .names = rules_borrow(loader, (count + 1) * sizeof(*nodes.names)),
        .texts = rules_borrow(loader, (count + 1) * sizeof(*nodes.texts)),
    };
    uint32_t each = rules_section_limit.count;
    struct rules_field *fields = rules_borrow(loader, (count + 1) * each * sizeof(*fields));
    /* Names first: `unless` tells a limit that stands later from one that is not there. */
    for (uint32_t i = 0; i < count && !loader->no_memory; i++) {
        struct rules_field *of = &fields[i * each];
        if (rules_section_find(loader, &rules_section_limit, node->items[i], of))
            load_name(loader, node->items[i], &of[RULES_LIMIT_NAME], i, &nodes);
        rules->rule_count++;
    }
    for (uint32_t i = 0; i < count && !loader->no_memory; i++)
        if (node->items[i]->kind == RULES_MAP)
            load_limit(loader, node->items[i], &fields[i * each], i, &nodes);
    if (!loader->no_memory)
        rules_load_loans(loader, fields, each, nodes.texts, nodes.text_count);
    if (loader->no_memory)
        return;
    for (uint32_t p = 0; p < rules->plan_count; p++) {
        for (uint32_t e = 0; e < loader->plans[p].entry_count; e++) {
            const struct rules_plan_entry *entry = &loader->plans[p].entries[e];
            if (!entry->used)
                report_unused(loader, entry->name, &nodes);
        }
    }
}
