/* SPDX-License-Identifier: Apache-2.0 */
/* see override.h and caller.h */
#include "feature/identity/rules/override.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/division.h"
#include "rules/load/numbers.h"
#include "rules/problems.h"
#include "rules/states.h"

/* One, while it is put together. */
struct making {
    const struct weir_rules *rules;
    const struct rules_rule *rule;
    struct weir_reason *reason;
    uint32_t count;
    struct weir_bytes texts[WEIR_RATES_MAX];
    struct weir_limit limits[WEIR_RATES_MAX];
};

/* The next of the pieces between commas, without the spaces around it; *more: others follow. */
static struct weir_bytes next_piece(struct weir_bytes *rest, bool *more)
{
    const char *comma = memchr(rest->data, ',', rest->size);
    struct weir_bytes piece = {rest->data, comma ? (size_t)(comma - rest->data) : rest->size};
    *more = comma;
    rest->data += piece.size + *more;
    rest->size -= piece.size + *more;
    while (piece.size > 0 && piece.data[0] == ' ') {
        piece.data++;
        piece.size--;
    }
    while (piece.size > 0 && piece.data[piece.size - 1] == ' ')
        piece.size--;
    return piece;
}

static const struct weir_limit *with_window(const struct rules_rates *rates, uint64_t window_ns)
{
    return rates->count > 0 && rates->limits->spec.window_ns == window_ns ? rates->limits : NULL;
}

/* The calendar of a unit: that of the limit itself, or of one of its plans. */
static int use_calendar(const struct making *making, uint8_t unit, struct weir_limit_spec *spec)
{
    const struct rules_rule *rule = making->rule;
    uint64_t window_ns = rules_unit_ns(unit);
    const struct weir_limit *of = with_window(&rule->rates, window_ns);
    for (uint32_t p = 0; !of && rule->plans && p < making->rules->plan_count; p++)
        of = with_window(&rule->plans[p], window_ns);
    if (!of) {
        snprintf(making->reason->text, sizeof(making->reason->text),
                 "the quota `%s` has no such period, and so no calendar for it", rule->name);
        return WEIR_ERR_RANGE;
    }
    spec->window_ns = window_ns;
    spec->calendar = of->spec.calendar;
    spec->bounds = of->spec.bounds;
    spec->bound_count = of->spec.bound_count;
    return 0;
}

static int compile(struct making *making, const struct weir_rate *rate, uint8_t unit,
                   struct weir_limit *limit)
{
    const struct rules_limit_template *limit_template = making->rule->limit_template;
    struct weir_limit_spec spec = limit_template->spec;
    int err;
    if (spec.algorithm == WEIR_QUOTA) {
        spec.rate = rate->count;
        spec.rollover = rules_rollover_of(&limit_template->rollover, rate->count);
        err = use_calendar(making, unit, &spec);
    } else {
        err = rules_numbers_use(rate, &spec, making->reason);
    }
    if (err < 0)
        return err;
    bool good = rules_numbers_compile(&spec, making->rules->shared, limit, making->reason) ==
                RULES_FAULT_NONE;
    return good ? 0 : WEIR_ERR_RANGE;
}

/* Two rates of which one never denies anything. */
static int compare(const struct making *making, struct weir_bytes text,
                   const struct weir_limit *limit)
{
    struct rules_quote first, second;
    for (uint32_t i = 0; i < making->count; i++) {
        struct weir_bytes other = making->texts[i];
        int useless = rules_useless(limit, &making->limits[i]);
        if (useless == 0)
            continue;
        rules_quote(&first, text.data, text.size);
        rules_quote(&second, other.data, other.size);
        snprintf(making->reason->text, sizeof(making->reason->text),
                 "beside %.80s the rate %.80s never denies anything; remove it",
                 useless == 1 ? second.text : first.text, useless == 1 ? first.text : second.text);
        return WEIR_ERR_RANGE;
    }
    return 0;
}

static int refuse(const struct making *making, int err, const char *why)
{
    snprintf(making->reason->text, sizeof(making->reason->text), "%s", why);
    return err;
}

/* One rate of the text. Returns 1 for a rate, 0 for `unlimited`. */
static int add_rate(struct making *making, struct weir_bytes text)
{
    struct weir_rate rate;
    uint8_t unit = 0, algorithm = making->rule->algorithm;
    bool single = algorithm == WEIR_QUOTA || algorithm == WEIR_CONCURRENCY;
    int err = rules_numbers_parse(algorithm == WEIR_LEAKY_QUEUE ? WEIR_LEAKY_BUCKET : algorithm,
                                  text, &rate, &unit, making->reason);
    if (err < 0)
        return err;
    if (rate.kind == WEIR_RATE_PLAN)
        return refuse(making, WEIR_ERR_SYNTAX, "`plan` is not allowed for one caller");
    if (rate.kind == WEIR_RATE_UNLIMITED)
        return 0;
    if (making->count == WEIR_RATES_MAX || (single && making->count > 0)) {
        return refuse(making, WEIR_ERR_RANGE,
                      single ? "a quota or a concurrency limit takes exactly one number"
                             : "more than 8 rates of one limit");
    }
    struct weir_limit *limit = &making->limits[making->count];
    err = compile(making, &rate, unit, limit);
    if (err == 0)
        err = compare(making, text, limit);
    if (err < 0)
        return err;
    making->texts[making->count++] = text;
    return 1;
}

