/* SPDX-License-Identifier: Apache-2.0 */
/* see plan.h */
#include "feature/envoy/rules/plan.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/window.h"
#include "feature/envoy/rules/compiled.h"
#include "feature/envoy/rules/key.h"
#include "feature/envoy/rules/match.h"
#include "feature/envoy/rules/respond.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* The most bytes that "key_value" of one entry takes. */
static size_t longest_entry(const struct weir_envoy_request *request)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < request->descriptor_count; i++) {
        const struct weir_envoy_descriptor *of = &request->descriptors[i];
        for (uint32_t j = 0; j < of->entry_count; j++) {
            size_t size = of->entries[j].key.size + 1 + of->entries[j].value.size;
            longest = size > longest ? size : longest;
        }
    }
    return longest;
}

size_t weir_envoy_plan_size(const struct weir_envoy *envoy,
                            const struct weir_envoy_request *request)
{
    size_t count = request->descriptor_count;
    size_t parts = count * weir_envoy_limits_max(envoy);
    size_t size = ENVOY_ALIGNED(count * sizeof(struct weir_envoy_item)) +
                  ENVOY_ALIGNED(parts * sizeof(struct weir_envoy_part)) +
                  ENVOY_ALIGNED(longest_entry(request)) +
                  (envoy->options.shared ? parts * ENVOY_KEY_TEXT_MAX : 0);
    size += envoy_stat_size(envoy, request);
    if (envoy->shares)
        for (uint32_t i = 0; i < request->descriptor_count; i++)
            size += ENVOY_ALIGNED(request->descriptors[i].entry_count * sizeof(struct weir_bytes));
    for (uint32_t i = 0; envoy->options.redis_compat && i < request->descriptor_count; i++)
        size += ENVOY_ALIGNED(envoy_counter_size(envoy, request, &request->descriptors[i]));
    if (envoy->replaces)
        size += ENVOY_ALIGNED(envoy->name_count / 8 + 1);
    return size + envoy_respond_size(envoy, request);
}

/* --- Which limit ------------------------------------------------------------------------------ */

static uint64_t hits_of(const struct weir_envoy_request *request,
                        const struct weir_envoy_descriptor *of)
{
    if (of->has_hits_addend)
        return of->hits_addend;
    return request->hits_addend > 0 ? request->hits_addend : 1;
}

/* The patterns that stand for values, where a level shares its threshold. */
static const struct weir_bytes *patterns_of(struct weir_envoy_plan *plan,
                                            const struct weir_envoy_descriptor *of,
                                            const struct envoy_walk *walk)
{
    struct weir_bytes *patterns = NULL;
    for (uint32_t i = 0; i < walk->steps; i++) {
        const struct envoy_step *at = &walk->path[i];
        if (!at->by_pattern || !at->node->share_threshold)
            continue;
        if (!patterns) {
            patterns = envoy_plan_alloc(plan, of->entry_count * sizeof(*patterns));
            memset(patterns, 0, of->entry_count * sizeof(*patterns));
        }
        patterns[i] = envoy_pattern_value(at->node, of->entries[i].key);
    }
    return patterns;
}

static int plan_override(struct weir_envoy_plan *plan, const struct weir_envoy_descriptor *of,
                         struct weir_envoy_item *item, weir_envoy_override_fn override,
                         void *context, struct weir_reason *reason)
{
    uint32_t seconds = envoy_unit_seconds(of->unit);
    if (seconds == 0) {
        snprintf(reason->text, sizeof(reason->text),
                 "descriptor %u: its limit has an unknown unit of time: %u",
                 (unsigned)(item - plan->items), of->unit);
        return WEIR_ERR_RANGE;
    }
    item->override = override(context, of->requests_per_unit, seconds, reason);
    item->stat = envoy_override_stat(plan, of);
    plan->overrides = true;
    return item->override ? 0 : WEIR_ERR_FULL;
}

static void plan_rule(struct weir_envoy_plan *plan, const struct weir_envoy_descriptor *of,
                      uint32_t domain, char *room, struct weir_envoy_item *item)
{
    struct envoy_walk walk;
    envoy_walk(plan->envoy, domain, of, room, &walk);
    if (!walk.rule)
        return;
    item->rule = walk.rule;
    item->unlimited = walk.rule->unlimited;
    item->patterns = plan->envoy->shares ? patterns_of(plan, of, &walk) : NULL;
    item->stat = envoy_stat(plan, of, &walk, &item->fixed_stat);
}

