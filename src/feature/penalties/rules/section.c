/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/penalties/rules/section.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "rules/load/numbers.h"

#define NS_PER_S UINT64_C(1000000000)
#define DAY_NS (24 * 3600 * NS_PER_S)
#define STRIKES_MAX (WEIR_LOG_MAX - 1) /* its limit has room for one more */
#define TERM_MIN_NS NS_PER_S           /* a shorter one ends before the next request sees it */
#define TERM_MAX_NS (3660 * DAY_NS)    /* ten years */

enum { NAME, KEY, STRIKES, FOR, OUTCOMES, LADDER };

#define AT(member) RULES_AT(struct rules_penalty, member)
static const struct rules_keyword keywords[] = {
    [NAME] = {"name", RULES_NAME, .flags = RULES_REQUIRED, .doc = "1 to 64 of `a-z 0-9 . _ -`"},
    [KEY] = {"key", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
             .doc = "whom it is held against: one attribute of `by` of `standing`"},
    [STRIKES] = {"strikes", RULES_RATE, .flags = RULES_REQUIRED,
                 .doc = "how many [strikes](penalties.md#what-is-a-strike) are free: `5/h`"},
    [FOR] = {"for", RULES_TEXT, .many = RULES_SEVERAL, .absent = "all limits",
             .doc = "limits whose denials are strikes"},
    [OUTCOMES] = {"outcomes", RULES_STATUS, .many = RULES_SEVERAL, .absent = "none",
                  .doc = "[reported statuses](penalties.md#reported-outcomes) that are strikes"},
    [LADDER] = {"ladder", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
                .doc = "the [steps](penalties.md#the-ladder): `[warn 1h, suspend 10min]`"},
    {"forgive", RULES_DURATION, AT(penalty.ladder.forgive_ns),
     RULES_RANGE(RULES_S, 3660 * RULES_DAY), .otherwise = "1d",
     .doc = "how long after a step without strikes a caller is one step lower",
     .why = "a caller that was banned by mistake is as others the next day"},
    {"strikes_while_suspended", RULES_FLAG, AT(penalty.while_suspended), .otherwise = "false",
     .doc = "whether requests during a suspension are strikes",
     .why = "a program that does not read answers is not banned for ever"},
};
const struct rules_section rules_section_penalty = RULES_SECTION("a penalty", keywords);

/* --- `name` and `key` ------------------------------------------------------------------------- */

static void load_name(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_penalty *penalty)
{
    struct weir_bytes name;
    if (!rules_check_name(loader, node, "name", &name))
        return;
    if (weir_rules_penalty_find(loader->rules, name) >= 0) {
        rules_problem(loader, node, "two penalties are called `%.*s`", (int)name.size, name.data);
        return;
    }
    penalty->penalty.name.data = rules_keep_text(loader, name.data, name.size);
    penalty->penalty.name.size = penalty->penalty.name.data ? name.size : 0;
}

/* Whether a kind of standing is written so: "client.ip/64", "user", "header.X-Api-Key". */
static bool is_written(const struct rules_key_part *part, struct weir_bytes text)
{
    return strlen(part->name) == text.size && strncasecmp(part->name, text.data, text.size) == 0;
}

/* False after a problem. */
static bool load_key(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_penalty *penalty)
{
    const struct weir_rules *rules = loader->rules;
    size_t count = rules->settings.standing->kinds_count;
    struct rules_items items = rules_items_of(&node);
    const char *names[WEIR_STANDING_KINDS_MAX];
    struct rules_quote quote;
    struct rules_hint hint;
    struct weir_bytes text;
    if (node->kind == RULES_MAP || items.count != 1) {
        rules_problem(loader, node,
                      "`key` of a penalty must be one attribute of `by` of `standing`");
        return false;
    }
    if (!rules_read_text(loader, items.items[0], "key", &text))
        return false;
    for (size_t i = 0; i < count; i++) {
        names[i] = rules->standing.kinds[i].key->name;
        if (!is_written(rules->standing.kinds[i].key, text))
            continue;
        penalty->penalty.kind = (uint8_t)i;
        penalty->strikes = rules->standing.kinds[i];
        return true;
    }
    rules_quote(&quote, text.data, text.size);
    rules_problem(loader, items.items[0], "%s is not in `by` of `standing`%s", quote.text,
                  rules_hint(&hint, text.data, text.size, names, (uint32_t)count));
    return false;
}

/* --- `strikes` -------------------------------------------------------------------------------- */

