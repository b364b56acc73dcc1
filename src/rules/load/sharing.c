/* SPDX-License-Identifier: Apache-2.0 */
/* What a limit says of a store that several nodes share; see loader.h */
#include <string.h>

#include "core/bytes.h"
#include "rules/division.h"
#include "rules/load/loader.h"
#include "rules/states.h"

uint8_t rules_read_failure(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const failures[] = {"local", "open", "closed"}; /* enum weir_store_failure */
    int choice = rules_read_choice(loader, node, "on_store_error", failures, 3);
    return choice > 0 ? (uint8_t)choice : WEIR_FAIL_LOCAL;
}

/* A key that means something only beside a store elsewhere; false after a problem. */
static bool needs_store(struct rules_loader *loader, const struct rules_field *field)
{
    if (loader->redis == NULL) {
        rules_problem(loader, field->key,
                      "`%s` needs a store that nodes share: give the file `store: {redis: …}`",
                      field->name);
    }
    return loader->redis != NULL;
}

static void load_mode(struct rules_loader *loader, const struct rules_field *field,
                      struct rules_rule *rule)
{
    static const char *const modes[] = {"exact", "leased"};
    bool splits = rule->algorithm != WEIR_CONCURRENCY && rule->algorithm != WEIR_LEAKY_QUEUE;
    bool leased = loader->rules->settings.store.leased && splits;
    if (field->value != NULL && needs_store(loader, field)) {
        int choice = rules_read_choice(loader, field->value, "mode", modes, 2);
        leased = choice == 1;
        if (leased && !splits) {
            rules_problem(loader, field->value,
                          "%s cannot be leased: %s; leave `mode` out, or say exact",
                          rule->algorithm == WEIR_CONCURRENCY ? "concurrency" : "a queue",
                          rule->algorithm == WEIR_CONCURRENCY
                              ? "what is in flight on one node is not free on another"
                              : "its order is that of all nodes together");
        }
    }
    if (leased)
        rule->flags |= WEIR_CHECK_LEASED;
}

/* Which attribute of the key a word of `hash_tag` is: by its name, or client.ip without its prefix
 * length; -1: none. */
static int find_in_key(const struct rules_rule *rule, struct weir_bytes name)
{
    for (uint32_t i = 0; i < rule->key_count; i++)
        if (weir_bytes_are(name, rule->key[i].name))
            return (int)i;
    for (uint32_t i = 0; i < rule->key_count; i++) {
        const struct rules_key_part *part = &rule->key[i];
        if (part->source == RULES_FROM_ADDRESS && name.size + 1 == part->label_size &&
            memcmp(name.data, part->label, name.size) == 0)
            return (int)i;
    }
    return -1;
}

/* Headers are named in any case, and kept in lower case. */
static struct weir_bytes lower_name(struct rules_loader *loader, struct weir_bytes name)
{
    char *lower = rules_borrow(loader, name.size + 1);
    for (size_t i = 0; lower != NULL && i < name.size; i++) {
        bool upper = name.data[i] >= 'A' && name.data[i] <= 'Z';
        lower[i] = (char)(upper ? name.data[i] | 0x20 : name.data[i]);
    }
    bool header = name.size > 7 && memcmp(name.data, "header.", 7) == 0;
    return header && lower != NULL ? (struct weir_bytes){lower, name.size} : name;
}

static void load_hash_tag(struct rules_loader *loader, const struct rules_field *field,
                          struct rules_rule *rule)
{
    struct rules_items items = rules_items_of(&field->value);
    struct rules_quote quote;
    if (!needs_store(loader, field))
        return;
    if (field->value->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, field->value,
                      "`hash_tag` must be an attribute of the key, or a list of them");
        return;
    }
    const char **names = rules_keep(loader, items.count * sizeof(*names));
    rule->tag_names = names;
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes name;
        if (!rules_read_text(loader, items.items[i], "hash_tag", &name))
            continue;
        int part = find_in_key(rule, lower_name(loader, name));
        if (part < 0) {
            rules_problem(loader, items.items[i],
                          "`hash_tag` %s is not in `key`, so one state would be in several places",
                          rules_quote(&quote, name.data, name.size));
        } else if (memchr(rule->tag, part, rule->tag_count) != NULL) {
            rules_problem(loader, items.items[i], "%s is twice in `hash_tag`",
                          rules_quote(&quote, name.data, name.size));
        } else {
            names[rule->tag_count] = rule->key[part].name;
            rule->tag[rule->tag_count++] = (uint8_t)part;
        }
    }
}

