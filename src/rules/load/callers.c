/* SPDX-License-Identifier: Apache-2.0 */
/* see callers.h */
#include "rules/load/callers.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/identity/jwt.h"
#include "rules/load/attributes.h"
#include "rules/load/fields.h"
#include "rules/load/server/redis.h"

static void load_entries(struct rules_loader *loader, const struct rules_node *node,
                         uint32_t number)
{
    struct rules_plan *plan = &loader->plans[number];
    if (node->kind != RULES_MAP) {
        rules_problem(loader, node, "a plan must be a mapping of limits to rates; `{}` for none");
        return;
    }
    plan->entries = rules_borrow(loader, (node->size / 2 + 1) * sizeof(*plan->entries));
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i += 2) {
        const struct rules_node *name = node->items[i];
        struct weir_bytes text;
        if (name->kind != RULES_SCALAR || !rules_check_name(loader, name, "limit", &text))
            continue;
        uint64_t hash = rules_text_hash(text.data, text.size);
        if (rules_string_map_find(&loader->plan_limits, number, hash, text.data, text.size) !=
            RULES_NONE)
            continue; /* twice: reported by the document */
        plan->entries[plan->entry_count].name = name;
        plan->entries[plan->entry_count].value = node->items[i + 1];
        rules_keep_word(loader, &loader->plan_limits, number, name->text, name->size,
                        plan->entry_count++);
    }
}

static void load_default(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct weir_bytes name;
    struct rules_quote quote;
    loader->default_given = true;
    if (!rules_read_text(loader, node, "default_plan", &name))
        return;
    rules->default_plan = rules_plan_find(rules, name);
    if (rules->default_plan == RULES_NONE) {
        struct rules_hint room;
        const char *hint =
            rules_hint(&room, name.data, name.size, rules->plan_names, rules->plan_count);
        rules_problem(loader, node, "`default_plan` %s is not in `plans`%s",
                      rules_quote(&quote, name.data, name.size), hint);
    }
}

void rules_load_plans(struct rules_loader *loader, const struct rules_node *plans,
                      const struct rules_node *default_plan)
{
    struct weir_rules *rules = loader->rules;
    loader->plans_given = plans;
    if (plans && plans->kind != RULES_MAP) {
        rules_problem(loader, plans, "`plans` must be a mapping of plans");
        plans = NULL;
    }
    uint32_t count = plans ? plans->size / 2 : 0;
    rules->plan_names = rules_keep(loader, (count + 1) * sizeof(*rules->plan_names));
    loader->plans = rules_borrow(loader, (count + 1) * sizeof(*loader->plans));
    for (uint32_t i = 0; i < count && !loader->no_memory; i++) {
        const struct rules_node *node = plans->items[2 * i];
        struct weir_bytes name;
        if (node->kind != RULES_SCALAR || !rules_check_name(loader, node, "plan", &name) ||
            rules_plan_find(rules, name) != RULES_NONE)
            continue;
        uint32_t number = rules->plan_count;
        const char *kept = rules_keep_text(loader, name.data, name.size);
        if (!kept || !rules_keep_word(loader, &rules->plans, 0, kept, name.size, number))
            return;
        rules->plan_names[number] = kept;
        rules->plan_count++;
        loader->plans[number].name = node;
        load_entries(loader, plans->items[2 * i + 1], number);
    }
    if (default_plan && !loader->no_memory)
        load_default(loader, default_plan);
}

static void load_source(struct rules_loader *loader, const struct rules_node *node, bool have_keys)
{
    struct weir_rules *rules = loader->rules;
    struct rules_identify source = {0};
    struct weir_bytes name;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "identify", &name))
        return;
    int address = rules_read_address_name(loader, node, name, &source.bits4, &source.bits6);
    if (address < 0)
        return;
    bool token = weir_bytes_are(name, "jwt");
    if (token && !rules->jwt) {
        rules_problem(loader, node,
                      "`jwt` needs the section `jwt:`, which this file does not have");
        return;
    }
    source.kind = token ? RULES_BY_TOKEN : address > 0 ? RULES_BY_ADDRESS : RULES_BY_KEY;
    if (source.kind == RULES_BY_KEY) {
        rules_quote(&quote, name.data, name.size);
        if (name.size > 4 && memcmp(name.data, "jwt.", 4) == 0) {
            rules_problem(loader, node, "%s: write `jwt`, and in `jwt:` which claim is the `user`",
                          quote.text);
            return;
        }
        if (!rules_attribute_is_for(name, RULES_FOR_IDENTIFY)) {
            rules_problem(loader, node,
                          "%s cannot identify a caller; `client.ip`, a header or another attribute "
                          "can",
                          quote.text);
            return;
        }
        int attribute = rules_intern_attribute(loader, node, name);
        if (attribute < 0)
            return;
        if (!have_keys) {
            rules_problem(loader, node,
                          "%s is looked up in `keys` and `identities`, but this file has neither",
                          quote.text);
            return;
        }
        source.attribute = (uint16_t)attribute;
        source.credential = rules_has_scheme(rules->attribute_names[attribute]);
    }
    if (rules->identify_count == RULES_SOURCES_MAX) {
        rules_problem(loader, node, "`identify` has more than %d sources", RULES_SOURCES_MAX);
        return;
    }
    rules->identify[rules->identify_count++] = source;
}

