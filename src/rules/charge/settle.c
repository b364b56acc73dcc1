/* SPDX-License-Identifier: Apache-2.0 */
/* see settle.h */
#include "rules/charge/settle.h"

#include <string.h>

#include "core/text/siphash.h"
#include "rules/compiled.h"
#include "rules/states.h"

static uint64_t hash_of(const void *data, size_t size)
{
    static const uint64_t public[2] = {0, 0};
    uint64_t hash[2];
    weir_siphash128(public, data, size, hash);
    return hash[0];
}

static uint64_t hash_name(const struct weir_limit *limit)
{
    return hash_of(limit->name, strlen(limit->name));
}

static uint32_t hash_exact(const struct weir_limit_spec *spec)
{
    const uint64_t numbers[] = {
        (uint64_t)spec->algorithm, spec->rate,     spec->window_ns, spec->burst, spec->segments,
        (uint64_t)spec->strict,    spec->rollover, spec->calendar};
    return (uint32_t)hash_of(numbers, sizeof(numbers));
}

/* A record must live until its reservation can neither be settled nor released, and then goes, for
 * it takes memory. The time beyond the life is for the maker, whose store may not answer for a
 * while. Few classes, since each is a limit that the store knows. */
#define SECOND_NS UINT64_C(1000000000)
static const struct {
    uint64_t life_ns, record_ns;
} settled_classes[WEIR_SETTLED_CLASSES] = {
    {60 * SECOND_NS, 600 * SECOND_NS},
    {600 * SECOND_NS, 1800 * SECOND_NS},
    {WEIR_RESERVATION_LIFE_MAX_NS, 2 * WEIR_RESERVATION_LIFE_MAX_NS},
};
/* A token's life is longer than the one that was asked for, by the time its decision took. */
#define LATE_NS (10 * SECOND_NS)
/* What the clocks of one store's servers may differ by, with the time that a decision takes. */
#define MARGIN_NS (60 * SECOND_NS)

static uint8_t settled_class(uint64_t life_ns)
{
    uint8_t i = 0;
    while (i < WEIR_SETTLED_CLASSES - 1 && life_ns > settled_classes[i].life_ns + LATE_NS)
        i++;
    return i;
}

uint64_t weir_settled_grace_ns(uint64_t life_ns)
{
    uint64_t record_ns = settled_classes[settled_class(life_ns)].record_ns - MARGIN_NS;
    return life_ns < record_ns ? record_ns - life_ns : 0;
}

const struct weir_limit *weir_rules_settled_limit(const struct weir_rules *rules, uint64_t life_ns)
{
    return &rules->settled[settled_class(life_ns)];
}

int rules_make_settled(struct weir_rules *rules)
{
    int err = 0;
    for (int i = 0; i < WEIR_SETTLED_CLASSES && err == 0; i++) {
        const struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                             .rate = 1,
                                             .window_ns = settled_classes[i].record_ns,
                                             .burst = 1};
        err = weir_limit_init(&rules->settled[i], &spec, NULL);
    }
    return err;
}

void weir_rules_mark(const struct weir_check *check, struct weir_limit_mark *mark)
{
    mark->name = hash_name(check->limit);
    mark->exact = hash_exact(&check->limit->spec);
    mark->kind = rules_kind_hash(&check->limit->spec);
}

/* How well a limit fits a mark: 2 with all its numbers, 1 if its states keep their meaning. */
static int fits(const struct weir_limit *limit, const struct weir_limit_mark *mark)
{
    if (hash_exact(&limit->spec) == mark->exact)
        return 2;
    return rules_kind_hash(&limit->spec) == mark->kind ? 1 : 0;
}

/* Tries all rates of a rule, or of one of its plans; `caps` may be NULL. Returns how well the best
 * fits. */
