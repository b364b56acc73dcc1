/* SPDX-License-Identifier: Apache-2.0 */
/* see warn.h */
#include "feature/webhook/rules/warn.h"

#include "rules/compiled.h"

#define NS_PER_S UINT64_C(1000000000)
#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS (24 * HOUR_NS)

/* A record must outlive its period, and not by much: it takes a place in the store. A calendar's
 * periods are longer than their number: a day has up to 26 hours, a month (30 days) up to 31 days
 * and a change of the clock. */
static const uint64_t lives_ns[RULES_WARNED] = {
    NS_PER_S,     10 * NS_PER_S, 60 * NS_PER_S, 600 * NS_PER_S,     2 * HOUR_NS,
    27 * HOUR_NS, 8 * DAY_NS,    32 * DAY_NS,   WEIR_WINDOW_MAX_NS,
};

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