static void load_strikes(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_penalty *penalty)
{
    struct weir_limit *limit = rules_keep(loader, sizeof(*limit));
    struct weir_reason reason = {{0}};
    struct weir_rate rate;
    struct weir_bytes text;
    if (!limit || !rules_read_text(loader, node, "strikes", &text))
        return;
    if (weir_rate_parse(&rate, text.data, text.size, &reason) < 0) {
        rules_problem(loader, node, "`strikes`: %s", reason.text);
        return;
    }
    if (rate.kind != WEIR_RATE_COUNT || rate.burst != 0 || rate.count == 0 ||
        rate.count > STRIKES_MAX) {
        rules_problem(loader, node, "`strikes` must be 1 to %d in a window, such as `5/h`",
                      STRIKES_MAX);
        return;
    }
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_LOG, .rate = rate.count + 1, .window_ns = rate.window_ns};
    if (rules_numbers_compile(&spec, loader->rules->shared, limit, &reason) != RULES_FAULT_NONE) {
        rules_problem(loader, node, "`strikes`: %s", reason.text);
        return;
    }
    penalty->strikes.rates = (struct rules_rates){.limits = limit, .count = 1};
}

/* Names the rule that counts the strikes, and its states. */
static void name_strikes(struct rules_loader *loader, struct rules_penalty *penalty)
{
    struct rules_rule *rule = &penalty->strikes;
    struct weir_bytes name = penalty->penalty.name;
    uint8_t *prefix = rules_keep(loader, RULES_PREFIX_MAX);
    char text[RULES_NAME_MAX + sizeof RULES_STRIKES];
    int size = snprintf(text, sizeof text, "%.*s" RULES_STRIKES, (int)name.size, name.data);
    rule->name = rules_keep_text(loader, text, (size_t)size);
    if (!rule->name || !prefix)
        return;
    prefix[0] = (uint8_t)size;
    memcpy(prefix + 1, text, (size_t)size);
    rule->name_size = (uint8_t)size;
    rule->prefix = prefix;
    rule->prefix_size = (uint8_t)(size + 1);
    rule->cost = 1;
    rule->rates.limits->name = rule->name;
}
_Static_assert(1 + RULES_NAME_MAX + sizeof RULES_STRIKES <= RULES_PREFIX_MAX, "a prefix fits");

/* --- `for` and `outcomes` --------------------------------------------------------------------- */

static bool denies(const struct rules_rule *rule)
{
    return (rule->flags & WEIR_CHECK_SHADOW) == 0 && rule->enforce > 0;
}

static void load_denials(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_penalty *penalty)
{
    const struct weir_rules *rules = loader->rules;
    struct rules_items items = rules_items_of(&node);
    struct rules_quote quote;
    struct rules_hint hint;
    const char **names = rules_borrow(loader, (rules->rule_count + 1) * sizeof(*names));
    if (!names)
        return;
    for (uint32_t i = 0; i < rules->rule_count; i++)
        names[i] = rules->rules[i].name;
    for (uint32_t i = 0; i < items.count; i++) {
        struct weir_bytes name;
        if (!rules_read_text(loader, items.items[i], "for", &name))
            continue;
        int rule = rules_rule_find(rules, name);
        rules_quote(&quote, name.data, name.size);
        if (rule < 0)
            rules_problem(loader, items.items[i], "`for` names no limit of this file: %s%s",
                          quote.text,
                          rules_hint(&hint, name.data, name.size, names, rules->rule_count));
        else if (!denies(&rules->rules[rule]))
            rules_problem(loader, items.items[i], "%s denies nothing, so it gives no strikes",
                          quote.text);
        else
            penalty->denials[rule / 8] |= (uint8_t)(1U << rule % 8);
    }
}

static void set_all_denials(const struct weir_rules *rules, struct rules_penalty *penalty)
{
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (denies(&rules->rules[i]))
            penalty->denials[i / 8] |= (uint8_t)(1U << i % 8);
}

static void load_outcomes(struct rules_loader *loader, const struct rules_node *node,
                          struct rules_penalty *penalty)
{
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, node, "`outcomes` must be a status or a list: [401, 403]");
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        if (!rules_read_status(loader, items.items[i], "outcomes", penalty->statuses))
            return;
}

static void load_strikers(struct rules_loader *loader, const struct rules_field *fields,
                          struct rules_penalty *penalty)
{
    const struct rules_node *limits = fields[FOR].value, *outcomes = fields[OUTCOMES].value;
    uint8_t *denials = rules_keep(loader, loader->rules->rule_count / 8 + 1);
    if (!denials)
        return;
    penalty->denials = denials;
    if (outcomes)
        load_outcomes(loader, outcomes, penalty);
    if (!limits)
        set_all_denials(loader->rules, penalty);
    else if (limits->kind == RULES_MAP)
        rules_problem(loader, limits, "`for` must be a list of limits");
    else if (limits->kind == RULES_LIST && limits->size == 0 && !outcomes)
        rules_problem(loader, limits,
                      "nothing is a strike: name limits in `for`, or statuses in "
                      "`outcomes`");
    else
        load_denials(loader, limits, penalty);
}