static int try_rates(const struct rules_rates *rates, const struct rules_rates *caps,
                     const struct weir_limit_mark *mark, bool local, int best,
                     struct weir_settling *settling)
{
    uint32_t count = rates->abroad ? 2U * rates->count : rates->count;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = n % rates->count;
        const struct weir_limit *limit = n < rates->count ? &rates->limits[i] : &rates->abroad[i];
        const struct weir_limit *at = local && limit->local ? limit->local : limit;
        int fit = hash_name(limit) == mark->name ? fits(at, mark) : 0;
        if (fit > best) {
            settling->limit = at;
            settling->cap = caps ? &caps->limits[i] : NULL;
            best = fit;
        }
    }
    return best;
}

/* The cap of what is given back to callers with rates of their own: the rule's, of the state that
 * they count in, else the first. */
static const struct weir_limit *own_cap(const struct weir_rules *rules,
                                        const struct rules_rule *rule, uint32_t state)
{
    const struct rules_refund *refund = rule->refund;
    struct rules_rates caps = {.limits = NULL};
    if (refund)
        caps = refund->caps;
    for (uint32_t p = 0; refund && refund->plans && p < rules->plan_count; p++)
        caps = caps.count == 0 ? refund->plans[p] : caps;
    return caps.count == 0 ? NULL : &caps.limits[state < caps.count ? state : 0];
}

/* The rates that callers of the keys file have instead. */
static int try_overrides(const struct weir_rules *rules, uint32_t number,
                         const struct weir_limit_mark *mark, bool local, int best,
                         struct weir_settling *settling)
{
    const struct rules_keys *keys = &rules->keys;
    uint32_t low = 0, high = keys->override_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (keys->overrides[middle]->rule < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < keys->override_count && keys->overrides[low]->rule == number; low++) {
        const struct weir_override *own = keys->overrides[low];
        for (uint32_t i = 0; i < own->count && best < 2; i++) {
            struct rules_rates rate = {.limits = &own->limits[i], .count = 1};
            int found = try_rates(&rate, NULL, mark, local, best, settling);
            if (found > best) {
                settling->cap = own_cap(rules, &rules->rules[number], own->states[i]);
                best = found;
            }
        }
    }
    return best;
}

static int try_rule(const struct weir_rules *rules, uint32_t number,
                    const struct weir_limit_mark *mark, bool local, int best,
                    struct weir_settling *settling)
{
    const struct rules_rule *rule = &rules->rules[number];
    const struct rules_refund *refund = rule->refund;
    int found = try_rates(&rule->rates, refund ? &refund->caps : NULL, mark, local, best, settling);
    for (uint32_t p = 0; rule->plans && p < rules->plan_count; p++) {
        found = try_rates(&rule->plans[p], refund ? &refund->plans[p] : NULL, mark, local, found,
                          settling);
    }
    struct rules_rates top_up = {.limits = rules->top_ups ? rules->top_ups[number] : NULL};
    top_up.count = top_up.limits != NULL;
    int sold = try_rates(&top_up, NULL, mark, local, found, settling);
    if (found < 2 && sold == found && rule->own_count > 0)
        found = try_overrides(rules, number, mark, local, found, settling);
    if (sold > found) { /* it owes nothing: units are bought before they are used */
        settling->cap = own_cap(rules, rule, 0);
        settling->rule = number;
        settling->floor = 1;
        return sold;
    }
    if (found > best) {
        settling->rule = number;
        settling->floor = rule->floor;
    }
    return found;
}

bool weir_rules_find_marked(const struct weir_rules *rules, const struct weir_limit_mark *mark,
                            uint32_t rule, bool local, struct weir_settling *settling)
{
    int best = 0;
    if (rule < rules->rule_count)
        best = try_rule(rules, rule, mark, local, best, settling);
    for (uint32_t i = 0; i < rules->rule_count && best < 2; i++)
        best = try_rule(rules, i, mark, local, best, settling);
    return best > 0;
}

bool weir_rules_gives_back(const struct weir_rules *rules, uint32_t rule, uint32_t status)
{
    const struct rules_refund *refund = rules->rules[rule].refund;
    uint32_t bit = status - WEIR_STATUS_MIN;
    return refund && status >= WEIR_STATUS_MIN && status <= WEIR_STATUS_MAX &&
           (refund->statuses[bit / 8] >> bit % 8 & 1) != 0;
}
