/* SPDX-License-Identifier: Apache-2.0 */
/* see names.h */
#include "rules/load/names.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/known_names.h"
#include "rules/load/attributes.h"

/* A name as `attributes` may have it. */
static bool check_declaration(struct rules_loader *loader, const struct rules_node *node,
                              struct weir_bytes name)
{
    struct rules_quote quote;
    if (rules_is_built_in(name)) {
        rules_problem(loader, node, "the attribute %s is built in; remove it from `attributes`",
                      rules_quote(&quote, name.data, name.size));
        return false;
    }
    return rules_check_attribute_name(loader, node, name);
}

void rules_load_declared(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP) {
        rules_problem(loader, node, "`attributes` must be a list of names");
        return;
    }
    if (items.count > WEIR_ATTRIBUTES_MAX) {
        rules_problem(loader, node, "`attributes` has more than %d names", WEIR_ATTRIBUTES_MAX);
        return;
    }
    rules->declared_names = rules_keep(loader, (items.count + 1) * sizeof(*rules->declared_names));
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes name;
        struct rules_quote quote;
        if (!rules_read_text(loader, items.items[i], "attributes", &name) ||
            !check_declaration(loader, items.items[i], name))
            continue;
        if (rules_is_declared(rules, name)) {
            rules_problem(loader, items.items[i], "%s is twice in `attributes`",
                          rules_quote(&quote, name.data, name.size));
            continue;
        }
        const char *kept = rules_keep_text(loader, name.data, name.size);
        if (kept &&
            rules_keep_word(loader, &rules->declared, 0, kept, name.size, rules->declared_count))
            rules->declared_names[rules->declared_count++] = kept;
    }
}

/* Reports a name that is not declared; whether it is refused. */
static bool undeclared(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name)
{
    struct rules_quote quote;
    int size = (int)name.size;
    rules_quote(&quote, name.data, name.size);
    if (name.size > 4 && memcmp(name.data, "jwt.", 4) == 0)
        return rules_deprecated(
            loader, node,
            "undeclared claim %s; declare it at the top of the file: `attributes: [%.*s]`",
            quote.text, size, name.data);
    return rules_deprecated(
        loader, node,
        "unknown attribute %s; declare it at the top of the file, `attributes: [%.*s]`, or write "
        "`header.%.*s`, `query.%.*s` or `cookie.%.*s`",
        quote.text, size, name.data, size, name.data, size, name.data, size, name.data);
}

void rules_check_declared(struct rules_loader *loader, const struct rules_node *node,
                          struct weir_bytes name)
{
    struct rules_quote quote;
    if (rules_is_built_in(name) || rules_is_declared(loader->rules, name))
        return;
    const char *nearest = rules_nearest_name(loader->rules, name);
    rules_quote(&quote, name.data, name.size);
    if (nearest)
        (void)rules_deprecated(loader, node,
                               "unknown attribute %s; did you mean `%s`? An attribute of your own "
                               "is declared: `attributes: [%.*s]`",
                               quote.text, nearest, (int)name.size, name.data);
    else if (!undeclared(loader, node, name))
        rules_fix(loader, WEIR_FIX_DECLARE, name, 0);
}
