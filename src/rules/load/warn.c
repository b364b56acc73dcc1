/* SPDX-License-Identifier: Apache-2.0 */
/* `warn_at` of a limit, and the limits of the records of warnings; see loader.h and charge/warn.h
 */
#include "core/bytes.h"
#include "rules/load/loader.h"

#define NS_PER_S UINT64_C(1000000000)
#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS (24 * HOUR_NS)

#define EXAMPLE 80

/* A record must outlive its period, and not by much: it takes a place in the store. A calendar's
 * periods are longer than their number: a day has up to 26 hours, a month (30 days) up to 31 days
 * and a change of the clock. */
static const uint64_t lives_ns[RULES_WARNED] = {
    NS_PER_S,     10 * NS_PER_S, 60 * NS_PER_S, 600 * NS_PER_S,     2 * HOUR_NS,
    27 * HOUR_NS, 8 * DAY_NS,    32 * DAY_NS,   WEIR_WINDOW_MAX_NS,
};

/* Puts a threshold where it belongs; false: it is there already. */
static bool insert(struct weir_warn_at *at, uint8_t percent)
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
static const char *refusal(const struct rules_rule *rule, const struct rules_node *rate)
{
    static const char unlimited[] = "unlimited";
    if (rule->algorithm == WEIR_CONCURRENCY)
        return "what is in flight is not used up: `warn_at` does not go with concurrency";
    if (rule->algorithm == WEIR_LEAKY_QUEUE) {
        return "a queue holds requests back, nothing of it is used up: `warn_at` does not go with "
               "`queue`";
    }
    if (rate != NULL && rate->kind == RULES_SCALAR &&
        weir_bytes_are((struct weir_bytes){rate->text, rate->size}, unlimited))
        return "an unlimited rate has nothing to warn of: leave `warn_at` out";
    return NULL;
}

void rules_load_warn(struct rules_loader *loader, const struct rules_field *fields,
                     struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_WARN_AT];
    struct rules_items items = rules_items_of(&field->value);
    const char *why = refusal(rule, fields[RULES_LIMIT_RATE].value);
    uint32_t percent = 0;
    if (why != NULL) {
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
        if (rules_read_percent(loader, items.items[i], "warn_at", 1, 100, EXAMPLE, &percent) &&
            !insert(&rule->warn_at, (uint8_t)percent))
            rules_problem(loader, items.items[i], "`warn_at` has %u%% twice", percent);
    loader->rules->warns |= rule->warn_at.count > 0 && !(rule->flags & WEIR_CHECK_SHADOW);
}

int rules_make_warned(struct weir_rules *rules)
{
    int err = 0;
    for (int i = 0; i < RULES_WARNED && err == 0; i++) {
        const struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                             .rate = WEIR_WARNED_COST - 1,
                                             .window_ns = lives_ns[i],
                                             .burst = WEIR_WARNED_COST + 1};
        err = weir_limit_init(&rules->warned[i], &spec, NULL);
        rules->warned[i].name = RULES_WARNED_NAME;
        rules->warned[i].yields = true;
    }
    return err;
}

const struct weir_limit *weir_rules_warned_limit(const struct weir_rules *rules, uint64_t window_ns)
{
    int i = 0;
    while (i < RULES_WARNED - 1 && lives_ns[i] < window_ns)
        i++;
    return &rules->warned[i];
}

const struct weir_warn_at *weir_rules_warn_at(const struct weir_rules *rules, uint32_t rule)
{
    static const struct weir_warn_at none = {0, {0}};
    const struct rules_rule *r = &rules->rules[rule];
    return r->flags & WEIR_CHECK_SHADOW ? &none : &r->warn_at;
}

bool weir_rules_warns(const struct weir_rules *rules)
{
    return rules->warns;
}