void rules_load_identify(struct rules_loader *loader, const struct rules_node *identify,
                         bool have_keys)
{
    struct rules_items items = rules_items_of(&identify);
    for (uint32_t i = 0; i < items.count; i++)
        load_source(loader, items.items[i], have_keys);
}

void rules_load_on_unknown(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const words[] = {"pass", "deny"};
    struct weir_rules *rules = loader->rules;
    bool reads = false;
    for (uint32_t i = 0; i < rules->identify_count; i++)
        reads |= rules->identify[i].kind != RULES_BY_ADDRESS;
    rules->denies_unknown = rules_read_choice(loader, node, "on_unknown", words, 2) == 1;
    if (rules->denies_unknown && !reads)
        rules_problem(loader, node,
                      "`on_unknown: deny` needs a source in `identify` that reads credentials: a "
                      "header, or `jwt`");
}

/* Whether a header field says who is calling. Lines of Cookie are one field. */
static bool is_credential(const struct weir_rules *rules, uint16_t attribute)
{
    const char *name = rules->attribute_names[attribute];
    bool field = strncmp(name, RULES_HEADER, sizeof RULES_HEADER - 1) == 0;
    if (!field || rules->repeated[attribute] == RULES_REPEATED_COOKIES)
        return false;
    return rules_identifies(rules, attribute) || rules_has_scheme(name);
}

void rules_load_repeated(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const words[] = {"deny", "first", "last"};
    struct weir_rules *rules = loader->rules;
    int how = node ? rules_read_choice(loader, node, "repeated_credentials", words, 3) : 0;
    for (uint16_t i = 0; how >= 0 && i < rules->attribute_count; i++)
        if (is_credential(rules, i)) /* in the order of enum rules_repeated */
            rules->repeated[i] = (uint8_t)(RULES_REPEATED_UNREADABLE + how);
}

/* --- `identities` ----------------------------------------------------------------------------- */

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_DAY (86400 * NS_PER_S)

/* What a worker's memory of them may take: some hundred bytes each. */
#define KEYS_MAX 10000000

/* Behind those that say which Redis. */
enum identities_field {
    PREFIX = RULES_REDIS_FIELDS,
    LIFE,
    UNKNOWN_LIFE,
    STALE,
    DEADLINE,
    MAX_KEYS,
    ON_ERROR,
    FIELDS,
};

static const struct weir_identities_settings defaults = {
    .prefix = "weir:identity:",
    .life_ns = 60 * NS_PER_S,
    .unknown_life_ns = 10 * NS_PER_S,
    .stale_ns = 3600 * NS_PER_S,
    .deadline_ns = 20 * NS_PER_MS,
    .max_keys = 100000,
};

static void load_lives(struct rules_loader *loader, const struct rules_field *fields,
                       struct weir_identities_settings *identities)
{
    if (fields[LIFE].value) {
        rules_read_duration(loader, fields[LIFE].value, "life", NS_PER_MS, NS_PER_DAY, "1ms to 1d",
                            &identities->life_ns);
    }
    if (fields[UNKNOWN_LIFE].value) {
        rules_read_duration(loader, fields[UNKNOWN_LIFE].value, "unknown_life", NS_PER_MS,
                            NS_PER_DAY, "1ms to 1d", &identities->unknown_life_ns);
    }
    const struct rules_node *stale = fields[STALE].value;
    if (stale && stale->kind == RULES_SCALAR && strcmp(stale->text, "off") == 0) {
        identities->stale_ns = 0;
    } else if (stale) {
        rules_read_duration(loader, stale, "stale", NS_PER_MS, 30 * NS_PER_DAY,
                            "1ms to 30d, or off", &identities->stale_ns);
    }
    if (fields[DEADLINE].value) {
        rules_read_duration(loader, fields[DEADLINE].value, "deadline", NS_PER_MS, 10 * NS_PER_S,
                            "1ms to 10s", &identities->deadline_ns);
    }
}

/* A mapping, or its short form, the URL alone. */
void rules_load_identities(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const outcomes[] = {"unknown", "deny"};
    struct weir_identities_settings *identities = &loader->rules->settings.identities;
    struct rules_field fields[FIELDS] = {
        [PREFIX] = {"prefix", NULL, NULL},     [LIFE] = {"life", NULL, NULL},
        [STALE] = {"stale", NULL, NULL},       [UNKNOWN_LIFE] = {"unknown_life", NULL, NULL},
        [DEADLINE] = {"deadline", NULL, NULL}, [MAX_KEYS] = {"max_keys", NULL, NULL},
        [ON_ERROR] = {"on_error", NULL, NULL},
    };
    uint64_t most = 0;
    *identities = defaults;
    if (node->kind == RULES_MAP) {
        rules_name_redis(fields, "redis");
        rules_fields(loader, node, "identities", fields, FIELDS);
    } else {
        rules_name_redis(fields, "identities");
        fields[RULES_REDIS_URL].value = node;
    }
    rules_load_redis(loader, node, fields, &identities->redis);
    if (fields[PREFIX].value)
        rules_read_prefix(loader, fields[PREFIX].value, &identities->prefix);
    load_lives(loader, fields, identities);
    if (fields[MAX_KEYS].value &&
        rules_read_number(loader, fields[MAX_KEYS].value, "max_keys", 1, KEYS_MAX, &most))
        identities->max_keys = (uint32_t)most;
    if (fields[ON_ERROR].value) {
        identities->deny =
            rules_read_choice(loader, fields[ON_ERROR].value, "on_error", outcomes, 2) == 1;
    }
}