/* Takes away the limits whose names others replace. */
static void plan_replaces(struct weir_envoy_plan *plan)
{
    size_t size = plan->envoy->name_count / 8 + 1;
    uint32_t count = plan->request->descriptor_count;
    uint8_t *replaced = envoy_plan_alloc(plan, size);
    memset(replaced, 0, size);
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_envoy_rule *rule = plan->items[i].rule;
        for (uint32_t j = 0; rule && j < rule->replace_count; j++)
            replaced[rule->replaces[j] / 8] |= (uint8_t)(1u << rule->replaces[j] % 8);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct weir_envoy_item *item = &plan->items[i];
        bool named = item->rule && !item->unlimited && item->rule->name_number != RULES_NONE;
        uint32_t name = named ? item->rule->name_number : 0;
        if (named && (replaced[name / 8] >> name % 8 & 1) != 0)
            *item = (struct weir_envoy_item){.hits = item->hits};
    }
}

/* --- Parts ------------------------------------------------------------------------------------ */

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Whether an item's limit is counted with the original, in its own keys: a window as it has it. */
static bool is_counter(const struct weir_envoy_plan *plan, const struct weir_envoy_item *item)
{
    const struct weir_envoy_rule *rule = item->rule;
    if (!plan->envoy->options.redis_compat)
        return false;
    if (!rule)
        return item->override;
    const struct weir_limit_spec *spec = &rule->limits->limit.spec;
    return rule->limit_count == 1 && rule->charge == ENVOY_CHARGE_ALWAYS &&
           spec->algorithm == WEIR_FIXED_WINDOW &&
           spec->window_ns == envoy_unit_seconds(rule->unit) * NS_PER_SECOND;
}

static void add_part(struct weir_envoy_plan *plan, uint32_t at, const struct weir_limit *limit,
                     uint32_t index)
{
    const struct weir_envoy_item *item = &plan->items[at];
    const struct weir_envoy_rule *rule = item->rule;
    bool negative = plan->request->descriptors[at].is_negative_hits;
    uint8_t charge = rule ? rule->charge : envoy_default_charge(&plan->envoy->options);
    struct weir_envoy_part *part = &plan->parts[plan->part_count++];
    *part = (struct weir_envoy_part){
        .limit = limit,
        .cost = multiply(item->hits, rule ? rule->cost : 1),
        .item = at,
        .op = negative ? WEIR_OP_REFUND : WEIR_OP_DECIDE,
        .on_store_error = rule ? rule->on_store_error : plan->envoy->options.on_store_error,
        .index = (uint8_t)index,
    };
    if (rule && rule->shadow)
        part->flags |= WEIR_CHECK_SHADOW;
    if (charge == ENVOY_CHARGE_ALWAYS)
        part->flags |= WEIR_CHECK_CHARGE_ON_DENY;
    if (plan->envoy->options.leased)
        part->flags |= WEIR_CHECK_LEASED;
    if (is_counter(plan, item))
        part->flags |= WEIR_CHECK_COUNTER;
    plan->together |= charge == ENVOY_CHARGE_IF_ALL && !negative;
}

/* Those of one kind, in the order of the descriptors. */
static void add_parts(struct weir_envoy_plan *plan, bool negative, bool counter)
{
    for (uint32_t i = 0; i < plan->request->descriptor_count; i++) {
        struct weir_envoy_item *item = &plan->items[i];
        uint32_t limits = item->rule ? item->rule->limit_count : 0;
        bool wanted = plan->request->descriptors[i].is_negative_hits == negative &&
                      (limits > 0 || item->override) && is_counter(plan, item) == counter;
        if (!wanted)
            continue;
        item->part = plan->part_count;
        if (item->override)
            add_part(plan, i, item->override, 0);
        for (uint32_t j = 0; j < limits; j++)
            add_part(plan, i, &item->rule->limits[j].limit, j);
        item->parts = plan->part_count - item->part;
    }
}

static bool same_entries(const struct weir_envoy_descriptor *a,
                         const struct weir_envoy_descriptor *b)
{
    if (a->entry_count != b->entry_count)
        return false;
    for (uint32_t i = 0; i < a->entry_count; i++)
        if (!weir_bytes_equal(a->entries[i].key, b->entries[i].key) ||
            !weir_bytes_equal(a->entries[i].value, b->entries[i].value))
            return false;
    return true;
}

