/* SPDX-License-Identifier: Apache-2.0 */
/* see key.h */
#include "rules/load/limit/key.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/load/attributes.h"
#include "rules/load/fields.h"
#include "rules/load/limit/match.h"

bool rules_load_key_part(struct rules_loader *loader, const struct rules_node *node,
                         const char *what, struct rules_key_part *part)
{
    struct weir_bytes name;
    const char *name_of_label = NULL;
    memset(part, 0, sizeof(*part));
    if (!rules_read_text(loader, node, what, &name))
        return false;
    int address = rules_read_address_name(loader, node, name, &part->bits4, &part->bits6);
    if (address < 0)
        return false;
    if (address > 0) {
        part->source = RULES_FROM_ADDRESS;
        part->attribute = WEIR_ATTR_CLIENT_IP;
        name_of_label = loader->rules->attribute_names[WEIR_ATTR_CLIENT_IP];
        part->name = rules_keep_text(loader, name.data, name.size);
    } else if (name.size > 5 && memcmp(name.data, "path.", 5) == 0) {
        part->source = RULES_FROM_CAPTURE;
        part->attribute = WEIR_ATTR_PATH;
        part->segments = rules_capture(loader, node, name);
        part->name = name_of_label = rules_keep_text(loader, name.data, name.size);
        if (!part->segments)
            return false;
    } else {
        int attribute = rules_intern_attribute(loader, node, name);
        if (attribute < 0)
            return false;
        part->source = RULES_FROM_ATTRIBUTE;
        part->attribute = (uint16_t)attribute;
        part->secret = rules_is_secret(loader->rules, part->attribute);
        part->name = name_of_label = loader->rules->attribute_names[attribute];
    }
    if (!part->name)
        return false;
    size_t size = strlen(name_of_label);
    if (size > RULES_ATTRIBUTE_NAME_MAX) {
        rules_problem(loader, node, "an attribute's name has 1 to %d bytes",
                      RULES_ATTRIBUTE_NAME_MAX);
        return false;
    }
    char *label = rules_keep(loader, size + 1 + RULES_LABEL_STEP);
    if (label) {
        memcpy(label, name_of_label, size);
        label[size] = '=';
    }
    part->label = label;
    part->label_size = (uint8_t)(size + 1);
    return label;
}

/* What happens in the end, in the order of enum rules_missing. */
static const char *const missing_words[] = {"skip", "shared", "deny"};
#define MISSING_WORDS 3

/* The word that the text is; -1: none, so that it names an attribute. */
static int missing_word(struct weir_bytes text)
{
    for (int i = 0; i < MISSING_WORDS; i++)
        if (weir_bytes_are(text, missing_words[i]))
            return i;
    return -1;
}

/* False, after a problem, where the key or on_missing has the attribute before. */
static bool is_new(struct rules_loader *loader, const struct rules_node *node,
                   const struct rules_rule *rule, const struct rules_key_part *part)
{
    for (uint32_t i = 0; i < rule->key_count; i++) {
        if (strcmp(rule->key[i].label, part->label) == 0) {
            rules_problem(loader, node, "`on_missing` `%s` is in the key already", part->name);
            return false;
        }
    }
    for (uint8_t i = 0; i < rule->instead_count; i++) {
        if (strcmp(rule->instead[i].label, part->label) == 0) {
            rules_problem(loader, node, "`%s` is twice in `on_missing`", part->name);
            return false;
        }
    }
    return true;
}

/* One entry: an attribute, or what happens in the end, which only the last may be. */
static void load_instead(struct rules_loader *loader, const struct rules_node *node, bool last,
                         struct rules_rule *rule, struct rules_key_part *part)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "on_missing", &text))
        return;
    int word = missing_word(text);
    const char *nearest = rules_nearest(text.data, text.size, missing_words, MISSING_WORDS);
    if (word >= 0 && last)
        rule->missing = (uint8_t)word;
    else if (word >= 0)
        rules_problem(loader, node, "`%s` can only be the last of `on_missing`",
                      missing_words[word]);
    else if (nearest)
        rules_problem(loader, node,
                      "`on_missing` must be skip, shared, deny or an attribute; did you mean `%s`?",
                      nearest);
    else if (rules_load_key_part(loader, node, "on_missing", part) &&
             is_new(loader, node, rule, part))
        rule->instead_count++;
}

static void load_missing(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_rule *rule)
{
    struct rules_items items = rules_items_of(&node);
    if (items.count == 0 || items.count > RULES_INSTEAD_MAX + 1) {
        rules_problem(loader, node,
                      "`on_missing` has 1 to %d attributes, and may end in skip, shared or deny",
                      RULES_INSTEAD_MAX);
        return;
    }
    struct rules_key_part *parts = rules_keep(loader, (items.count + 1) * sizeof(*parts));
    rule->instead = parts;
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++)
        load_instead(loader, items.items[i], i + 1 == items.count, rule,
                     &parts[rule->instead_count]);
    if (rule->instead_count > RULES_INSTEAD_MAX) {
        rule->instead_count = RULES_INSTEAD_MAX;
        rules_problem(loader, node, "`on_missing` has at most %d attributes", RULES_INSTEAD_MAX);
    }
}

/* Whether keys with this attribute are of one network each (weir_address_network). */
static bool says_network(const struct rules_key_part *part)
{
    return part->source == RULES_FROM_ADDRESS && part->bits4 >= WEIR_NETWORK_BITS4 &&
           part->bits6 >= WEIR_NETWORK_BITS6;
}

void rules_load_key(struct rules_loader *loader, const struct rules_node *key,
                    const struct rules_node *on_missing, struct rules_rule *rule)
{
    struct rules_items items = {NULL, 0};
    if (key)
        items = rules_items_of(&key);
    if (key && key->kind == RULES_MAP) {
        rules_problem(loader, key, "`key` must be a list of attributes");
        return;
    }
    if (items.count > RULES_KEY_MAX) {
        rules_problem(loader, key, "a key has at most %d attributes", RULES_KEY_MAX);
        return;
    }
    struct rules_key_part *parts = rules_keep(loader, (items.count + 1) * sizeof(*parts));
    const char **names = rules_keep(loader, (items.count + 1) * sizeof(*names));
    rule->key = parts;
    rule->key_names = names;
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct rules_key_part *part = &parts[rule->key_count];
        if (!rules_load_key_part(loader, items.items[i], "key", part))
            continue;
        for (uint32_t j = 0; j < rule->key_count; j++)
            if (strcmp(parts[j].name, part->name) == 0)
                rules_problem(loader, items.items[i], "`%s` is twice in the key", part->name);
        names[rule->key_count++] = part->name;
        if (says_network(part))
            rule->flags |= WEIR_CHECK_NETWORK;
    }
    if (on_missing && !loader->no_memory)
        load_missing(loader, on_missing, rule);
}
