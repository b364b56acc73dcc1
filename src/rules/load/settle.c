/* SPDX-License-Identifier: Apache-2.0 */
/* `refund_on`, `refund_cap` and `debt` of a limit; see loader.h and charge/settle.h */
#include <stdio.h>
#include <string.h>

#include "rules/charge/settle.h"
#include "rules/load/loader.h"

#define CAP_DEFAULT 10   /* percent of the rate, per window */
#define DEBT_DEFAULT 100 /* percent of the capacity */
#define DEBT_MOST 1000

/* "404" or "5xx". */
static bool read_status(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_refund *refund)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "refund_on", &text))
        return false;
    bool three = text.size == 3 && text.data[0] >= '1' && text.data[0] <= '5';
    bool all = three && text.data[1] == 'x' && text.data[2] == 'x';
    bool one = three && text.data[1] >= '0' && text.data[1] <= '9' && text.data[2] >= '0' &&
               text.data[2] <= '9';
    if (!all && !one) {
        rules_problem(loader, node, "`refund_on` takes statuses: `404`, or `5xx` for a class");
        return false;
    }
    uint32_t first = (uint32_t)(text.data[0] - '1') * 100;
    first += one ? (uint32_t)(text.data[1] - '0') * 10 + (uint32_t)(text.data[2] - '0') : 0;
    for (uint32_t bit = first; bit < first + (all ? 100 : 1); bit++)
        refund->statuses[bit / 8] |= (uint8_t)(1 << bit % 8);
    return true;
}

/* What may be given back per window: the cap as a limit of its own. */
static void make_cap(struct rules_loader *loader, const struct rules_node *node, uint32_t percent,
                     const struct weir_limit *limit, struct weir_limit *cap)
{
    static const char suffix[] = "~refunds"; /* no name of a limit has a '~' */
    char name[RULES_NAME_MAX + 8 + sizeof(suffix)];
    int size = snprintf(name, sizeof(name), "%s%s", limit->name, suffix);
    const struct weir_limit_spec *of = &limit->spec;
    uint64_t rate = of->rate / 100 * percent + of->rate % 100 * percent / 100;
    const struct weir_limit_spec spec = {.algorithm = WEIR_SLIDING_WINDOW,
                                         .rate = rate < WEIR_RATE_MAX ? rate : WEIR_RATE_MAX,
                                         .window_ns = of->window_ns,
                                         .strict = true};
    struct weir_reason reason = {{0}};
    if (loader->wrong > 0)
        return;
    if (rate == 0 && of->rate > 0) {
        rules_problem(loader, node,
                      "%u%% of a rate of %llu is less than one request: nothing would ever be "
                      "given back; raise `refund_cap`",
                      percent, (unsigned long long)of->rate);
        return;
    }
    if (weir_limit_init(cap, &spec, &reason) < 0)
        rules_problem(loader, node, "refund_cap: %s", reason.text);
    cap->name = rules_keep_text(loader, name, (size_t)size);
}

static void make_caps(struct rules_loader *loader, const struct rules_node *node, uint32_t percent,
                      const struct rules_rates *rates, struct rules_rates *caps)
{
    caps->count = rates->count;
    caps->limits =
        rates->count > 0 ? rules_keep(loader, rates->count * sizeof(*caps->limits)) : NULL;
    for (uint8_t i = 0; i < rates->count && caps->limits != NULL && rates->limits != NULL; i++)
        make_cap(loader, node, percent, &rates->limits[i], &caps->limits[i]);
}

static void make_all_caps(struct rules_loader *loader, const struct rules_node *node,
                          uint32_t percent, const struct rules_rule *rule,
                          struct rules_refund *refund)
{
    make_caps(loader, node, percent, &rule->rates, &refund->caps);
    if (rule->plans == NULL)
        return;
    refund->plans = rules_keep(loader, (loader->rules->plan_count + 1) * sizeof(*refund->plans));
    for (uint32_t p = 0; p < loader->rules->plan_count && refund->plans != NULL; p++)
        make_caps(loader, node, percent, &rule->plans[p], &refund->plans[p]);
}

static void load_refund(struct rules_loader *loader, const struct rules_field *on,
                        const struct rules_field *cap, struct rules_rule *rule)
{
    uint32_t percent = CAP_DEFAULT;
    struct rules_items items = rules_items_of(&on->value);
    if (rule->algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, on->key,
                      "what is in flight is ended, not given back: `refund_on` "
                      "does not go with concurrency");
        return;
    }
    if (on->value->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, on->value, "`refund_on` must be a status or a list: [5xx, 404]");
        return;
    }
    struct rules_refund *refund = rules_keep(loader, sizeof(*refund));
    bool good = refund != NULL;
    for (uint32_t i = 0; i < items.count && refund != NULL; i++)
        good = read_status(loader, items.items[i], refund) && good;
    if (cap->value != NULL) {
        good =
            rules_read_percent(loader, cap->value, "refund_cap", 1, 100, CAP_DEFAULT, &percent) &&
            good;
    }
    if (good)
        make_all_caps(loader, cap->value != NULL ? cap->value : on->value, percent, rule, refund);
    rule->refund = refund;
}

void rules_load_settle(struct rules_loader *loader, const struct rules_field *fields,
                       struct rules_rule *rule)
{
    const struct rules_field *on = &fields[RULES_LIMIT_REFUND_ON];
    const struct rules_field *cap = &fields[RULES_LIMIT_REFUND_CAP];
    const struct rules_node *debt = fields[RULES_LIMIT_DEBT].value;
    uint32_t percent = DEBT_DEFAULT;
    if (on->value != NULL)
        load_refund(loader, on, cap, rule);
    else if (cap->value != NULL)
        rules_problem(loader, cap->key, "`refund_cap` goes with `refund_on`");
    if (debt != NULL)
        rules_read_percent(loader, debt, "debt", 0, DEBT_MOST, DEBT_DEFAULT, &percent);
    rule->floor = (uint16_t)(percent + 1);
}
