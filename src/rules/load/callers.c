/* SPDX-License-Identifier: Apache-2.0 */
/* see callers.h */
#include "rules/load/callers.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/identity/rules/jwt.h"
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

const char *const rules_unknown_words[] = {"pass", "deny", NULL};
const char *const rules_repeated_words[] = {"deny", "first", "last", NULL};

void rules_load_on_unknown(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    bool reads = false;
    for (uint32_t i = 0; i < rules->identify_count; i++)
        reads |= rules->identify[i].kind != RULES_BY_ADDRESS;
    rules->denies_unknown =
        rules_read_choice(loader, node, "on_unknown", rules_unknown_words, 2) == 1;
    if (rules->denies_unknown && !reads)
        rules_problem(loader, node,
                      "`on_unknown: deny` needs a source in `identify` that reads credentials: a "
                      "header, or `jwt`");
}

/* Whether a header field, or a parameter of the query, says who is calling. Lines of Cookie are one
 * field. */
static bool is_credential(const struct weir_rules *rules, uint16_t attribute)
{
    const char *name = rules->attribute_names[attribute];
    if (rules->rows[attribute]->within == RULES_WITHIN_QUERY)
        return rules_identifies(rules, attribute);
    bool field = strncmp(name, RULES_HEADER, sizeof RULES_HEADER - 1) == 0;
    if (!field || rules->repeated[attribute] == RULES_REPEATED_COOKIES)
        return false;
    return rules_identifies(rules, attribute) || rules_has_scheme(name);
}

void rules_load_repeated(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    int how =
        node ? rules_read_choice(loader, node, "repeated_credentials", rules_repeated_words, 3) : 0;
    for (uint16_t i = 0; how >= 0 && i < rules->attribute_count; i++)
        if (is_credential(rules, i)) /* in the order of enum rules_repeated */
            rules->repeated[i] = (uint8_t)(RULES_REPEATED_UNREADABLE + how);
}

/* --- `identities` ----------------------------------------------------------------------------- */

/* What a worker's memory of them may take: some hundred bytes each. */
#define KEYS_MAX 10000000

#define AT(member) RULES_AT(struct weir_identities_settings, member)

static const struct rules_keyword identities_keywords[] = {
    RULES_REDIS_KEYWORDS("redis"),
    {"prefix", RULES_TEXT, AT(prefix), .parse = rules_parse_prefix, .otherwise = "weir:identity:",
     .doc = "of every key: up to 64 graphic ASCII characters, no braces",
     .why = "beside the states"},
    {"life", RULES_DURATION, AT(life_ns), RULES_RANGE(RULES_MS, RULES_DAY), .otherwise = "60s",
     .doc = "how long a known caller is remembered, 1 ms to 1 day",
     .why = "a changed plan counts within a minute"},
    {"unknown_life", RULES_DURATION, AT(unknown_life_ns), RULES_RANGE(RULES_MS, RULES_DAY),
     .otherwise = "10s", .doc = "how long an unknown key is remembered as unknown",
     .why = "a new key works soon, and guesses cost Redis little"},
    {"stale", RULES_DURATION, AT(stale_ns), RULES_RANGE(RULES_MS, 30 * RULES_DAY), .word = "off",
     .otherwise = "1h",
     .doc = "how much longer than `life` an entry may be used while Redis cannot be asked, up to "
            "30 days; or `off`",
     .why = "callers keep their plans while Redis is away"},
    {"deadline", RULES_DURATION, AT(deadline_ns), RULES_RANGE(RULES_MS, 10 * RULES_S),
     .otherwise = "20ms", .doc = "how long a request waits for a lookup",
     .why = "as for the store"},
    {"max_keys", RULES_NUMBER, AT(max_keys), RULES_RANGE(1, KEYS_MAX), .otherwise = "100000",
     .doc = "callers that each worker remembers", .why = "some tens of MiB for each worker"},
    {"on_error", RULES_CHOICE, AT(deny), RULES_WORDS("unknown", "deny"), .otherwise = "unknown",
     .doc = "how to treat a key that cannot be looked up and is not remembered: `unknown` (as an "
            "unknown key), or `deny` (the request is refused)",
     .why = "an outage does not refuse every caller"},
};
const struct rules_section rules_section_identities =
    RULES_SECTION("identities", identities_keywords);

/* A mapping, or its short form, the URL alone. */
void rules_load_identities(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_identities_settings *identities = &loader->rules->settings.identities;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    rules_section_defaults(&rules_section_identities, identities);
    rules_section_name(&rules_section_identities, fields);
    if (node->kind == RULES_MAP)
        (void)rules_section_find(loader, &rules_section_identities, node, fields);
    else
        fields[RULES_REDIS_URL] = (struct rules_field){"identities", NULL, node};
    rules_load_redis(loader, node, fields, &identities->redis);
    rules_section_read(loader, &rules_section_identities, fields, identities);
}