/* Whether part `at` counts, by another limit, in a state that one of first..at has too: the two
 * meet in it where one is an override. A call to a remote store has one limit for each state. */
static bool clashes(const struct weir_envoy_plan *plan, uint32_t first, uint32_t at)
{
    const struct weir_envoy_part *part = &plan->parts[at];
    const struct weir_envoy_descriptor *of = plan->request->descriptors;
    for (uint32_t i = first; i < at; i++) {
        const struct weir_envoy_part *other = &plan->parts[i];
        bool override = plan->items[part->item].override || plan->items[other->item].override;
        if (override && other->limit != part->limit &&
            same_entries(&of[other->item], &of[part->item]))
            return true;
    }
    return false;
}

/* Where the decision of part `first` ends: what it holds is decided, or given back; of weir's own
 * states, or of the original's. */
static uint32_t decision_end(const struct weir_envoy_plan *plan, uint32_t first)
{
    const struct weir_envoy_part *of = &plan->parts[first];
    bool may_clash = plan->overrides && plan->envoy->options.shared;
    uint32_t end = first + 1;
    while (end < plan->part_count && end - first < WEIR_CHECKS_MAX &&
           plan->parts[end].op == of->op &&
           ((plan->parts[end].flags ^ of->flags) & WEIR_CHECK_COUNTER) == 0 &&
           !(may_clash && clashes(plan, first, end)))
        end++;
    return end;
}

static bool is_together(const struct weir_envoy_plan *plan, uint32_t first)
{
    return plan->together && plan->parts[first].op == WEIR_OP_DECIDE;
}

/* Part `at` begins a decision of its own, though what is decided belongs together. */
static int refuse_apart(const struct weir_envoy_plan *plan, uint32_t at, struct weir_reason *reason)
{
    if (at == WEIR_CHECKS_MAX) {
        snprintf(reason->text, sizeof(reason->text),
                 "more than %d limits that are charged together", WEIR_CHECKS_MAX);
        return WEIR_ERR_TOO_LARGE;
    }
    snprintf(reason->text, sizeof(reason->text),
             "descriptor %u: another one that is the same has another limit: they count in one "
             "state and cannot be charged together",
             (unsigned)plan->parts[at].item);
    return WEIR_ERR_RANGE;
}

/* Counts the decisions. Errors: those of refuse_apart. */
static int count_decisions(struct weir_envoy_plan *plan, struct weir_reason *reason)
{
    for (uint32_t i = 0; i < plan->part_count; i = decision_end(plan, i)) {
        if (i > 0 && is_together(plan, i))
            return refuse_apart(plan, i, reason);
        plan->decisions++;
        plan->refunds = plan->refunds || plan->parts[i].op == WEIR_OP_REFUND;
    }
    return 0;
}

static int refuse(struct weir_reason *reason, int err, const char *text)
{
    snprintf(reason->text, sizeof(reason->text), "%s", text);
    return err;
}

int weir_envoy_request_check(const struct weir_envoy_request *request, struct weir_reason *reason)
{
    if (request->domain.size == 0)
        return refuse(reason, WEIR_ERR_SYNTAX, "rate limit domain must not be empty");
    if (request->descriptor_count == 0)
        return refuse(reason, WEIR_ERR_SYNTAX, "rate limit descriptor list must not be empty");
    if (request->descriptor_count > WEIR_ENVOY_DESCRIPTORS_MAX) {
        snprintf(reason->text, sizeof(reason->text), "more than %d descriptors",
                 WEIR_ENVOY_DESCRIPTORS_MAX);
        return WEIR_ERR_TOO_LARGE;
    }
    return 0;
}