/* `on_store_error: local` needs to know how many decide so. */
void rules_check_nodes(struct rules_loader *loader)
{
    const struct weir_rules *rules = loader->rules;
    struct weir_store_settings *store = &loader->rules->settings.store;
    const char *whose = NULL;
    if (loader->redis == NULL || store->nodes != 0)
        return;
    for (uint32_t i = rules->rule_count; i > 0; i--) {
        whose = rules->rules[i - 1].on_store_error == WEIR_FAIL_LOCAL ? rules->rules[i - 1].name
                                                                      : whose;
    }
    bool named = whose != NULL;
    bool commands =
        store->on_store_error == WEIR_FAIL_LOCAL && rules->settings.redis.address != NULL;
    if (named || commands) {
        rules_problem(loader, loader->redis,
                      "`nodes` is missing: where Redis fails, each node decides its part of %s%s%s "
                      "alone; say how many nodes there are, or `on_store_error: open` or `closed`",
                      named ? "limit `" : "limits in commands", named ? whose : "",
                      named ? "`" : "");
    } else if (store->on_store_error == WEIR_FAIL_LOCAL) {
        store->on_store_error = WEIR_FAIL_CLOSED; /* of commands, should some come all the same */
    }
}

/* The name that keys elsewhere have, and what this node decides alone. */
static void share(struct rules_loader *loader, const struct rules_rule *rule,
                  struct weir_limit *limit, uint32_t state)
{
    const struct weir_store_settings *store = &loader->rules->settings.store;
    char name[RULES_STATE_NAME_MAX];
    size_t size = state > 0 ? rules_state_name(rule, state, name) : 0;
    limit->name = state > 0 ? rules_keep_text(loader, name, size) : rule->name;
    if (!rules_is_divided(loader->rules, rule) || loader->wrong > 0)
        return;
    struct weir_limit *part = rules_keep(loader, sizeof(*part));
    if (part != NULL)
        weir_limit_divide(limit, store->nodes, part);
    limit->local = part;
}

static void share_rates(struct rules_loader *loader, const struct rules_rule *rule,
                        const struct rules_rates *reference, struct rules_rates *rates)
{
    uint32_t states[WEIR_RATES_MAX] = {0};
    bool in_order = true;
    if (rates->limits == NULL) /* none, or no memory for them */
        return;
    if (loader->wrong == 0)
        rules_states_of(reference, rates->limits, rates->count, states);
    for (uint32_t i = 0; i < rates->count; i++) {
        in_order = in_order && states[i] == i;
        share(loader, rule, &rates->limits[i], states[i]);
    }
    uint32_t *kept = in_order ? NULL : rules_keep(loader, rates->count * sizeof(*kept));
    if (kept != NULL)
        memcpy(kept, states, rates->count * sizeof(*kept));
    rates->states = kept;
}

void rules_load_sharing(struct rules_loader *loader, const struct rules_field *fields,
                        struct rules_rule *rule)
{
    const struct rules_field *hash_tag = &fields[RULES_LIMIT_HASH_TAG];
    const struct rules_node *failure = fields[RULES_LIMIT_ON_STORE_ERROR].value;
    rule->on_store_error = failure != NULL ? rules_read_failure(loader, failure)
                                           : loader->rules->settings.store.on_store_error;
    load_mode(loader, &fields[RULES_LIMIT_MODE], rule);
    if (hash_tag->value != NULL)
        load_hash_tag(loader, hash_tag, rule);
    struct rules_rates reference = rules_states_reference(loader->rules, rule);
    share_rates(loader, rule, &reference, &rule->rates);
    for (uint32_t p = 0; p < loader->rules->plan_count && rule->plans != NULL; p++)
        share_rates(loader, rule, &reference, &rule->plans[p]);
}