static int read_text(struct making *making, struct weir_bytes text)
{
    bool more, first = true;
    do {
        int err = add_rate(making, next_piece(&text, &more));
        if (err < 0)
            return err;
        if (err == 0 && (more || !first))
            return refuse(making, WEIR_ERR_SYNTAX, "`unlimited` is not allowed in a list of rates");
        first = false;
    } while (more);
    return 0;
}

/* The layout of the block, in this order: each is aligned where the one before is. */
struct block {
    struct weir_override override;
    struct weir_limit limits[];
    /* struct weir_limit parts[];   where they are divided among nodes
     * uint32_t states[];
     * char names[];                of RULES_STATE_NAME_MAX bytes each */
};

static struct weir_override *make_block(const struct making *making)
{
    uint32_t count = making->count, states[WEIR_RATES_MAX];
    bool divided = rules_is_divided(making->rules, making->rule);
    struct rules_rates reference = rules_states_reference(making->rules, making->rule);
    size_t limits = (divided ? 2U : 1U) * count;
    struct block *block = malloc(sizeof(*block) + limits * sizeof(struct weir_limit) +
                                 count * (sizeof(uint32_t) + RULES_STATE_NAME_MAX));
    if (!block)
        return NULL;
    uint32_t *kept = (uint32_t *)(void *)&block->limits[limits];
    char *names = (char *)&kept[count];
    rules_states_of(&reference, making->limits, count, states);
    memcpy(kept, states, count * sizeof(*kept));
    for (uint32_t i = 0; i < count; i++) {
        struct weir_limit *limit = &block->limits[i];
        char *name = names + (size_t)i * RULES_STATE_NAME_MAX;
        rules_state_name(making->rule, states[i], name);
        *limit = making->limits[i];
        limit->name = name;
        if (divided) {
            struct weir_limit *part = &block->limits[count + i];
            weir_limit_divide(limit, making->rules->settings.store.nodes, part);
            limit->local = part;
        }
    }
    block->override =
        (struct weir_override){.rule = (uint32_t)(making->rule - making->rules->rules),
                               .count = count,
                               .limits = count > 0 ? block->limits : NULL,
                               .states = kept};
    return &block->override;
}

int rules_override_make(const struct weir_rules *rules, uint32_t rule, struct weir_bytes text,
                        struct weir_override **override, struct weir_reason *reason)
{
    struct making making;
    making.rules = rules;
    making.rule = &rules->rules[rule];
    making.reason = reason;
    making.count = 0;
    if (making.rule->global)
        return refuse(&making, WEIR_ERR_RANGE,
                      "the limit has `global`, and a caller's own rate cannot be divided among "
                      "regions; give the caller a plan");
    int err = read_text(&making, text);
    if (err < 0)
        return err;
    *override = make_block(&making);
    return *override ? 0 : WEIR_ERR_MEMORY;
}

int weir_rules_override(const struct weir_rules *rules, struct weir_bytes limit,
                        struct weir_bytes text, struct weir_override **override,
                        struct weir_reason *reason)
{
    struct rules_quote quote;
    int rule = rules_rule_find(rules, limit);
    if (rule < 0 || !rules->rules[rule].limit_template) {
        snprintf(reason->text, sizeof(reason->text), "no limit is called %.120s",
                 rules_quote(&quote, limit.data, limit.size));
        return WEIR_ERR_NOT_FOUND;
    }
    return rules_override_make(rules, (uint32_t)rule, text, override, reason);
}

void rules_count_overrides(struct weir_rules *rules)
{
    const struct rules_keys *keys = &rules->keys;
    /* Callers in Redis may have overrides that are not known yet. */
    bool in_redis = rules->settings.identities.redis.url;
    for (uint32_t i = 0; i < rules->rule_count && in_redis; i++)
        rules->rules[i].personal = true;
    for (uint32_t i = 0; i < keys->count && keys->set_count > 0; i++) {
        uint32_t set = keys->owners[i].set;
        uint32_t at = set > 0 ? keys->set_ends[set - 1] : 0, end = keys->set_ends[set];
        for (; at < end; at++) {
            struct rules_rule *rule = &rules->rules[keys->list[at].rule];
            rule->personal = true;
            rule->own_count++;
        }
    }
}