int weir_envoy_plan_make(struct weir_envoy_plan *plan, const struct weir_envoy *envoy,
                         const struct weir_envoy_request *request, void *memory,
                         weir_envoy_override_fn override, void *context, struct weir_reason *reason)
{
    int err = 0;
    uint32_t count = request->descriptor_count;
    *plan = (struct weir_envoy_plan){.envoy = envoy, .request = request, .memory = memory};
    plan->items = envoy_plan_alloc(plan, count * sizeof(*plan->items));
    plan->parts =
        envoy_plan_alloc(plan, count * weir_envoy_limits_max(envoy) * sizeof(*plan->parts));
    char *room = envoy_plan_alloc(plan, longest_entry(request));
    struct weir_bytes name = request->domain;
    uint32_t domain = rules_string_map_find(
        &envoy->domains, 0, rules_text_hash(name.data, name.size), name.data, name.size);
    plan->unknown_domain = domain == RULES_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_envoy_descriptor *of = &request->descriptors[i];
        struct weir_envoy_item *item = &plan->items[i];
        *item = (struct weir_envoy_item){.hits = hits_of(request, of)};
        if (domain == RULES_NONE)
            continue;
        if (!of->has_limit) {
            plan_rule(plan, of, domain, room, item);
            continue;
        }
        err = plan_override(plan, of, item, override, context, reason);
        if (err < 0)
            return err;
    }
    if (envoy->replaces)
        plan_replaces(plan);
    for (unsigned kind = 0; kind < (envoy->options.redis_compat ? 4 : 2); kind++)
        add_parts(plan, kind % 2 == 1, kind >= 2);
    return count_decisions(plan, reason);
}

/* --- Decisions -------------------------------------------------------------------------------- */

static uint8_t failure_of(uint8_t on_store_error)
{
    static const uint8_t failures[] = {
        [WEIR_ENVOY_STORE_FAIL] = WEIR_FAIL_CLOSED, /* weir_envoy_respond says that it failed */
        [WEIR_ENVOY_STORE_LOCAL] = WEIR_FAIL_LOCAL,
        [WEIR_ENVOY_STORE_OPEN] = WEIR_FAIL_OPEN,
        [WEIR_ENVOY_STORE_CLOSED] = WEIR_FAIL_CLOSED,
    };
    return failures[on_store_error];
}

long weir_envoy_plan_fill(struct weir_envoy_plan *plan, struct weir_decision *decision,
                          const uint64_t secret[2], uint64_t now_ns)
{
    uint32_t first = plan->filled;
    if (first == plan->part_count)
        return -1;
    uint32_t end = decision_end(plan, first);
    decision->op = plan->parts[first].op;
    decision->policy = is_together(plan, first) ? WEIR_POLICY_ALL : WEIR_POLICY_EACH;
    decision->charged_at_ns = now_ns;
    decision->count = (uint16_t)(end - first);
    for (uint32_t i = first; i < end; i++) {
        const struct weir_envoy_part *part = &plan->parts[i];
        struct weir_check *check = &decision->checks[i - first];
        *check = (struct weir_check){.limit = part->limit,
                                     .cost = part->cost,
                                     .rule = UINT32_MAX,
                                     .flags = part->flags,
                                     .on_store_error = failure_of(part->on_store_error)};
        envoy_key(plan, part, secret, check);
        if ((part->flags & WEIR_CHECK_COUNTER) != 0)
            envoy_counter_key(plan, part, now_ns / NS_PER_SECOND, check);
    }
    plan->filled = end;
    return (long)first;
}

/* What of its limit a state has used: exactly for a fixed window, which may be over; of others what
 * does not remain. */
static uint64_t used_of(const struct weir_decision *decision, uint16_t i,
                        const struct weir_report *report)
{
    const struct weir_limit *limit = decision->checks[i].limit;
    const struct weir_outcome *outcome = &decision->outcomes[i];
    if (limit->spec.algorithm == WEIR_FIXED_WINDOW && !outcome->reported) {
        struct window_view view;
        window_view(limit, &outcome->cell, decision->now_ns, &view);
        return view.current;
    }
    return report->limit > report->remaining ? report->limit - report->remaining : 0;
}

void weir_envoy_plan_take(struct weir_envoy_plan *plan, long first,
                          const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_envoy_part *part = &plan->parts[first + i];
        const struct weir_outcome *outcome = &decision->outcomes[i];
        weir_decision_report(decision, i, &part->report);
        uint64_t after = used_of(decision, i, &part->report);
        bool charged = outcome->charged && part->op == WEIR_OP_DECIDE;
        part->used = charged ? after - (part->cost < after ? part->cost : after) : after;
        part->verdict = outcome->verdict;
        part->error = decision->error;
        part->now_ns = decision->now_ns;
    }
}