/* --- `ladder` and `forgive` ------------------------------------------------------------------- */

static void load_step(struct rules_loader *loader, const struct rules_node *node, bool last,
                      bool address, struct weir_ladder *ladder)
{
    struct weir_ladder_step step = {.term_ns = 0};
    struct weir_reason reason = {{0}};
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "ladder", &text))
        return;
    if (weir_ladder_step_parse(&step, text, weir_duration_parse, &reason) < 0) {
        rules_problem(loader, node, "`ladder`: %s", reason.text);
        return;
    }
    if (step.level == WEIR_STANDING_CHALLENGED && !loader->challenge)
        rules_problem(loader, node,
                      "a step `challenge` needs the section `challenge:`, which says how clients "
                      "prove themselves; without it, use `throttle`");
    if (step.level == WEIR_STANDING_REVOKED && address)
        rules_problem(loader, node,
                      "a ladder on addresses cannot revoke, because addresses change hands: use "
                      "`suspend` with a duration");
    else if (step.level == WEIR_STANDING_REVOKED && !last)
        rules_problem(loader, node, "no step comes after `revoke`, which has no end: remove those");
    else if (step.level != WEIR_STANDING_REVOKED &&
             (step.term_ns < TERM_MIN_NS || step.term_ns > TERM_MAX_NS))
        rules_problem(loader, node, "`ladder`: the duration of a step must be 1s to 3660d");
    else
        ladder->steps[ladder->count++] = step;
}

static void load_ladder(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_penalty *penalty)
{
    const struct weir_standing_settings *standing = loader->rules->settings.standing;
    bool address = standing->kinds[penalty->penalty.kind].address;
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0 || items.count > WEIR_LADDER_STEPS_MAX) {
        rules_problem(loader, node,
                      "`ladder` must be a list of 1 to %d steps, such as [warn 1h, suspend 10min]",
                      WEIR_LADDER_STEPS_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        load_step(loader, items.items[i], i + 1 == items.count, address, &penalty->penalty.ladder);
}

/* --- The section ------------------------------------------------------------------------------ */

static bool has_all(struct rules_loader *loader, const struct rules_node *node,
                    const struct rules_field *fields)
{
    static const int needed[] = {NAME, KEY, STRIKES, LADDER};
    uint32_t wrong = loader->wrong;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!fields[needed[i]].value)
            rules_problem(loader, node, "`%s` is missing in a penalty", fields[needed[i]].name);
    return loader->wrong == wrong;
}

static void load_penalty(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct rules_penalty *penalty = &rules->penalties[rules->penalty_count];
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint32_t wrong = loader->wrong;
    if (!rules_section_find(loader, &rules_section_penalty, node, fields) ||
        !has_all(loader, node, fields))
        return;
    memset(penalty, 0, sizeof(*penalty));
    rules_section_defaults(&rules_section_penalty, penalty);
    load_name(loader, fields[NAME].value, penalty);
    bool keyed = load_key(loader, fields[KEY].value, penalty);
    load_strikes(loader, fields[STRIKES].value, penalty);
    load_strikers(loader, fields, penalty);
    if (keyed)
        load_ladder(loader, fields[LADDER].value, penalty);
    rules_section_read(loader, &rules_section_penalty, fields, penalty);
    if (loader->wrong != wrong || loader->no_memory)
        return;
    name_strikes(loader, penalty);
    rules->penalty_count++;
}

void rules_load_penalties(struct rules_loader *loader, const struct rules_field *field)
{
    const struct rules_node *node = field->value;
    struct weir_rules *rules = loader->rules;
    if (!loader->standing) {
        rules_problem(loader, field->key, "`penalties` needs the section `standing:`");
        return;
    }
    if (!rules->settings.standing->file && (!rules->shared || loader->sticky))
        rules_problem(loader, field->key,
                      "`penalties` needs `file` in `standing`, or `store: redis`: there the steps "
                      "of callers are kept");
    if (node->kind != RULES_LIST || node->size > WEIR_PENALTIES_MAX) {
        rules_problem(loader, node, "`penalties` must be a list of at most %d mappings",
                      WEIR_PENALTIES_MAX);
        return;
    }
    rules->penalties = rules_keep(loader, (node->size + 1) * sizeof(*rules->penalties));
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i++)
        load_penalty(loader, node->items[i]);
}
